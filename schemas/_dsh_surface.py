"""The surface: the ordered messages that a model sees, as a log's events place them (DSH specification, section 3).

A message is appended, or takes the place of a span of those that are there. So an old message can be gone, and one with
a high number can stand before one with a low number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from schemas._dsh_json import is_safe

__all__ = ["Surface"]

_END = -1


class Surface:
    """The numbers of the events on the surface, in surface order."""

    def __init__(self, generation: int) -> None:
        self._keys = ("startSeq", "endSeq") if generation >= 3 else ("start", "end")
        # A ring through _END: every change costs what it takes away, however long the surface is.
        self._next = {_END: _END}
        self._previous = {_END: _END}

    def __iter__(self) -> Iterator[int]:
        seq = self._next[_END]
        while seq != _END:
            yield seq
            seq = self._next[seq]

    def span(self, operation: Any) -> list[int] | None:
        """What ``operation`` takes away, in surface order (nothing when it appends), or None when it cannot be done."""
        if operation == "append":
            return []
        if not isinstance(operation, dict) or operation.keys() != {"op", *self._keys} or operation["op"] != "replace":
            return None
        first, last = (operation[key] for key in self._keys)
        if not is_safe(first) or not is_safe(last) or first not in self._next or last not in self._next:
            return None
        span = [int(first)]
        while span[-1] != last:
            span.append(self._next[span[-1]])
            if span[-1] == _END:
                return None
        return span

    def place(self, seq: int, span: list[int]) -> None:
        """Put event ``seq`` where ``span`` is, or at the end when that is nothing."""
        after = self._next[span[-1]] if span else _END
        if span:
            before = self._previous[span[0]]
            for each in span:
                del self._next[each], self._previous[each]
            self._next[before], self._previous[after] = after, before
        self._insert_before(after, seq)

    def _insert_before(self, after: int, seq: int) -> None:
        before = self._previous[after]
        self._next[before] = self._previous[after] = seq
        self._next[seq], self._previous[seq] = after, before
