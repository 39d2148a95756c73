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

__all__ = ["TASK_STARTED", "FindParent", "IsCopyOf", "Parent", "ParentLine", "is_asked", "parent_of", "seconds"]

TASK_STARTED = ("task_started", "turn_started")


class ParentLine(NamedTuple):
    """A line that a copy may hold. `time` is in seconds, 0 for none; `is_left_out` says that a sub-agent's copy, which
    has only what was asked and in which context, may be without it; `is_copied` that the parent copied it itself, where
    that makes a difference to its print."""

    print: bytes
    time: float
    is_left_out: bool
    is_copied: bool = False


IsCopyOf: TypeAlias = Callable[[Line, Row, ParentLine], bool]
"""Whether a line of a copy is one of a line of the parent's. It is told the lines that decode in order, the first one,
which describes the parent, too; and of each one of the parent's after another, until one is it."""


def _by_print() -> IsCopyOf:
    last = 0, b""

    def is_copy_of(line: Line, row: Row, other: ParentLine) -> bool:
        nonlocal last
        if last[0] != line.ord:
            last = line.ord, _fingerprint(row)
        return last[1] == other.print

    return is_copy_of


@dataclass(frozen=True, slots=True)
class Parent:
    """`turns` are the turns that the thread has started, `lines` its lines that decode, in order, `length` how many
    there are with those that do not, and `begin` gives what tells the lines of one copy."""

    turns: frozenset[str]
    lines: tuple[ParentLine, ...]
    length: int
    begin: Callable[[], IsCopyOf] = _by_print


FindParent: TypeAlias = Callable[[Members], Parent | None]
"""The thread that describes itself so, None when it is not at hand."""


def parent_of(lines: Iterable[Line]) -> Parent:
    """The thread with these lines."""
    turns: set[str] = set()
    found: list[ParentLine] = []
    length = 0
    for line in lines:
        length = line.ord
        row = read_line(line)
        if row is None:
            continue  # what is damaged is not copied, and in a copy it is not counted either
        if row.kind == "event_msg" and row.name in TASK_STARTED:
            turns.add(text(row.payload, "turn_id"))
        found.append(ParentLine(_fingerprint(row), seconds(row.time), not is_asked(row)))
    return Parent(frozenset(turns), tuple(found), length)


def _fingerprint(row: Row) -> bytes:
    """What a copy of the line has in common with it: all but its time, and an id that a copy gets anew."""
    kept = {key: value for key, value in row.payload.items() if key != "id" or row.kind == "session_meta"}
    return sha256(msgspec.json.encode([row.kind, kept], order="deterministic")).digest()[:16]


def seconds(time: str) -> float:
    """A line's time, 0 for none."""
    try:
        return datetime.fromisoformat(time).timestamp() if time else 0.0
    except (ValueError, OverflowError):
        return 0.0


def is_asked(row: Row) -> bool:
    """Whether the row says what was asked, or in which context."""
    asks = row.name == "user_message" or text(row.payload, "role") in ("user", "developer", "system")
    return asks or row.kind in ("session_meta", "turn_context")
