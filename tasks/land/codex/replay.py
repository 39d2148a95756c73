"""Which of a thread's lines are copies of another thread's.

A fork and a sub-agent of an older client begin with a copy of their parent's lines, whose times are those of the
copying. The copy ends where the thread's own first turn begins.
"""

from __future__ import annotations

import re
from datetime import datetime

from tasks.land.codex.rows import Row, number, text

__all__ = ["Replay"]

_VERSION_7 = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_MILLISECONDS = 1e11
_PAUSE = 1.0


class Replay:
    """Told each row of a thread in order, says whether it is a copy."""

    def __init__(self, thread: str) -> None:
        self._thread = thread
        self._created = ""
        self._rows = 0
        self._first_ordinal: int | None = None
        self._is_based = False
        self._copying = False
        self._saw_turns = False
        self._before = 0.0

    def is_copy(self, row: Row) -> bool:
        self._rows += 1
        if self._rows == 1:
            self._begin(row)
            return False
        now, before = _seconds(row.time), self._before
        self._before = now or before
        if self._first_ordinal is not None:
            return row.ordinal is not None and row.ordinal < self._first_ordinal
        if self._is_based:
            return False
        if self._rows == 2 and row.kind == "session_meta" and text(row.payload, "id") != self._thread:
            self._copying = True
        if not self._copying:
            return bool(now and self._created and now < _seconds(self._created))
        if self._ends(row, now - before if now and before else 0.0):
            self._copying = False
        return self._copying

    def _begin(self, row: Row) -> None:
        self._before = _seconds(row.time)
        if row.kind == "session_meta":
            self._created = text(row.payload, "timestamp")
            first = row.payload.get("subagent_history_start_ordinal")
            self._first_ordinal = first if type(first) is int else None
            self._is_based = isinstance(row.payload.get("history_base"), dict)

    def _ends(self, row: Row, pause: float) -> bool:
        if row.name in ("task_started", "turn_started") and row.kind == "event_msg":
            self._saw_turns = True
            return self._is_own(row)
        if self._saw_turns:
            return False
        is_prompt = row.name == "user_message" or text(row.payload, "role") == "user"
        return pause > _PAUSE and (row.kind == "turn_context" or is_prompt)

    def _is_own(self, row: Row) -> bool:
        own, turn = _born(self._thread), _born(text(row.payload, "turn_id"))
        if turn is not None and own is not None:
            return turn >= own
        started = number(row.payload, "started_at")
        if started > _MILLISECONDS:
            started /= 1000
        return started >= int(_seconds(self._created)) > 0


def _born(identity: str) -> int | None:
    """The milliseconds in a version 7 id."""
    found = _VERSION_7.fullmatch(identity)
    return None if found is None else int(found[1] + found[2], 16)


def _seconds(time: str) -> float:
    try:
        return datetime.fromisoformat(time).timestamp() if time else 0.0
    except (ValueError, OverflowError):
        return 0.0
