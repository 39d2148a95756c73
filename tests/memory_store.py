"""An object store in memory that can be told what happens at its calls: a death before or after one, another's work in
between.
"""

from __future__ import annotations

from collections.abc import Callable

from schemas.errors import ObjectExists, ObjectMissing
from storage.objects import Children, ObjectStat, ObjectStats

__all__ = ["Killed", "MemoryStore", "killing"]


class Killed(BaseException):
    """The process is no more; no `except Exception` lives on after it."""


class MemoryStore:
    """An `ObjectStore`; stores made `beside` one share its objects and have moments of their own."""

    read_ahead = 1
    url = "memory"

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.moment: Callable[[str], None] = lambda operation: None

    def beside(self, moment: Callable[[str], None]) -> MemoryStore:
        other = MemoryStore()
        other.objects, other.moment = self.objects, moment
        return other

    def create(self, key: str, data: bytes) -> None:
        self.moment("create")
        if key in self.objects:
            raise ObjectExists(key)
        self.objects[key] = data
        self.moment("created")

    def replace(self, key: str, data: bytes) -> None:
        self.moment("replace")
        self.objects[key] = data
        self.moment("replaced")

    def read(self, key: str) -> bytes:
        self.moment("read")
        if key not in self.objects:
            raise ObjectMissing(key)
        return self.objects[key]

    def read_range(self, key: str, start: int, length: int) -> bytes:
        return self.read(key)[start : start + length]

    def list(self, prefix: str) -> ObjectStats:
        self.moment("list")
        return [self._stat(key) for key in sorted(self.objects) if key.startswith(prefix)]

    def children(self, prefix: str) -> Children:
        stats = self.list(prefix)
        folders = {stat.key[len(prefix) :].partition("/")[0] for stat in stats if "/" in stat.key[len(prefix) :]}
        return sorted(folders), [stat for stat in stats if "/" not in stat.key[len(prefix) :]]

    def stat(self, key: str) -> ObjectStat | None:
        self.moment("stat")
        return self._stat(key) if key in self.objects else None

    def delete(self, key: str) -> None:
        self.moment("delete")
        self.objects.pop(key, None)

    def check_root(self) -> None:
        """It is always there."""

    def _stat(self, key: str) -> ObjectStat:
        data = self.objects[key]
        return ObjectStat(key, len(data), 0.0, str(hash(data)))


def killing(at: int, between: Callable[[], None] | None = None, between_at: int = 0) -> Callable[[str], None]:
    """Moments of a process that dies at its call number `at` and lets `between` happen at number `between_at`."""
    calls = 0

    def moment(operation: str) -> None:
        nonlocal calls
        calls += 1
        if between is not None and calls == between_at:
            between()
        if calls >= at:
            raise Killed

    return moment
