"""Where DeepSeek Harness session logs lie in their root: ``<project>/<session>/session.vN.jsonl.zstd`` (specification,
section 1).

A root is given as the keys under it, so that a folder and a bucket are one to these rules. Generation 0 has no ``.vN``;
of several generations in one directory only the highest is the session, the others are what it was migrated from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from schemas._dsh_header import LogHeader
from schemas._utf16 import to_units
from schemas.errors import LogRejected

__all__ = ["LogPlace", "LogRoot", "check_place", "encode_segment", "find_logs", "log_key", "place_of", "project_of"]

_LOG_NAME = re.compile(r"session(?:\.v([1-9][0-9]{0,5}))?\.jsonl(\.zstd)?")
_FLAT_LOG = re.compile(r".+\.jsonl(?:\.zstd)?", re.DOTALL)
_ESCAPED: Final = re.compile("[^A-Za-z0-9._-]")
_SEPARATORS: Final = re.compile(r"[/\\:]+")
_LONGEST_SLUG = 251


@dataclass(frozen=True, slots=True)
class LogPlace:
    """One log's key in its root, and what the key says: directory names as they stand, generation, encoding."""

    key: str
    project: str
    session: str
    generation: int
    compressed: bool


@dataclass(frozen=True, slots=True)
class LogRoot:
    """The logs of one root, one for each session directory, sorted by key."""

    logs: tuple[LogPlace, ...]

    def find(self, session: str, *, name: str) -> LogPlace:
        """Where the log of the session with this id lies. Raises LogRejected (``missing``, ``duplicate_id``)."""
        directory = encode_segment(session)
        found = [place for place in self.logs if place.session == directory]
        if not found:
            raise LogRejected(name, None, "missing", f"no session {session!r}")
        if len(found) > 1:
            where = " and ".join(place.key for place in found)
            raise LogRejected(name, None, "duplicate_id", f"session {session!r} is there more than once: {where}")
        return found[0]


def find_logs(keys: Iterable[str], *, compressed: bool | None = None, name: str) -> LogRoot:
    """The logs among ``keys``, which are relative to the root.

    A root has one encoding: that which ``compressed`` says, or whichever its logs have. Raises LogRejected
    (``encoding``, ``layout``): one file out of place is reason to doubt them all.
    """
    best: dict[tuple[str, str], LogPlace] = {}
    for key in sorted(keys):
        place = place_of(key)
        if place is None:
            parts = key.split("/")
            if len(parts) == 2 and _FLAT_LOG.fullmatch(parts[1]):
                raise LogRejected(
                    name, None, "layout", f"{key} is a log without a directory, a layout no longer in use"
                )
            continue
        if key.count("/") != 2:
            continue
        compressed = place.compressed if compressed is None else compressed
        if place.compressed != compressed:
            kinds = ("compressed", "plain") if place.compressed else ("plain", "compressed")
            raise LogRejected(name, None, "encoding", f"{key} is {kinds[0]}, in a root whose logs are {kinds[1]}")
        directory = place.project, place.session
        if directory not in best or best[directory].generation < place.generation:
            best[directory] = place
    return LogRoot(tuple(best.values()))


def place_of(key: str) -> LogPlace | None:
    """What the last three parts of ``key`` say of the log there; None when it is no log's name."""
    parts = key.split("/")
    found = _LOG_NAME.fullmatch(parts[-1])
    if found is None:
        return None
    project, session = ["", "", *parts[:-1]][-2:]
    return LogPlace(key, project, session, int(found[1] or 0), found[2] is not None)


def check_place(header: LogHeader, place: LogPlace) -> None:
    """Raise LogRejected (``place``) unless the log lies where its header says that it must."""
    expected = log_key(header, compressed=place.compressed)
    if (place.project, place.session) != tuple(expected.split("/")[:2]):
        detail = f"its header belongs at {expected}"
        raise LogRejected(place.key, 1, "place", detail)


def log_key(header: LogHeader, *, compressed: bool = True) -> str:
    """The key in its root of a log with this header."""
    generation = f".v{header.version}" if header.version else ""
    suffix = ".jsonl.zstd" if compressed else ".jsonl"
    return f"{project_of(header.cwd)}/{encode_segment(header.id)}/session{generation}{suffix}"


def encode_segment(text: str) -> str:
    """``text`` as one path segment: what is not ``[A-Za-z0-9._-]`` becomes ``~`` and its UTF-16 unit in four digits.

    No two texts give one segment.
    """
    if text in (".", ".."):
        return "".join("~002E" for _ in text)
    return _escaped(text)


def project_of(cwd: str | None) -> str:
    """The directory of the sessions that were begun in ``cwd``. Several working directories may share one."""
    if cwd is None:
        return "_no-cwd"
    slug = _escaped(_SEPARATORS.sub("-", cwd)).lstrip("-") or "root"
    return f"--{slug[:_LONGEST_SLUG]}--"


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"~{ord(found[0]):04X}", to_units(text))
