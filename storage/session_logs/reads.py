"""Sessions that were read, the last few of them kept in memory for as long as their stored revisions stay the same.

Looking at a session again, and then going on with it, so costs one read, one decompression and one check of its events.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Generic

from schemas.dsh import Event, closing_of
from schemas.errors import LogRejected
from storage.session_logs.backend import LogBackend, Source, Stored
from storage.session_logs.cancellation import Cancellation, check
from storage.session_logs.persistence import SessionInspection

__all__ = ["Read", "Reads"]


@dataclass(frozen=True)
class Read(Generic[Source]):
    """A session that was read, and the events that close the turn it leaves open."""

    stored: Stored[Source]
    closing: list[Event]
    inspection: SessionInspection

    @property
    def is_sound(self) -> bool:
        """Whether there is nothing to repair."""
        return self.stored.torn is None and not self.closing


class Reads(Generic[Source]):
    """Reads sessions from a backend, and keeps ``capacity`` of them."""

    def __init__(self, backend: LogBackend[Source], capacity: int) -> None:
        self._backend = backend
        self._capacity = capacity
        self._guard = threading.Lock()
        self._kept: OrderedDict[str, Read[Source]] = OrderedDict()

    def read(self, session: str, signal: Cancellation | None = None) -> Read[Source]:
        """The session as it is stored now. Raises LogRejected (``missing``), and as reading it does."""
        with self._guard:
            kept = self._kept.pop(session, None)
        if kept is not None and self._backend.revision(session, signal) == kept.stored.revision:
            check(signal)
            self._keep(session, kept)
            return kept
        stored = self._backend.read(session, signal)
        check(signal)
        if stored is None:
            raise self.missing(session)
        closing = closing_of(stored.events, stored.header.version, session)
        read = Read(stored, closing, SessionInspection(stored.header, (*stored.events, *closing)))
        self._keep(session, read)
        return read

    def drop(self, session: str) -> None:
        """Keep the session no longer."""
        with self._guard:
            self._kept.pop(session, None)

    def clear(self) -> None:
        """Keep nothing."""
        with self._guard:
            self._kept.clear()

    def _keep(self, session: str, read: Read[Source]) -> None:
        with self._guard:
            self._kept[session] = read
            while len(self._kept) > self._capacity:
                self._kept.popitem(last=False)

    def missing(self, session: str) -> LogRejected:
        """What is said of a session that is not stored."""
        return LogRejected(self._backend.name, None, "missing", f"session {session!r} not found")
