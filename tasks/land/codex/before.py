"""A file's lines up to a place, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator

from storage.objects import ObjectStore
from tasks.land.outcome import MAX_LINE_BYTES
from tasks.land.source import Line

__all__ = ["lines_before"]

_PIECE = 1 << 20


def lines_before(
    source: ObjectStore, key: str, end: int, *, max_line_bytes: int = MAX_LINE_BYTES, piece: int = _PIECE
) -> Iterator[Line]:
    """The lines that end by `end`; those longer than `max_line_bytes` count, but are left out."""
    number, off, length = 1, 0, 0
    held: list[bytes] = []
    for start in range(0, end, piece):
        *ended, rest = source.read_range(key, start, min(piece, end - start)).split(b"\n")
        for body in ended:
            length += len(body)
            if length <= max_line_bytes:
                yield Line(number, off, b"".join((*held, body)))
            number, off, length = number + 1, off + length + 1, 0
            held.clear()
        length += len(rest)
        if length <= max_line_bytes:
            held.append(rest)
        else:
            held.clear()
