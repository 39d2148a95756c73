"""What has to be known of the thread that another one was made from, to tell copies of its lines (Codex notes, section
6, where replay ends).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple, TypeAlias

import msgspec

from tasks.land.codex.rows import Members, Row, read_line, text
from tasks.land.source import Line

__all__ = ["TASK_STARTED", "FindParent", "Parent", "ParentLine", "PrintOf", "fingerprint", "parent_of", "seconds"]

TASK_STARTED = ("task_started", "turn_started")

PrintOf: TypeAlias = Callable[[Line, Row], bytes]
"""Told each line of a copy that decodes, in order, what it has in common with the line that it copies."""


class ParentLine(NamedTuple):
    """A line that a copy may hold. `time` is in seconds, 0 for none; `is_left_out` says that a sub-agent's copy, which
    has only what was asked and in which context, may be without it."""

    print: bytes
    time: float
    is_left_out: bool


@dataclass(frozen=True, slots=True)
class Parent:
    """`turns` are the turns that the thread has started, `lines` its lines that decode, in order, and `begin` gives
    what lines of a copy have to be told to."""

    turns: frozenset[str]
    lines: tuple[ParentLine, ...]
    begin: Callable[[], PrintOf] = lambda: lambda line, row: fingerprint(row)


FindParent: TypeAlias = Callable[[Members], Parent | None]
"""The thread that describes itself so, None when it is not at hand."""


def parent_of(lines: Iterable[Line]) -> Parent:
    """The thread with these lines."""
    turns: set[str] = set()
    found: list[ParentLine] = []
    for line in lines:
        row = read_line(line)
        if row is None:
            continue  # what is damaged is not copied, and in a copy it is not counted either
        if row.kind == "event_msg" and row.name in TASK_STARTED:
            turns.add(text(row.payload, "turn_id"))
        found.append(ParentLine(fingerprint(row), seconds(row.time), not _is_asked(row)))
    return Parent(frozenset(turns), tuple(found))


def fingerprint(row: Row) -> bytes:
    """What a copy of the line has in common with it: all but its time, and an id that a copy gets anew."""
    kept = {key: value for key, value in row.payload.items() if key != "id" or row.kind == "session_meta"}
    return sha256(msgspec.json.encode([row.kind, kept], order="deterministic")).digest()[:16]


def seconds(time: str) -> float:
    """A line's time, 0 for none."""
    try:
        return datetime.fromisoformat(time).timestamp() if time else 0.0
    except (ValueError, OverflowError):
        return 0.0


def _is_asked(row: Row) -> bool:
    asks = row.name == "user_message" or text(row.payload, "role") in ("user", "developer", "system")
    return asks or row.kind in ("session_meta", "turn_context")
