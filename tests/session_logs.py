"""Every way in which sessions are kept, for tests that hold for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from storage.session_logs import JsonlSessions, SessionPersistence, SqliteSessions

__all__ = ["KEPT", "Kept"]


@dataclass(frozen=True)
class Kept:
    """One way: how a place below a folder is opened, again and again."""

    name: str
    open: Callable[[Path], SessionPersistence]

    def __str__(self) -> str:
        return self.name


KEPT = (
    Kept("frames", lambda folder: JsonlSessions(folder / "root")),
    Kept("lines", lambda folder: JsonlSessions(folder / "root", compressed=False)),
    Kept("database", lambda folder: SqliteSessions(folder / "sessions.db")),
)
