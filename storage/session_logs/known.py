"""Where sessions' logs go on: what a writer remembers of each between two batches."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from schemas.dsh import EventJudge, LogHeader
from storage.session_logs.backend import Hold

__all__ = ["Known", "KnownSessions"]

_KEPT: Final = 256


@dataclass
class Known:
    """Where a session's log goes on; ``revision`` is None while nothing of it is stored. ``judge`` knows the events so
    far; none is kept after a failure, and then it is made anew. ``owned`` says that it is reserved or live.
    """

    header: LogHeader
    next_seq: int
    revision: str | None
    judge: EventJudge | None
    hold: Hold | None = None
    owned: bool = False


class KnownSessions:
    """The sessions that are known. Those that can be found out again are forgotten when they are too many."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._sessions: OrderedDict[str, Known] = OrderedDict()

    def get(self, session: str) -> Known | None:
        """What is known of a session, if anything is."""
        with self._guard:
            return self._sessions.get(session)

    def remember(self, known: Known) -> Known:
        """Know a session from now on."""
        with self._guard:
            self._sessions[known.header.id] = known
            self._sessions.move_to_end(known.header.id)
            if len(self._sessions) > _KEPT:
                others = (each for each in self._sessions.values() if each.revision is not None and not each.owned)
                oldest = next(others, known)
                if oldest is not known:
                    del self._sessions[oldest.header.id]
        return known

    def forget(self, session: str) -> None:
        """Know it no longer, and let others have it."""
        with self._guard:
            known = self._sessions.pop(session, None)
        if known is not None and known.hold is not None:
            known.hold.release()

    def clear(self) -> None:
        """Know none."""
        with self._guard:
            sessions = list(self._sessions)
        for session in sessions:
            self.forget(session)
