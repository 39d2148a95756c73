"""A record while it is being put together."""

from __future__ import annotations

from dataclasses import dataclass, field

from schemas.session_data import Dropped, Part, Record, Usage
from tasks.land.codex.parts import data_part

__all__ = ["Draft"]


@dataclass(slots=True)
class Draft:
    """`body` is the line itself; the other fields are those of `schemas.session_data.Record`."""

    body: bytes = b""
    id: str = ""
    parent: str = ""
    call: str = ""
    run: str = ""
    continues: str = ""
    tool: str = ""
    child: str = ""
    label: str = ""
    from_: str = "runtime"
    time: str = ""
    trigger: str = ""
    flags: list[str] = field(default_factory=list)
    usage: Usage | None = None
    model: str = ""
    parts: list[Part] = field(default_factory=list)
    dropped: tuple[Dropped, ...] = ()

    def keep_line(self, *flags: str) -> None:
        """The line as it stands, for what has no part of its own."""
        self.flags += flags
        self.parts.append(data_part(self.body))

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
            label=self.label,
            from_=self.from_,
            time=self.time,
            trigger=self.trigger,
            flags=tuple(self.flags),
            usage=self.usage,
            model=self.model,
            parts=tuple(self.parts),
            dropped=self.dropped,
        )
