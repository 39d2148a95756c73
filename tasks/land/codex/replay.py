"""Which of a thread's lines are copies of another thread's.

A fork and a sub-agent of an older client begin with a copy of their parent's lines, whose times are those of the
copying. The copy ends where the thread's own first turn begins; where clients write no lines about turns it ends where
the parent's lines do, or, when the parent is not at hand, with a pause, which is a guess (Codex notes, section 6).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tasks.land.codex.parents import TASK_STARTED, FindParent, IsCopyOf, Parent, seconds
from tasks.land.codex.rows import Members, Row, number, read_line, text, within
from tasks.land.source import Line

__all__ = ["EVERY_LINE", "Judgement", "Replay", "judge"]

EVERY_LINE = 1 << 62
"""The end of a copy that has not ended."""

_VERSION_7 = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_MILLISECONDS = 1e11
_PAUSE = 1.0

_GUESS = "a guess"
_ALONE = "its parent {} is not at hand, so that where its copied lines end is a guess"
_PARTED = "its lines part from its parent's before any turn begins, though its parent has turns"
_OUTRUN = "it goes on at once where the lines of its parent end, which may not be all there yet"


@dataclass(frozen=True, slots=True)
class Judgement:
    """Which lines of a thread are copies: those from the second on to the `end`th, which is `EVERY_LINE` while no other
    has come. `doubt` says why the end may well be another; `is_last` that it would be another if the parent had more
    lines; `parent_length` is how many it has, 0 without one. `created` is when the thread was made, in seconds since
    the epoch, 0 when it does not say."""

    end: int
    doubt: str
    is_last: bool
    parent_length: int
    created: float


def judge(thread: str, lines: Iterable[Line], find_parent: FindParent, *, sure: int = 0) -> Judgement:
    """Where the copy ends that a thread with these lines begins with; the first `sure` lines have landed as such, but
    for the thread's own first one. Reads no further than that end."""
    replay = Replay(thread, find_parent, sure=sure)
    for line in lines:
        row = read_line(line)
        if row is None:
            continue
        is_copy = replay.is_copy(line, row)
        if replay.has_begun and not is_copy:
            break
    return replay.judgement()


