"""Whose work a call was: the folder it was made in, or what a folder that is thrown away was made from.

A program writes down where it works. Of a run in a workspace that is gone after it, that tells nobody which project it
was; whoever made the workspace knows, and the call facts that stand beside a landed file say so. What landed itself
stays as the program wrote it (usage specification, "Columns": `project`).
"""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

__all__ = ["Workplace", "known_as"]


class Workplace(BaseModel):
    """A folder, without a slash at its end, and the name or folder by which people know what is done in it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: str
    project: str


def known_as(cwd: str, workplaces: Iterable[Workplace]) -> str:
    """`cwd` as people know it: a folder at or below a workplace is one at or below its project."""
    for place in workplaces:
        if cwd == place.folder or cwd.startswith(f"{place.folder}/"):
            return place.project + cwd[len(place.folder) :]
    return cwd
