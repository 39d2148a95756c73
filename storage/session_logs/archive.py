"""Session logs that are only read: a root in any object store, S3 too, and a database that belongs to somebody else.

Nothing is written, locked or made, so a log whose owner is at work is seen as far as it is stored.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from schemas.dsh import MAX_LOG_BYTES, Event, LogHeader, closing_of, header_in, read_log
from schemas.dsh_root import LogPlace, LogRoot, check_place, find_logs
from schemas.errors import LogRejected, ObjectMissing
from storage.dsh_sqlite import SessionDatabase
from storage.objects import ObjectStat, ObjectStore
from storage.session_logs.cancellation import Cancellation, check
from storage.session_logs.persistence import (
    Names,
    SessionInspection,
    SessionReader,
    SessionSnapshot,
    Snapshots,
    check_number,
)

__all__ = ["ArchivedDatabase", "ArchivedSessions"]

_FIRST_STEP: Final = 8192


class _Archive(SessionReader):
    """Reads a session as it is stored; the rest follows from that."""

    def inspect(self, session: str, signal: Cancellation | None = None) -> SessionInspection:
        header, events = self._read(session, signal)
        closing = closing_of(events, header.version, session)
        return SessionInspection(header, (*events, *closing))

    def read_from(self, session: str, from_seq: int, signal: Cancellation | None = None) -> SessionInspection:
        check_number(from_seq)
        header, events = self._read(session, signal)
        return SessionInspection(header, events[from_seq:])

    @abstractmethod
    def _read(self, session: str, signal: Cancellation | None) -> tuple[LogHeader, Sequence[Event]]:
        """The session's header and stored events."""


class ArchivedSessions(_Archive):
    """A root of session logs in an object store, of whichever encoding it has.

    Where its logs lie is found out once, and again by each listing.
    """

    def __init__(self, store: ObjectStore, *, limit: int = MAX_LOG_BYTES) -> None:
        self._store = store
        self._limit = limit
        self._root: LogRoot | None = None
        self._stats: dict[str, ObjectStat] = {}

    def list_snapshots(self, signal: Cancellation | None = None) -> Snapshots:
        found: dict[str, SessionSnapshot] = {}
        for place, header in self._headers(signal):
            if header is None:
                continue
            check_place(header, place)
            if header.id in found:
                raise LogRejected(place.key, None, "duplicate_id", f"session {header.id!r} is there more than once")
            stat = self._stats[place.key]
            found[header.id] = SessionSnapshot(header, f"{self._store.url}:{stat.etag}:{stat.size}:{stat.modified}")
        return list(found.values())

    def list_unreadable(self, signal: Cancellation | None = None) -> Names:
        return [place.key for place, header in self._headers(signal) if header is None]

    def _read(self, session: str, signal: Cancellation | None) -> tuple[LogHeader, list[Event]]:
        check(signal)
        place = self._find(session)
        try:
            data = self._store.read(place.key)
        except ObjectMissing:
            raise LogRejected(self._store.url, None, "missing", f"session {session!r} not found") from None
        check(signal)
        log = read_log(data, name=place.key, limit=self._limit)
        if log.header.id != session:
            raise LogRejected(
                place.key, 1, "place", f"the log of session {session!r} says that it is {log.header.id!r}"
            )
        check_place(log.header, place)
        return log.header, log.events

    def _find(self, session: str) -> LogPlace:
        """Where the session's log lies now: its directory is looked at, the root only when it is not known there."""
        name = self._store.url
        if self._root is not None:
            try:
                known = self._root.find(session, name=name)
            except LogRejected:
                pass  # it may be new
            else:
                stats = self._store.list(f"{known.project}/{known.session}/")
                now = find_logs([stat.key for stat in stats], compressed=known.compressed, name=name)
                if now.logs:
                    return now.logs[0]
        return self._listed().find(session, name=name)

    def _listed(self) -> LogRoot:
        self._stats = {stat.key: stat for stat in self._store.list("")}
        self._root = find_logs(self._stats, name=self._store.url)
        return self._root

    def _headers(self, signal: Cancellation | None) -> list[tuple[LogPlace, LogHeader | None]]:
        check(signal)
        found = []
        for place in self._listed().logs:
            check(signal)
            try:
                found.append((place, self._header(place)))
            except ObjectMissing:
                continue
        return found

    def _header(self, place: LogPlace) -> LogHeader | None:
        size = _FIRST_STEP
        while True:
            start = self._store.read_range(place.key, 0, size)
            more, header = header_in(start, compressed=place.compressed, name=place.key)
            if not more or len(start) < size:
                return header
            size *= 16


class ArchivedDatabase(_Archive):
    """A ``sessions.db`` of either schema, which its owner may be using."""

    def __init__(self, path: str | os.PathLike[str], *, limit: int = MAX_LOG_BYTES) -> None:
        self._path = Path(path)
        self._limit = limit

    def list_snapshots(self, signal: Cancellation | None = None) -> Snapshots:
        check(signal)
        with SessionDatabase(self._path, limit=self._limit) as database:
            return [SessionSnapshot(header, revision) for header, revision in database.headers()]

    def _read(self, session: str, signal: Cancellation | None) -> tuple[LogHeader, list[Event]]:
        check(signal)
        with SessionDatabase(self._path, limit=self._limit) as database:
            stored = database.read(session)
        check(signal)
        return stored.header, stored.events
