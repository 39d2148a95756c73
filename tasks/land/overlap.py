"""Several sessions landed at once and told of in order.

Landing a session is mostly waiting, for a disk to confirm a dozen small writes or for a far store to answer, and no
session waits for another. What is at work at one time is bounded by number and by bytes of source.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["AT_ONCE", "in_order"]

AT_ONCE = 8
HELD_BYTES = 64 << 20
"""Of source at work at one time, or one session that is larger."""

T = TypeVar("T")


def in_order(
    names: Iterable[str], size: Callable[[str], int], land: Callable[[str], T], at_once: int
) -> Generator[T, None, None]:
    """What `land` gives for each name, in the order of `names`, `at_once` of them at work; `size` is one's in bytes.

    The first that raises ends it with its error. Those at work are then, as when the generator is closed, finished and
    not told of, the others never begun: the next pass finds either as it was left.
    """
    if at_once <= 1:
        yield from map(land, names)
        return
    waiting: deque[tuple[int, Future[T]]] = deque()
    held = 0
    with ThreadPoolExecutor(at_once, thread_name_prefix="land") as pool:
        try:
            for name in names:
                wanted = size(name)
                while waiting and (len(waiting) >= at_once or held + wanted > HELD_BYTES):
                    done, first = waiting.popleft()
                    held -= done
                    yield first.result()
                waiting.append((wanted, pool.submit(land, name)))
                held += wanted
            while waiting:
                yield waiting.popleft()[1].result()
        finally:
            for _, future in waiting:
                future.cancel()
