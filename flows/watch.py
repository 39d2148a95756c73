"""Who watches a flow run in this process: the command line's progress bar, or nobody.

A module of its own because a served flow is pickled with the globals it names, and a context variable cannot be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["Watcher", "watched_by", "watcher"]

Watcher = Callable[[int, str | None], None]
"""Told how many sessions there are, with None when they are listed and then with each
session that is done."""

_WATCHER: ContextVar[Watcher] = ContextVar("_WATCHER", default=lambda sessions, done: None)


def watcher() -> Watcher:
    """Whoever watches here."""
    return _WATCHER.get()


@contextmanager
def watched_by(watch: Watcher) -> Iterator[None]:
    """Have `watch` told of the flow runs inside the block."""
    token = _WATCHER.set(watch)
    try:
        yield
    finally:
        _WATCHER.reset(token)
