"""Which sessions of an archive are wanted: shell patterns on where their files lie (Claude Code specification, 1).

A pattern is matched against a session's id, the path of its main file below the source, and each folder on that path;
`*` crosses slashes. One that begins with `/` is a folder that a person worked in: Claude Code names a project after it,
with `-` for `/`, `.` and space; with `/**` at its end it means the folders below it as well.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator

from pydantic import BaseModel, ConfigDict, field_validator

from tasks.land.source import Sighting

__all__ = ["AUTO", "KIND_OF_SOURCE", "KIND_OPTION", "Archive"]

AUTO = "auto"
KIND_OPTION, KIND_OF_SOURCE = "--kind", "`kind` of the source"
"""What a person gives a kind by: to a command, and to a flow."""
_MAIN = "main"


class Archive(BaseModel):
    """A source to land: where it is, of which kind, and which of its sessions are wanted."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str
    kind: str = AUTO
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @field_validator("include", "exclude", mode="before")
    @classmethod
    def _one_pattern_is_a_list_of_one(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    def wants(self, session: str, sightings: Iterable[Sighting]) -> bool:
        """Whether to land a session. It is judged by its main files, by all when it has none: one that is included is
        enough, and it is excluded only when all are."""
        keys = [each.file.key for each in sightings if each.file.place == _MAIN]
        keys = keys or [each.file.key for each in sightings]
        if not keys:  # all of it is gone from the source
            return True
        if self.include and not any(_matches(self.include, session, key) for key in keys):
            return False
        return not all(_matches(self.exclude, session, key) for key in keys)


def _matches(patterns: Iterable[str], session: str, key: str) -> bool:
    return any(
        _is_project(pattern, key)
        if pattern.startswith("/")
        else any(fnmatch.fnmatchcase(place, pattern) for place in (session, *_places(key)))
        for pattern in patterns
    )


def _places(key: str) -> Iterator[str]:
    """The path and every folder on it."""
    while key:
        yield key
        key = key.rpartition("/")[0]


def _is_project(pattern: str, key: str) -> bool:
    folder = pattern.removesuffix("/**")
    name = folder.translate(str.maketrans("/. ", "---"))
    return any(
        segment == name or (folder != pattern and segment.startswith(f"{name}-")) for segment in key.split("/")[:-1]
    )
