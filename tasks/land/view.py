"""A source as its dialect wants it read: a store that passes everything on, for dialects to change what they must."""

from __future__ import annotations

from storage.objects import Children, ObjectStat, ObjectStats, ObjectStore

__all__ = ["SourceView"]


class SourceView:
    """An `ObjectStore` over another one."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

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
        return self._store.list(prefix)

    def children(self, prefix: str) -> Children:
        return self._store.children(prefix)

    def stat(self, key: str) -> ObjectStat | None:
        return self._store.stat(key)

    def read(self, key: str) -> bytes:
        return self._store.read(key)

    def read_range(self, key: str, start: int, length: int) -> bytes:
        return self._store.read_range(key, start, length)
