"""A thread's records where it has landed more than once: in the order of its lines, without those that are copies.

A thread that begins with copied lines lands anew when it turns out where they end (`storage.replacements`). What landed
first stays, so that prompts of its parent may stand among its own, and lines of its own may have landed later than
those that follow them; the last landing tells which are which (Codex notes, section 6).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from schemas.session_data import Record
from storage.replacements import generation_of

__all__ = ["corrected"]


class _HasRecord(Protocol):
    @property
    def record(self) -> Record: ...


P = TypeVar("P", bound=_HasRecord)


class _Line(NamedTuple):
    first: str
    generation: int
    ord: int


def corrected(records: Sequence[tuple[str, P]]) -> list[P]:
    """The records, each told with the prefix of the file that it landed in, as the last landing of each file has
    them."""
    if all(generation_of(prefix)[1] == 1 for prefix in {prefix for prefix, _ in records}):
        return [each for _, each in records]
    lines = [_Line(*generation_of(prefix), each.record.ord) for prefix, each in records]
    last: dict[str, int] = {}
    for line in lines:
        last[line.first] = max(line.generation, last.get(line.first, 1))
    copies = {
        (line.first, line.ord)
        for line, (_, each) in zip(lines, records, strict=True)
        if line.generation == last[line.first] > 1 and _is_copy(each.record)
    }
    kept = [
        (line, each)
        for line, (_, each) in zip(lines, records, strict=True)
        if line.generation == last[line.first] or (line.first, line.ord) not in copies
    ]
    ordered = {first: iter(_by_line(kept, first)) for first, generation in last.items() if generation > 1}
    return [next(ordered[line.first]) if line.first in ordered else each for line, each in kept]


def _by_line(kept: Iterable[tuple[_Line, P]], first: str) -> list[P]:
    found = [(line.ord, each) for line, each in kept if line.first == first]
    return [each for _, each in sorted(found, key=lambda pair: pair[0])]


def _is_copy(record: Record) -> bool:
    return record.ord > 1 and not record.id and not any(part.k == "unknown" for part in record.parts)
