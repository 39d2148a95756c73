"""Stage 2: the session's streams, their roles and labels, and the session's own facts (session-flow specification,
section 6).
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from .canonical import Delivered
from .entries import Kind, flag
from .index import Restructured
from .row import Row

__all__ = ["AUXILIARY", "CHILD", "MAIN", "NO_STREAMS", "Stream", "Streams", "follow_streams", "role"]

MAIN, CHILD, AUXILIARY = "main", "child", "auxiliary"
_AUXILIARY = flag("auxiliary")
_AS_AUXILIARY, _AS_CHILD = 1, 2


class Stream(Row, frozen=True):
    """seq, row: its first entry. last: its latest time in nanoseconds, 0 = none."""

    seq: int
    row: int
    records: int
    last: int


class Streams(NamedTuple):
    """announced: child stream to whether entries name it with the auxiliary flag (1), without (2), or both (3)."""

    streams: dict[str, Stream]
    labels: dict[str, str]
    announced: dict[str, int]
    title: str
    first: int
    last: int


NO_STREAMS = Streams({}, {}, {}, "", 0, 0)


def role(streams: Streams, name: str) -> str:
    if name == MAIN:
        return MAIN
    return AUXILIARY if streams.announced.get(name) == _AS_AUXILIARY else CHILD


def follow_streams(before: Streams, delivered: Delivered) -> Streams:
    """Raises `Restructured` when a known stream changes its role: its talks were cut by the old one."""
    labels = dict(before.labels)
    announced = dict(before.announced)
    title, first, last = before.title, before.first, before.last
    entries = delivered.entries
    for entry in entries:
        ts = entry.ts
        if ts:
            if not first or ts < first:
                first = ts
            if not last or ts > last:
                last = ts
        if entry.label:
            if entry.kind == Kind.META:
                for name in (entry.stream, entry.child):
                    if name:
                        labels.setdefault(name, entry.label)
            elif not entry.record and entry.kind != Kind.MANIFEST:
                title = entry.label
        if entry.child:
            how = _AS_AUXILIARY if entry.flags & _AUXILIARY else _AS_CHILD
            announced[entry.child] = announced.get(entry.child, 0) | how
    streams = dict(before.streams)
    for name, places in delivered.streams.items():
        start = entries[places[0]]
        known = streams.get(name)
        # Starting from 0: a time before 1970 is nobody's last.
        latest = max(0, max(entries[place].ts for place in places))
        if known is None:
            streams[name] = Stream(start.seq, start.row, len(places), latest)
        else:
            if latest and (not known.last or latest > known.last):
                known = msgspec.structs.replace(known, last=latest)
            streams[name] = msgspec.structs.replace(known, records=known.records + len(places))
    after = Streams(streams, labels, announced, title, first, last)
    if announced != before.announced and any(role(before, name) != role(after, name) for name in before.streams):
        raise Restructured
    return after
