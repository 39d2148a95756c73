"""What every record has while a source puts it together, whatever its dialect."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from schemas.session_data import Dropped, Part, Record, Usage

__all__ = ["Draft"]


@dataclass(slots=True)
class Draft:
    """The fields are those of `schemas.session_data.Record`; how flags and parts are gathered is a source's own."""

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
    usage: Usage | None = None
    model: str = ""
    dropped: tuple[Dropped, ...] = ()

    def record_of(self, ord: int, off: int, sha: str, size: int, flags: Iterable[str], parts: Iterable[Part]) -> Record:
        """The record of the line at `off`, `size` bytes long, whose digest is `sha`."""
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
            flags=tuple(flags),
            usage=self.usage,
            model=self.model,
            parts=tuple(parts),
            dropped=self.dropped,
        )
