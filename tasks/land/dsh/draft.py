"""A record while it is being put together."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import structs

from schemas.session_data import Dropped, Part, Record, Usage

__all__ = ["Draft"]


@dataclass(slots=True)
class Draft:
    """The fields are those of `schemas.session_data.Record`; `tokens` is the usage object that the event holds. Of one
    that is not `wanted` only the log's state is: it needs no parts."""

    wanted: bool = True
    id: str = ""
    parent: str = ""
    call: str = ""
    run: str = ""
    continues: str = ""
    tool: str = ""
    child: str = ""
    batch: str = ""
    label: str = ""
    started_by: str = ""
    from_: str = "runtime"
    time: str = ""
    trigger: str = ""
    flags: tuple[str, ...] = ()
    usage: Usage | None = None
    tokens: object = None
    model: str = ""
    parts: list[Part] | None = None
    dropped: tuple[Dropped, ...] = ()

    @staticmethod
    def bare(record: Record, part: Part) -> Record:
        """A record of the same line that holds nothing but `part`."""
        line = Record(ord=record.ord, off=record.off, sha=record.sha, bytes=record.bytes)
        return structs.replace(line, id=record.id, run=record.run, time=record.time, from_="runtime", parts=(part,))

    def record(self, ord: int, off: int, sha: str, size: int) -> Record:
        return Record(
            ord=ord,
            off=off,
            sha=sha,
            bytes=size,
            id=self.id,
            parent=self.parent,
            call=self.call,
            run=self.run,
            continues=self.continues,
            tool=self.tool,
            child=self.child,
            batch=self.batch,
            label=self.label,
            started_by=self.started_by,
            from_=self.from_,
            time=self.time,
            trigger=self.trigger,
            flags=self.flags,
            usage=self.usage,
            model=self.model,
            parts=tuple(self.parts or ()),
            dropped=self.dropped,
        )
