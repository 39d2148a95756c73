"""A folder of rollouts as if none of them were packed, so that packing one changes nothing but its name."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

import zstandard

from schemas.errors import ObjectTooLarge
from storage.objects import GIB, Children, ObjectStat, ObjectStats, ObjectStore
from tasks.land.codex.kinds import rollout_name

__all__ = ["UnpackedStore"]

_KEPT = 2
_STEP = 1 << 10
"""Packed bytes at a time: few enough that even the most harmful ones unpack to some megabytes."""

_LARGEST_RATIO = 2_000
_SMALL = 1 << 20


class UnpackedStore:
    """An `ObjectStore` for reading: packed rollouts have their unpacked bytes and size. One that is damaged has what
    comes before the damage."""

    def __init__(self, store: ObjectStore, *, max_bytes: int = GIB) -> None:
        self._store = store
        self._max_bytes = max_bytes
        self._bodies: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._sizes: dict[tuple[str, str], int] = {}

    @property
    def url(self) -> str:
        return self._store.url

    @property
    def read_ahead(self) -> int:
        return self._store.read_ahead

    def create(self, key: str, data: bytes) -> None:
        self._store.create(key, data)

    def replace(self, key: str, data: bytes) -> None:
        self._store.replace(key, data)

    def delete(self, key: str) -> None:
        self._store.delete(key)

    def check_root(self) -> None:
        self._store.check_root()

    def list(self, prefix: str) -> ObjectStats:
        return [self._unpacked(stat) for stat in self._store.list(prefix)]

    def children(self, prefix: str) -> Children:
        folders, stats = self._store.children(prefix)
        return folders, [self._unpacked(stat) for stat in stats]

    def stat(self, key: str) -> ObjectStat | None:
        stat = self._store.stat(key)
        return None if stat is None else self._unpacked(stat)

    def read(self, key: str) -> bytes:
        return self._body(key) if _is_packed(key) else self._store.read(key)

    def read_range(self, key: str, start: int, length: int) -> bytes:
        if _is_packed(key):
            return self._body(key)[start : start + length]
        return self._store.read_range(key, start, length)

    def _unpacked(self, stat: ObjectStat) -> ObjectStat:
        if not _is_packed(stat.key):
            return stat
        known = self._sizes.get((stat.key, stat.etag))
        try:
            return replace(stat, size=len(self._body_of(stat)) if known is None else known)
        except ObjectTooLarge:
            return stat  # so that only reading it fails

    def _body(self, key: str) -> bytes:
        stat = self._store.stat(key)
        return self._store.read(key) if stat is None else self._body_of(stat)

    def _body_of(self, stat: ObjectStat) -> bytes:
        place = stat.key, stat.etag
        body = self._bodies.pop(place, None)
        if body is None:
            body = self._unpack(stat.key, self._store.read(stat.key))
        self._bodies[place] = body
        self._sizes[place] = len(body)
        while len(self._bodies) > _KEPT:
            self._bodies.popitem(last=False)
        return body

    def _unpack(self, key: str, packed: bytes) -> bytes:
        """All frames of a file, as far as they are whole. Raises `ObjectTooLarge` for more than is sensible."""
        most = min(self._max_bytes, max(_SMALL, len(packed) * _LARGEST_RATIO))
        pieces, size = [], 0
        frame = zstandard.ZstdDecompressor().decompressobj()
        view, place = memoryview(packed), 0
        try:
            while place < len(view):
                step = view[place : place + _STEP]
                pieces.append(frame.decompress(step))
                place += len(step)
                size += len(pieces[-1])
                if size > most:
                    raise ObjectTooLarge(key, size, most)
                if frame.eof:
                    place -= len(frame.unused_data)
                    frame = zstandard.ZstdDecompressor().decompressobj()
        except zstandard.ZstdError:
            pass  # a torn or damaged end; the whole frames before it count
        return b"".join(pieces)


def _is_packed(key: str) -> bool:
    name = rollout_name(key)
    return name is not None and name.packed
