"""Reading many objects in order, the next ones already under way where the store is far."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

from storage.objects import ObjectStore

__all__ = ["Sized", "read_in_order", "reads_in_order"]

AHEAD_BYTES = 64 * 1024 * 1024


class Sized(Protocol):
    """Something that names an object and its size in bytes."""

    @property
    def key(self) -> str: ...

    @property
    def size(self) -> int: ...


S = TypeVar("S", bound=Sized)


def read_in_order(store: ObjectStore, wanted: Iterable[S]) -> Generator[tuple[S, bytes], None, None]:
    """Each wanted object with its bytes, in the order given; the first that cannot be read ends it with its error."""
    for each, data in reads_in_order(store, wanted):
        yield each, data()


def reads_in_order(store: ObjectStore, wanted: Iterable[S]) -> Generator[tuple[S, Callable[[], bytes]], None, None]:
    """Each wanted object with a call that gives its bytes or raises its own error, for those who go on after one.

    At most `store.read_ahead` reads are under way, and at most 64 MiB of objects, or one that is larger.
    """
    if store.read_ahead <= 1:
        for each in wanted:
            yield each, functools.partial(store.read, each.key)
        return
    waiting: deque[tuple[S, Future[bytes]]] = deque()
    held = 0
    with ThreadPoolExecutor(store.read_ahead, thread_name_prefix="read-ahead") as pool:
        try:
            for each in wanted:
                while waiting and (len(waiting) >= store.read_ahead or held + each.size > AHEAD_BYTES):
                    first, data = waiting.popleft()
                    held -= first.size
                    yield first, data.result
                waiting.append((each, pool.submit(store.read, each.key)))
                held += each.size
            while waiting:
                first, data = waiting.popleft()
                yield first, data.result
        finally:
            for _, data in waiting:
                data.cancel()