class Replay:
    """Told each row of a thread in order, says whether it is a copy. `copied` is the last line of the copy, where that
    is known before."""

    def __init__(self, thread: str, find_parent: FindParent, *, copied: int = 0, sure: int = 0) -> None:
        self._thread = thread
        self._find_parent = find_parent
        self._copied = copied
        self._sure = sure
        self._name = ""
        self._parent: Parent | None = None
        self._is_copy_of: IsCopyOf | None = None
        self._place = 0
        self._is_agents = False
        self._created: float | None = None
        self._rows = 0
        self._first_ordinal: int | None = None
        self._is_based = False
        self._copying = False
        self._saw_turns = False
        self._before = self._first = 0.0
        self._end = 0
        self._parted = 0
        self._doubt = ""
        self._is_last = False

    @property
    def has_begun(self) -> bool:
        """Whether the second row has been told, which shows what kind of thread it is."""
        return self._rows > 1

    def judgement(self) -> Judgement:
        """What the rows told so far come to."""
        end, doubt = self._end or EVERY_LINE, self._doubt
        if self._parent is None and (doubt or not (self._end or self._saw_turns)):
            doubt = _ALONE.format(self._name)
        elif self._parent is not None and not self._end and self._parted and not self._saw_turns:
            end, doubt = self._parted, _PARTED
        created = self._created or (_born(self._thread) or 0) / 1000 or self._first
        length = self._parent.length if self._parent is not None else 0
        return Judgement(end, doubt, self._is_last, length, created)

    def is_copy(self, line: Line, row: Row) -> bool:
        self._rows += 1
        if self._rows == 1:
            self._begin(row)
            return False
        if self._copied:
            return line.ord <= self._copied
        now, before = seconds(row.time), self._before
        self._before = now or before
        if self._first_ordinal is not None:
            return row.ordinal is not None and row.ordinal < self._first_ordinal
        if self._is_based:
            return False
        if self._rows == 2 and row.kind == "session_meta" and text(row.payload, "id") != self._thread:
            self._begin_copy(row)
        if not self._copying:
            return not self._name and bool(now and self._created is not None and now < self._created)
        if self._ends(line, row, now, now - before if now and before else 0.0):
            self._copying = False
            self._end = line.ord - 1
        return self._copying

    def _begin(self, row: Row) -> None:
        self._before = self._first = seconds(row.time)
        if row.kind == "session_meta":
            created = text(row.payload, "timestamp")
            self._created = seconds(created) if created else None
            first = row.payload.get("subagent_history_start_ordinal")
            self._first_ordinal = first if type(first) is int else None
            self._is_based = isinstance(row.payload.get("history_base"), dict)
            self._is_agents = _is_agents(row.payload)

    def _begin_copy(self, row: Row) -> None:
        self._copying = True
        self._name = text(row.payload, "id")[:64] or "without a name"
        self._parent = self._find_parent(row.payload)
        if self._parent is not None:
            self._is_copy_of = self._parent.begin()

    def _ends(self, line: Line, row: Row, now: float, pause: float) -> bool:
        is_parents = self._is_parents(line, row, now)
        if row.name in TASK_STARTED and row.kind == "event_msg":
            self._saw_turns, self._doubt = True, ""
            # What the parent said when it was at hand is not taken back because it is gone.
            return self._is_own(row) and (self._parent is not None or line.ord > self._sure)
        if self._saw_turns:
            return False
        is_prompt = row.name == "user_message" or text(row.payload, "role") == "user"
        is_new = pause > _PAUSE and (row.kind == "turn_context" or is_prompt)
        if self._parent is None:
            self._doubt = _GUESS
            return is_new and line.ord > self._sure
        if is_parents:
            return False
        if self._parent.turns:
            # Its copies end with a turn, unless it has got its turns since.
            self._parted = self._parted or line.ord - 1
            return False
        self._is_last = self._place >= len(self._parent.lines)
        self._doubt = _OUTRUN if self._is_last and not is_new else ""
        return True

    def _is_parents(self, line: Line, row: Row, now: float) -> bool:
        """Whether the line is the next of the parent's, which it was when that had been written before it."""
        if self._parent is None or self._is_copy_of is None or self._parted:
            return False
        lines = self._parent.lines
        if self._rows == 2:
            # A description of another thread is none of this one's, whatever else it says.
            self._is_copy_of(line, row, lines[0])
            self._place = 1
            return True
        while self._place < len(lines):
            theirs = lines[self._place]
            if self._is_copy_of(line, row, theirs):
                if 0 < now < theirs.time:
                    return False
                self._place += 1
                return True
            if not (self._is_agents and theirs.is_left_out):
                return False
            self._place += 1
        return False

    def _is_own(self, row: Row) -> bool:
        own, turn = _born(self._thread), _born(text(row.payload, "turn_id"))
        if turn is not None and own is not None:
            return turn >= own
        if self._parent is not None and text(row.payload, "turn_id") in self._parent.turns:
            return False
        started = number(row.payload, "started_at")
        if started > _MILLISECONDS:
            started /= 1000
        created = int(self._created or 0)
        if not started >= created > 0:
            return False
        if int(started) == created:
            # The parent may have begun a turn in the second in which it was copied.
            if self._parent is None:
                self._doubt = _GUESS
            else:
                self._is_last = self._place >= len(self._parent.lines)
        return True


def _is_agents(meta: Members) -> bool:
    return bool(text(meta, "parent_thread_id")) or "subagent" in within(meta, "source")


def _born(identity: str) -> int | None:
    """The milliseconds in a version 7 id."""
    found = _VERSION_7.fullmatch(identity)
    return None if found is None else int(found[1] + found[2], 16)
