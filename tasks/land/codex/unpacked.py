"""A folder of rollouts as if none of them were packed, so that packing one changes nothing but its name.

A packed rollout is unpacked as it is read, and only a small one is kept whole: what is asked for bounds the memory, not
what a file unpacks to.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import zstandard

from schemas.errors import KeyRefused, ObjectMissing, ObjectTooLarge
from storage.objects import GIB, ObjectStat, ObjectStore
from tasks.land.codex.kinds import rollout_name
from tasks.land.view import SourceView

__all__ = ["UnpackedStore", "is_packed"]

_KEPT = 2
_KEPT_BYTES = 16 << 20
_HEAD = 1 << 20
_FIRST_PIECE, _PIECE = 1 << 16, 4 << 20
_STEP = 1 << 10
"""Packed bytes at a time: few enough that even the most harmful ones unpack to some megabytes."""

_LARGEST_RATIO = 2_000
_SMALL = 1 << 20

_Place = tuple[str, str]


@dataclass(slots=True)
class _Reading:
    """A rollout that is being unpacked: `held` is what lies from `start` on, as far as it was needed."""

    pieces: Iterator[bytes]
    start: int = 0
    held: bytearray = field(default_factory=bytearray)

    def read(self, start: int, length: int) -> bytes:
        """At most `length` bytes from `start`, which is not before `self.start`; what comes before them is let go."""
        while len(self.held) < start + length - self.start and (piece := next(self.pieces, b"")):
            self.held += piece
            if (passed := min(start - self.start, len(self.held))) > 0:
                del self.held[:passed]
                self.start += passed
        if (passed := min(start - self.start, len(self.held))) > 0:
            del self.held[:passed]
            self.start += passed
        return bytes(self.held[:length]) if start == self.start else b""


class UnpackedStore(SourceView):
    """An `ObjectStore` for reading: packed rollouts have their unpacked bytes, and their unpacked size but in listings,
    for which every one had to be read. One that is damaged has what comes before the damage, and is in `damaged`. Its
    readers may be several threads."""

    def __init__(self, store: ObjectStore, *, max_bytes: int = GIB) -> None:
        super().__init__(store)
        self._max_bytes = max_bytes
        self._bodies: OrderedDict[_Place, bytes] = OrderedDict()
        self._sizes: dict[_Place, int] = {}
        self._reading: tuple[_Place, _Reading] | None = None
        self.damaged: dict[str, str] = {}
        self._made: dict[str, tuple[ObjectStat, bytes]] = {}

    def make(self, stat: ObjectStat, body: bytes) -> None:
        """Have a file that is only a part of another one; no listing shows it."""
        self._made[stat.key] = stat, body

    def stat(self, key: str) -> ObjectStat | None:
        if key in self._made:
            return self._made[key][0]
        stat = self._store.stat(key)
        return None if stat is None else self._unpacked(stat)

    def read(self, key: str) -> bytes:
        if key in self._made:
            return self._made[key][1]
        stat = self.stat(key) if is_packed(key) else None
        return self._store.read(key) if stat is None else self.read_range(key, 0, stat.size)

    def read_range(self, key: str, start: int, length: int) -> bytes:
        stat = self._store.stat(key) if is_packed(key) else None
        if stat is None:
            return self._store.read_range(key, start, length)
        place = stat.key, stat.etag
        if start == 0 and length <= _HEAD and place not in self._bodies:
            return _Reading(self._pieces(stat)).read(0, length)
        if (body := self._body(stat)) is not None:
            return body[start : start + length]
        reading = self._reading
        if reading is None or reading[0] != place or reading[1].start > start:
            self._reading = reading = place, _Reading(self._pieces(stat))
        return reading[1].read(start, length)

    def _unpacked(self, stat: ObjectStat) -> ObjectStat:
        if not is_packed(stat.key):
            return stat
        place = stat.key, stat.etag
        try:
            if place not in self._sizes and (body := self._body(stat)) is not None:
                self._sizes[place] = len(body)
            if place not in self._sizes:
                self._sizes[place] = sum(map(len, self._pieces(stat)))
        except (KeyRefused, ObjectMissing, ObjectTooLarge):
            return stat  # so that only reading it fails
        return replace(stat, size=self._sizes[place])

    def _body(self, stat: ObjectStat) -> bytes | None:
        """All of a rollout that is small when unpacked, None for another."""
        place = stat.key, stat.etag
        if self._sizes.get(place, 0) > _KEPT_BYTES:
            return None
        body = self._bodies.pop(place, None)
        if body is None:
            whole = bytearray()
            for piece in self._pieces(stat):
                whole += piece
                if len(whole) > _KEPT_BYTES:
                    return None
            body = bytes(whole)
        self._bodies[place] = body
        while len(self._bodies) > _KEPT:
            self._bodies.popitem(last=False)
        return body

    def _pieces(self, stat: ObjectStat) -> Iterator[bytes]:
        """What all frames of a file unpack to, up to a damaged place. Raises `ObjectTooLarge` for more than is
        sensible."""
        most = min(self._max_bytes, max(_SMALL, stat.size * _LARGEST_RATIO))
        size = 0
        frame = zstandard.ZstdDecompressor().decompressobj()
        is_whole = True
        try:
            for packed in self._packed(stat):
                while packed:
                    piece = frame.decompress(packed)
                    packed, is_whole = frame.unused_data, frame.eof
                    if frame.eof:
                        frame = zstandard.ZstdDecompressor().decompressobj()
                    size += len(piece)
                    if size > most:
                        raise ObjectTooLarge(stat.key, size, most)
                    if piece:
                        yield piece
        except zstandard.ZstdError:
            is_whole = False
        if not is_whole:
            self.damaged[stat.key] = f"it is damaged, or not complete, after {size} unpacked bytes"

    def _packed(self, stat: ObjectStat) -> Iterator[bytes]:
        start, piece = 0, _FIRST_PIECE
        while start < stat.size:
            view = self._store.read_range(stat.key, start, min(piece, stat.size - start))
            if not view:  # it is shorter by now
                return
            for place in range(0, len(view), _STEP):
                yield view[place : place + _STEP]
            start, piece = start + len(view), min(2 * piece, _PIECE)


def is_packed(key: str) -> bool:
    """Whether a rollout is read otherwise than it lies there."""
    name = rollout_name(key)
    return name is not None and name.packed
