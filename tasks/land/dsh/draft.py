"""An event's record while it is being put together."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import structs

from schemas.session_data import Part, Record
from tasks.land.draft import Draft as AnyDraft

__all__ = ["Draft"]


@dataclass(slots=True)
class Draft(AnyDraft):
    """`tokens` is the usage object that the event holds. Of one that is not `wanted` only the log's state is: it needs
    no parts."""

    wanted: bool = True
    tokens: object = None
    flags: tuple[str, ...] = ()
    parts: list[Part] | None = None

    @staticmethod
    def bare(record: Record, part: Part) -> Record:
        """A record of the same line that holds nothing but `part`."""
        line = Record(ord=record.ord, off=record.off, sha=record.sha, bytes=record.bytes)
        return structs.replace(line, id=record.id, run=record.run, time=record.time, from_="runtime", parts=(part,))

    def record(self, ord: int, off: int, sha: str, size: int) -> Record:
        return self.record_of(ord, off, sha, size, self.flags, self.parts or ())
