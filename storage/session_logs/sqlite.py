"""All sessions in one SQLite database, ``sessions.db`` (DSH specification, section 11).

Schemas 13 and 17 are read. Written is 17: it has a place for all that an event and a header can hold, where 13 has none
for ``ignorable`` and ``agentPreset``, and nothing is ever migrated, so a database of schema 13 stays as it is.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, get_args

from schemas.dsh import MAX_LOG_BYTES, Event, LogHeader, closing_of
from schemas.dsh_rows import WRITTEN_SCHEMA, StoredRows, session_row, write_rows
from schemas.errors import AccessRefused, ConfigurationRejected, LogUnsupported, SessionWriteRefused
from storage.dsh_sqlite import APPLICATION_ID, TABLES, SessionTables, as_text, faults_named
from storage.session_logs import log_files
from storage.session_logs.backend import Hold, LogChanged, Stored
from storage.session_logs.cancellation import Cancellation
from storage.session_logs.coordinator import BATCH_SECONDS, PREPARED_SESSIONS, CoordinatedSessions
from storage.session_logs.persistence import SessionLocation, SessionSnapshot

__all__ = ["SqliteSessions"]

Journal = Literal["wal", "delete", "truncate", "persist"]

_BUSY_MILLISECONDS: Final = 5000
_FILE_MODE: Final = 0o600
_INSERT: Final = """
    INSERT INTO events (session_id, seq, type, time, data, source_event_seqs, surface_op, ignorable)
    VALUES (CAST(? AS TEXT), ?, CAST(? AS TEXT), ?, ?, ?, ?, ?)"""


class SqliteSessions(CoordinatedSessions[StoredRows]):
    """`SessionPersistence` in a database, made at the first event if it is not there.

    Its folder belongs to whoever runs this and is writable to nobody else; the file is his alone. ``journal`` is how
    SQLite makes a transaction durable; no other way is offered. Raises ConfigurationRejected for one,
    AccessRefused where others could write, LogUnsupported (``schema``) and LogRejected for what is no such database.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        journal: Journal = "wal",
        packed: bool = True,
        limit: int = MAX_LOG_BYTES,
        prepared_sessions: int = PREPARED_SESSIONS,
        batch_seconds: float = BATCH_SECONDS,
    ) -> None:
        if journal not in get_args(Journal):
            raise ConfigurationRejected(f"journal {journal!r}: not one of {', '.join(get_args(Journal))}")
        backend = _Database(Path(os.path.abspath(path)), journal, packed, limit)
        super().__init__(backend, prepared_sessions=prepared_sessions, batch_seconds=batch_seconds)


