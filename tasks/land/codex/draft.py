"""A rollout's record while it is being put together."""

from __future__ import annotations

from dataclasses import dataclass, field

from schemas.session_data import Part, Record
from tasks.land.codex.parts import data_part
from tasks.land.draft import Draft as AnyDraft

__all__ = ["Draft"]


@dataclass(slots=True)
class Draft(AnyDraft):
    """`body` is the line itself."""

    body: bytes = b""
    flags: list[str] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)

    def keep_line(self, *flags: str) -> None:
        """The line as it stands, for what has no part of its own."""
        self.flags += flags
        self.parts.append(data_part(self.body))

    def record(self, ord: int, off: int, sha: str, size: int) -> Record:
        return self.record_of(ord, off, sha, size, self.flags, self.parts)
