"""Where an agent works: a new folder, a copy of one, a checkout of a repository, or a folder that stays."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, model_validator

__all__ = ["Place", "Workspace"]


def _one_line(value: str) -> str:
    if not value:
        raise ValueError("empty; leave the field out where nothing is meant")
    if any(unicodedata.category(letter) == "Cc" for letter in value):
        raise ValueError("holds a control character")
    return value


Place = Annotated[str, AfterValidator(_one_line)]
"""A path, or a name in a repository: not empty, and without control characters."""


class Workspace(BaseModel):
    """Where the run works.

    ``empty``: a new folder. ``copy``: a new copy of ``path``, thrown away after the run. ``git``: a new checkout of
    ``ref`` of the repository ``path``. ``folder``: ``path`` itself, whose changes stay.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    kind: Literal["empty", "copy", "git", "folder"] = "empty"
    path: Place | None = None
    ref: Place | None = None

    @model_validator(mode="after")
    def _fields_of_the_kind(self) -> Self:
        if (self.kind == "empty") != (self.path is None):
            raise ValueError("empty has no path" if self.kind == "empty" else f"{self.kind} needs a path")
        if self.kind != "git" and self.ref is not None:
            raise ValueError("only git has a ref")
        if self.kind == "git" and (self.ref is None or self.ref.startswith("-")):
            raise ValueError("git needs a ref: a branch, a tag or a commit")
        return self
