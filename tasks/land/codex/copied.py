"""How a rollout that begins with copies of its parent's lines is read: from where its own lines begin, which is known,
waited for, guessed, or found out later (Codex notes, section 6, rule 4).

A guess lands marked `replay_guessed`, and is looked at again in every pass until its parent is at hand. When it was
wrong the file lands anew, as its next generation; what has landed stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import NamedTuple, Protocol, Self

from storage.replacements import anew, newest
from tasks.land.codex.convert import GUESSED, Reading
from tasks.land.codex.families import copies_untold
from tasks.land.codex.parents import Parent
from tasks.land.codex.replay import EVERY_LINE, Judgement, judge
from tasks.land.codex.rows import Members, read_line, text
from tasks.land.source import Line, Pass, Sighting

__all__ = ["Parents", "read_copies"]

_NANO = 1e9
_ALL, _SO_FAR, _NOWHERE = "all", "+", "-"
_WORDS = re.compile(r"(all|[0-9]{1,18})(\+?)(?: @([0-9]{1,18}))? (.*)")


class Parents(Protocol):
    """The threads that are at hand, each asked for by its description of itself."""

    def find(self, meta: Members) -> Parent | None:
        """The thread, None when it is not at hand."""

    def stamp(self, meta: Members) -> str:
        """A word that changes when there is more of the thread, empty when it is not at hand."""


class _Memo(NamedTuple):
    """What a cursor keeps: the copy's last line, whether that holds only as long as the parent has no more lines, how
    many those were, 0 without a parent, and what else was known of it when that was told."""

    end: int
    is_last: bool
    length: int
    stamp: str

    @classmethod
    def read(cls, words: str) -> Self | None:
        found = _WORDS.fullmatch(words)
        if found is None:
            return None
        end, is_last, length, stamp = found.groups()
        stamp = "" if stamp == _NOWHERE else stamp
        return cls(EVERY_LINE if end == _ALL else int(end), bool(is_last), int(length or 0), stamp)

    def __str__(self) -> str:
        end = _ALL if self.end == EVERY_LINE else self.end
        return f"{end}{_SO_FAR if self.is_last else ''} @{self.length} {self.stamp or _NOWHERE}"


def read_copies(
    sighting: Sighting, thread: str, lines: Callable[[int], Iterator[Line]], parents: Parents, at: Pass
) -> tuple[Sighting, Reading]:
    """The sighting of a thread's rollout, as what it lands and whether it does, and how to read it. `lines` reads the
    rollout anew, that many bytes at a time."""
    if (meta := _copied_meta(thread, lines(1 << 16))) is None:
        return sighting, Reading()
    base = sighting.file
    generation, cursor = newest(base.target, at.cursors)
    file = replace(base, prefix=anew(base.prefix, generation))
    sighting = replace(sighting, file=file, replaces=_before(base.target, generation))
    landed = 0 if cursor is None else cursor.ord
    known = None if cursor is None else _Memo.read(cursor.memo)
    mark = "" if cursor is None else cursor.mark
    if known is None and landed > 1:
        return sighting, Reading()  # it landed before copies were judged as a whole
    stamp = parents.stamp(meta)
    is_open = known is not None and known.end == EVERY_LINE
    if known is not None and cursor is not None:
        is_same = stamp == known.stamp and (not is_open or cursor.size == sighting.stat.size)
        if is_same or not (is_open or mark or known.is_last):
            return _reads(sighting, known, mark, generation)
    found = judge(thread, lines(1 << 20), parents.find, sure=landed if is_open else 0)
    judged = _Memo(found.end, found.is_last, found.parent_length, stamp)
    if known is not None and not is_open and found.parent_length <= known.length:
        return _reads(sighting, known._replace(stamp=stamp), mark, generation)  # it knows no more than the one before
    if known is not None and _copies(known.end, landed) != _copies(found.end, landed):
        sighting = replace(sighting, file=replace(base, prefix=anew(base.prefix, generation + 1)), replaces=file.target)
        return _reads(sighting, judged, GUESSED if found.doubt else "", generation + 1)
    if found.doubt and not mark and (left := _left(found, at)):
        why = f"{found.doubt}; it lands by that in {left}, or when the parent is there"
        memo = "" if cursor is None else cursor.memo
        return replace(sighting, held=True, waiting=why, memo=memo, mark=mark), Reading()
    return _reads(sighting, judged, GUESSED if found.doubt else "", generation)


def _reads(sighting: Sighting, memo: _Memo, mark: str, generation: int) -> tuple[Sighting, Reading]:
    return replace(sighting, memo=str(memo), mark=mark), Reading(memo.end, bool(mark), generation)


def _copied_meta(thread: str, lines: Iterable[Line]) -> Members | None:
    """What the thread that is copied says of itself, None where none is, or another rule tells copies."""
    rows = list(islice((row for line in lines if (row := read_line(line)) is not None), 2))
    if len(rows) < 2 or rows[1].kind != "session_meta" or text(rows[1].payload, "id") == thread:
        return None
    is_told = rows[0].kind == "session_meta" and not copies_untold(rows[0].payload)
    return None if is_told else rows[1].payload


def _before(target: str, generation: int) -> str:
    return anew(target, generation - 1) if generation > 1 else ""


def _copies(end: int, landed: int) -> int:
    """How many of the landed lines are copies, or come before them."""
    return min(end, landed)


def _left(found: Judgement, at: Pass) -> str:
    """For how long a thread that was just made still waits, empty for one that does not. Its own word says when it was
    made; a clock that far before it says nothing."""
    age = at.now / _NANO - found.created
    if not found.created or abs(age) >= at.parent_wait:
        return ""
    minutes = max(1, round((at.parent_wait - age) / 60))
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
