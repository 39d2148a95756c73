"""One after the other: what is done about one session never overlaps, what is done about several may."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from storage.session_logs.cancellation import Cancellation

__all__ = ["Turns"]

_LOOK_SECONDS: Final = 0.02
"""How often somebody who waits looks whether that was cancelled."""


class Turns:
    """A lock for each session that anybody works on just now."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[str, tuple[threading.Lock, int]] = {}

    @contextmanager
    def of(self, session: str, signal: Cancellation | None = None) -> Iterator[None]:
        """The session's turn; while it waits, the signal's reason ends it."""
        with self._guard:
            lock, waiting = self._locks.get(session) or (threading.Lock(), 0)
            self._locks[session] = lock, waiting + 1
        try:
            if signal is None:
                lock.acquire()
            else:
                signal.check()
                while not lock.acquire(timeout=_LOOK_SECONDS):
                    signal.check()
            try:
                yield
            finally:
                lock.release()
        finally:
            with self._guard:
                lock, waiting = self._locks.pop(session)
                if waiting > 1:
                    self._locks[session] = lock, waiting - 1
