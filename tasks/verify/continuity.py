"""Continuity: no line and no byte of a source is missing between its landed records (specification, section 9).

The records of one kind in one stream or run folder, in sequence order, are the lines of one source. Each is compared
with the highest line seen so far: one at or below it was landed again, one further on than the next leaves an ord
gap, and one that does not start where the line before ended leaves a byte gap. Counting starts at line 0, byte 0. An
append cursor that is ahead of the records leaves an end gap: the collector read more than it landed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from schemas.session_data import Record
from storage.replacements import generation_of
from storage.zone import Cursor, LandedRef
from tasks.verify.problems import Problem

__all__ = ["START", "Position", "check_cursor", "check_records", "is_continuous"]

_CONTINUOUS = {
    "streams": frozenset({"transcript", "meta", "changes"}),
    "runs": frozenset({"journal", "manifest", "script"}),
}


@dataclass(frozen=True, slots=True)
class Position:
    """How far a source is known to have landed: its highest line, and the byte its next line starts at."""

    ord: int
    next_byte: int


START = Position(0, 0)


def is_continuous(source: LandedRef | Cursor) -> bool:
    """Whether files of this folder and kind are the lines of one source, in whichever of its landings."""
    return generation_of(source.prefix)[0] in _CONTINUOUS.get(source.folder, ())


def check_records(
    file: str, records: Iterable[Record], position: Position | None
) -> tuple[Position | None, int, list[Problem]]:
    """One file's records after `position`: where they end, how many were landed again, and the gaps before them.

    A position of None is unknown, after a file that could not be read: the first record then sets it.
    """
    problems: list[Problem] = []
    relanded = 0
    highest, next_byte = (position.ord, position.next_byte) if position else (None, 0)
    for row, record in enumerate(records, 1):
        line = record.ord
        if highest is not None:
            if line <= highest:
                relanded += 1
                continue
            if line != highest + 1:
                problems.append(Problem(file, row, "ord_gap", f"expected {highest + 1}, got {line}"))
            if record.off != next_byte:
                problems.append(Problem(file, row, "byte_gap", f"expected {next_byte}, got {record.off}"))
        highest = line
        next_byte = record.off + record.bytes + 1
    return (None if highest is None else Position(highest, next_byte)), relanded, problems


def check_cursor(cursor: Cursor, position: Position | None) -> list[Problem]:
    """The end gap that an append cursor shows, if any; snapshots have no position to compare."""
    values = cursor.values
    if values.get("kind") != "append" or position is None:
        return []
    try:
        line, byte = int(values.get("ord") or 0), int(values.get("offset") or 0)
    except ValueError:
        return [Problem(cursor.key, None, "cursor", "its ord and offset are not numbers")]
    if line <= position.ord and byte <= position.next_byte:
        return []
    detail = f"read to line {line}, byte {byte}, but landed to line {position.ord}, byte {position.next_byte}"
    return [Problem(cursor.key, None, "end_gap", detail)]
