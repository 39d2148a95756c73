"""Reading a source file on from its cursor, in windows of whole lines (Claude Code specification, section 2).

What was landed must still be there: a file that is shorter than its cursor, or whose last mebibyte before the cursor
has changed, was rewritten behind our back, and nothing of it may be put after what it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

from storage.objects import ObjectStat, ObjectStore
from tasks.land.cursors import SourceCursor
from tasks.land.source import Line

__all__ = ["GrowingFile", "Limits", "Oversized", "Rewritten", "Window"]

TAIL_BYTES = 1 << 20
_PIECE = 8 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """`max_delta_bytes`: of the source in one landed file, but for a line that is longer; `max_line_bytes`: of one line
    in memory, and of a window that a long line made grow."""

    max_delta_bytes: int
    max_line_bytes: int


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Why the file is not what the cursor read."""

    reason: str


@dataclass(frozen=True, slots=True)
class Oversized:
    """A line that stays where it is: its length in bytes and its digest."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Window:
    """Whole lines from `start`, newlines included, or one oversized line; `tail_sha256` belongs to its end."""

    start: int
    end: int
    data: bytes
    oversized: Oversized | None
    tail_sha256: str

    def lines(self, after_ord: int) -> Iterator[Line]:
        """The window's lines, numbered on from `after_ord`."""
        off = self.start
        for number, body in enumerate(self.data[:-1].split(b"\n"), after_ord + 1):
            yield Line(number, off, body)
            off += len(body) + 1


class GrowingFile:
    """A file that is appended to, up to the size it had when it was listed."""

    def __init__(self, store: ObjectStore, stat: ObjectStat, limits: Limits) -> None:
        self._store = store
        self._stat = stat
        self._limits = limits
        self._checked: tuple[int, str] | None = None
        self._tail = b""

    def check(self, cursor: SourceCursor) -> Rewritten | None:
        """Whether what the cursor read is still there. Reads at most the last mebibyte of it, and that once."""
        size, offset = self._stat.size, cursor.offset
        if size < offset:
            return Rewritten(f"truncated: size {size} < offset {offset}")
        if self._checked == (offset, cursor.tail_sha256):
            return None
        start = max(0, offset - TAIL_BYTES)
        tail = self._store.read_range(self._stat.key, start, offset - start) if offset else b""
        if cursor.tail_sha256 and sha256(tail).hexdigest() != cursor.tail_sha256:
            return Rewritten("tail digest mismatch (source rewritten behind cursor)")
        self._checked = offset, cursor.tail_sha256
        self._tail = tail
        return None

    def window(self, offset: int) -> Window | None:
        """The lines from `offset`, which `check` has passed; None when there is no whole line yet."""
        rest = self._stat.size - offset
        data = self._read(offset, min(rest, self._limits.max_delta_bytes))
        if b"\n" not in data and len(data) < rest:
            return self._long_line(offset, rest)
        return self._whole_lines(offset, data)

    def _long_line(self, offset: int, rest: int) -> Window | None:
        """A line that no window holds brings the whole rest with it, as far as memory allows."""
        data = self._read(offset, min(rest, self._limits.max_line_bytes))
        if b"\n" in data or len(data) == rest:
            return self._whole_lines(offset, data)
        length = self._line_length(offset + len(data), data)
        return None if length is None else self._oversized(offset, *length)

    def _line_length(self, position: int, start: bytes) -> tuple[int, str, bytes] | None:
        """Length, digest and last mebibyte of the line that begins with `start`; None when it does not end."""
        digest = sha256(start)
        length, tail = len(start), start[-TAIL_BYTES:]
        while piece := self._read(position, min(_PIECE, self._stat.size - position)):
            body, newline, _ = piece.partition(b"\n")
            digest.update(body)
            length += len(body)
            tail = (tail + body)[-TAIL_BYTES:]
            if newline:
                return length, digest.hexdigest(), tail
            position += len(piece)
        return None

    def _oversized(self, offset: int, length: int, digest: str, tail: bytes) -> Window:
        end = offset + length + 1
        return Window(offset, end, b"", Oversized(length, digest), self._advance(end, tail + b"\n"))

    def _whole_lines(self, offset: int, data: bytes) -> Window | None:
        data = data[: data.rfind(b"\n") + 1]
        if not data:
            return None
        end = offset + len(data)
        return Window(offset, end, data, None, self._advance(end, data))

    def _advance(self, end: int, data: bytes) -> str:
        self._tail = (self._tail + data[-TAIL_BYTES:])[-TAIL_BYTES:]
        digest = sha256(self._tail).hexdigest()
        self._checked = end, digest
        return digest

    def _read(self, start: int, length: int) -> bytes:
        return self._store.read_range(self._stat.key, start, length) if length > 0 else b""
