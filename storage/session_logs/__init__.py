"""Durable session logs behind one seam: `SessionPersistence`, its backends, and sessions that are live.

with JsonlSessions(root) as sessions, sessions.begin(header, now=now) as live:
    live.record("turn/start", {"turn": 1}, now=now)
    live.flush()
"""

from schemas.dsh import Event as SessionEvent
from schemas.dsh import LogHeader as SessionHeader
from storage.session_logs.archive import ArchivedDatabase, ArchivedSessions
from storage.session_logs.cancellation import Cancellation, Cancelled
from storage.session_logs.jsonl import JsonlSessions
from storage.session_logs.live import LiveSession
from storage.session_logs.persistence import (
    Preparation,
    SessionInspection,
    SessionLocation,
    SessionPersistence,
    SessionReader,
    SessionSnapshot,
)
from storage.session_logs.sqlite import SqliteSessions

__all__ = [
    "ArchivedDatabase",
    "ArchivedSessions",
    "Cancellation",
    "Cancelled",
    "JsonlSessions",
    "LiveSession",
    "Preparation",
    "SessionEvent",
    "SessionHeader",
    "SessionInspection",
    "SessionLocation",
    "SessionPersistence",
    "SessionReader",
    "SessionSnapshot",
    "SqliteSessions",
]
