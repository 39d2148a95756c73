"""What is asked of an export and what came of each session; plain values that cross process boundaries as JSON."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

__all__ = ["DEFAULT_QUIET", "ExportOptions", "ExportOutcome", "ExportedFile", "RoundOfFile", "State"]

DEFAULT_QUIET = 3600 * 1_000_000_000
"""Nanoseconds without a record after which a session with nothing open counts as completed."""

State = Literal["written", "unchanged", "unfinished", "rejected", "failed"]


class ExportOptions(BaseModel):
    """How to export: the moment that quiet is measured to, and how much of it is needed, in nanoseconds.

    `keep_secrets` None: as the source calls for, Relavium's own sessions verbatim and others without secrets.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    as_of: int
    completed_after: int = DEFAULT_QUIET
    keep_secrets: bool | None = None
    agent_slug: str | None = None


class RoundOfFile(BaseModel):
    """A round that a file was made from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    round: int
    digest: str


class ExportedFile(BaseModel):
    """One exported file, as the manifest keeps it. `withheld` counts secrets by kind; `through_seq` is the last landed
    sequence that the rounds were made from, `landed` a digest of the names and sizes of the files up to it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    session: str
    conversation: str
    agent: str
    workflow: str
    rounds: tuple[RoundOfFile, ...]
    through_seq: int = 0
    landed: str = ""
    sha256: str
    bytes: int
    turns: int
    secrets: Literal["withheld", "kept"]
    withheld: dict[str, int]
    warnings: tuple[str, ...]
    asked: str
    """The slug and treatment of secrets that were asked for, and the exporter's version: other ones make another
    file."""


class ExportOutcome(BaseModel):
    """One conversation after its turn. `file` is set when its export stands, and for an earlier export that there
    is a warning of; `reason` says why nothing was written."""

    model_config = ConfigDict(frozen=True)

    conversation: str
    state: State
    name: str = ""
    file: ExportedFile | None = None
    rule: str = ""
    reason: str = ""

    @property
    def session(self) -> str:
        """The conversation, under the name that other outcomes have for it."""
        return self.conversation