class _Database:
    """A `LogBackend` in a database. One connection, and one thread at a time on it."""

    def __init__(self, path: Path, journal: Journal, packed: bool, limit: int) -> None:
        self._path = path
        self._journal = journal
        self._packed = packed
        self._limit = limit
        self._alone = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._tables: SessionTables | None = None
        self._source = ""
        if os.path.lexists(path):
            with faults_named(self.name, "open"):
                self._open()

    @property
    def name(self) -> str:
        return self._path.name

    def locate(self, header: LogHeader) -> SessionLocation | None:
        return None

    def check(self, header: LogHeader) -> None:
        for each in (header.id, header.cwd, header.parent_session, header.agent_preset):
            if each is not None and not _is_kept(each):
                detail = "a text of the header has a surrogate without its partner, which a database does not keep"
                raise SessionWriteRefused(header.id, "not_json", detail)

    def read(self, session: str, signal: Cancellation | None) -> Stored[StoredRows] | None:
        with self._reading() as tables:
            if tables is None or not _is_kept(session):
                return None
            rows, token = tables.read(session), tables.token(session)
        if rows is None or token is None:
            return None
        return Stored(rows.header, rows.events, self._revision(*token), rows.torn, rows)

    def read_from(
        self, session: str, from_seq: int, signal: Cancellation | None
    ) -> tuple[LogHeader, list[Event]] | None:
        stored = self.read(session, signal)
        return None if stored is None else (stored.header, stored.events[from_seq:])

    def revision(self, session: str, signal: Cancellation | None) -> str | None:
        with self._reading() as tables:
            token = None if tables is None or not _is_kept(session) else tables.token(session)
        return None if token is None else self._revision(*token)

    def publish(self, header: LogHeader, events: Sequence[Event], hold: bool) -> tuple[str, Hold | None]:
        with self._writing() as (connection, tables):
            if tables.token(header.id) is not None:
                raise SessionWriteRefused(header.id, "exists", "it was stored by somebody else meanwhile")
            incarnation = str(uuid.uuid4())
            row = [as_text(each) if isinstance(each, str) else each for each in session_row(header)]
            texts = ", ".join("CAST(? AS TEXT)" if isinstance(each, bytes) else "?" for each in row)
            connection.execute(f"INSERT INTO sessions VALUES ({texts}, ?, 1)", (*row, incarnation))
            self._insert(connection, header, events)
        return self._revision(incarnation, 1), None

    def append(self, header: LogHeader, events: Sequence[Event], revision: str, held: Hold | None) -> str:
        with self._writing() as (connection, tables):
            token = self._current(tables, header.id, revision)
            self._insert(connection, header, events)
            return self._next_revision(connection, header.id, *token)

    def repair(self, stored: Stored[StoredRows]) -> None:
        session = stored.header.id
        closing = closing_of(stored.events, stored.header.version, self.name, written=True)
        with self._writing() as (connection, tables):
            token = self._current(tables, session, stored.revision)
            if stored.source.torn_seq is not None:
                delete = "DELETE FROM events WHERE session_id = CAST(? AS TEXT) AND seq >= ?"
                connection.execute(delete, (as_text(session), stored.source.torn_seq))
            self._insert(connection, stored.header, closing)
            self._next_revision(connection, session, *token)

    def hold(self, header: LogHeader) -> Hold | None:
        return None

    def snapshots(self, signal: Cancellation | None) -> list[SessionSnapshot]:
        with self._reading() as tables:
            found = [] if tables is None else tables.headers()
        return [SessionSnapshot(header, self._revision(name, number)) for header, name, number in found]

    def unreadable(self, signal: Cancellation | None) -> list[str]:
        return []

    def close(self) -> None:
        with self._alone:
            connection, self._connection, self._tables = self._connection, None, None
            if connection is not None:
                connection.close()

    def _insert(self, connection: sqlite3.Connection, header: LogHeader, events: Sequence[Event]) -> None:
        for event in events:
            if not _is_kept(event["type"]):
                detail = "an event's type has a surrogate without its partner, which a database does not keep"
                raise SessionWriteRefused(header.id, "not_json", detail)
        for row in write_rows(events, packed=self._packed):
            data = row.data if row.is_blob else row.data.decode()
            place = None if row.surface_op is None else row.surface_op.decode()
            cells = (row.seq, row.type, row.time, data, row.source_event_seqs, place, row.ignorable)
            connection.execute(_INSERT, (as_text(header.id), *cells))

    def _current(self, tables: SessionTables, session: str, revision: str) -> tuple[str, int]:
        """The session's incarnation and revision; raises LogChanged when those are not what was expected."""
        token = tables.token(session)
        if token is None or self._revision(*token) != revision:
            raise LogChanged
        return token

    def _next_revision(self, connection: sqlite3.Connection, session: str, incarnation: str, revision: int) -> str:
        update = "UPDATE sessions SET revision = ? WHERE id = CAST(? AS TEXT)"
        connection.execute(update, (revision + 1, as_text(session)))
        return self._revision(incarnation, revision + 1)

    def _revision(self, incarnation: str, revision: int) -> str:
        return f"{self._source}:incarnation:{incarnation}:revision:{revision}"

    @contextmanager
    def _reading(self) -> Iterator[SessionTables | None]:
        """The tables as they are at one moment; None while there is no database."""
        with self._alone, faults_named(self.name, "read"):
            if self._connection is None and os.path.lexists(self._path):
                self._open()
            if self._connection is None:
                yield None
                return
            self._connection.execute("BEGIN")
            try:
                yield self._tables
            finally:
                self._connection.execute("ROLLBACK")

    @contextmanager
    def _writing(self) -> Iterator[tuple[sqlite3.Connection, SessionTables]]:
        """A transaction that is durable, whole, when this ends, and leaves nothing when it fails."""
        with self._alone, faults_named(self.name, "write"):
            if self._connection is None:
                self._open()
            connection, tables = self._connection, self._tables
            assert connection is not None
            assert tables is not None
            if tables.schema != WRITTEN_SCHEMA:
                detail = f"a database of schema {tables.schema} is only read, not written"
                raise LogUnsupported(self.name, None, "read_only", detail)
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection, tables
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _open(self) -> None:
        """Open the database, made if it is not there. Raises AccessRefused where others could write to it."""
        with log_files.faults_named(self.name, "open"):
            status = _own_file(self._path)
        connection = sqlite3.connect(self._path, isolation_level=None, timeout=5, check_same_thread=False)
        try:
            connection.text_factory = bytes
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(self._limit, 1 << 30))
            connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA mmap_size = 0")
            _make_tables(connection)
            tables = SessionTables(connection, self.name, self._limit)
            if tables.schema == WRITTEN_SCHEMA:
                connection.execute(f"PRAGMA journal_mode = {self._journal}")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            [store] = connection.execute("SELECT store_id FROM persistence_state").fetchone() or (b"",)
        except BaseException:
            connection.close()
            raise
        self._source = f"file:{status.st_dev}:{status.st_ino}:store:{store.decode('utf-8', 'replace')}"
        self._connection, self._tables = connection, tables


def _make_tables(connection: sqlite3.Connection) -> None:
    """Lay out a database that is quite empty. Two may try: the second finds it done."""

    def number(query: str) -> int:
        return int(connection.execute(query).fetchone()[0])

    if number("PRAGMA user_version") or number("PRAGMA application_id") or number("SELECT count(*) FROM sqlite_master"):
        return
    connection.execute("BEGIN EXCLUSIVE")
    try:
        if not number("SELECT count(*) FROM sqlite_master"):
            for table in TABLES[WRITTEN_SCHEMA]:
                connection.execute(table)
            connection.execute("INSERT INTO persistence_state VALUES (1, ?)", (str(uuid.uuid4()),))
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {WRITTEN_SCHEMA}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _own_file(path: Path) -> os.stat_result:
    """The file, made with nothing in it if it is not there."""
    path.parent.mkdir(0o700, parents=True, exist_ok=True)
    folder = path.parent.stat()
    if folder.st_uid != os.geteuid() or folder.st_mode & 0o022:
        raise AccessRefused(str(path.parent), "open", "others own the folder or may write to it")
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags, _FILE_MODE)
    try:
        status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise AccessRefused(str(path), "open", "it is no plain file of one's own that is closed to others")
    return status


def _is_kept(text: str) -> bool:
    return as_text(text).decode() == text
