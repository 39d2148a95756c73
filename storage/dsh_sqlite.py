"""DeepSeek Harness sessions in SQLite, read and never written: ``sessions.db`` may be in use by its owner meanwhile.

A database that is not exactly one of the two schemas is refused, as the original refuses it: nothing is migrated, and
no view or trigger that somebody added is ever run.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final
from urllib.parse import quote

from schemas.dsh import MAX_LOG_BYTES
from schemas.dsh_rows import EventRow, SessionRow, StoredRows, read_rows
from schemas.errors import LogRejected, LogUnsupported, ObjectMissing, StoreUnavailable

__all__ = ["SessionDatabase"]

_APPLICATION_ID: Final = 0x44534850
_TABLES_13: Final = {
    "persistence_state": "singleton INTEGER PRIMARY KEY CHECK (singleton = 1), store_id TEXT NOT NULL",
    "sessions": "id TEXT PRIMARY KEY, version INTEGER NOT NULL, created_at INTEGER NOT NULL, cwd TEXT, "
    "parent_session TEXT, seed_length INTEGER, origin TEXT, delegation_depth INTEGER, incarnation TEXT NOT NULL, "
    "revision INTEGER NOT NULL",
    "events": "session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, seq INTEGER NOT NULL, "
    "type TEXT NOT NULL, time INTEGER NOT NULL, data TEXT NOT NULL, source_event_seqs TEXT, surface_op TEXT, "
    "PRIMARY KEY (session_id, seq)",
}
_TABLES_17: Final = {
    "persistence_state": _TABLES_13["persistence_state"],
    "sessions": _TABLES_13["sessions"].replace("incarnation", "agent_preset TEXT, incarnation"),
    "events": "session_id TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE, seq INTEGER NOT NULL, "
    "type TEXT NOT NULL, time INTEGER NOT NULL, data ANY NOT NULL, source_event_seqs ANY, surface_op TEXT, "
    "ignorable INTEGER CHECK (ignorable IS NULL OR ignorable IN (0, 1)), PRIMARY KEY (session_id, seq)",
}
_SCHEMAS: Final = {13: _TABLES_13, 17: _TABLES_17}
_SESSION_COLUMNS: Final = "id, version, created_at, cwd, parent_session, seed_length, origin, delegation_depth"


class SessionDatabase:
    """An open ``sessions.db``; use it as a context. All its methods see the database as it was at the first of them.

    Raises ObjectMissing, LogUnsupported (``schema``) for another layout, LogRejected (``database``) for a file that is
    none, and StoreUnavailable when its owner lets nobody read now.
    """

    def __init__(self, path: Path, *, limit: int = MAX_LOG_BYTES) -> None:
        self._name = path.name
        self._limit = limit
        if not path.is_file():
            raise ObjectMissing(str(path))
        with self._faults_named():
            self._connection = _connect(path)
        try:
            with self._faults_named():
                self._connection.text_factory = bytes
                self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(limit, 1 << 30))
                self._connection.execute("PRAGMA trusted_schema = OFF")
                self._connection.execute("BEGIN")
                self.schema = self._recognised()
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> SessionDatabase:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._connection.close()

    def ids(self) -> list[str]:
        """The ids of all sessions, in the order in which they were begun."""
        with self._faults_named():
            rows = self._connection.execute("SELECT id FROM sessions ORDER BY created_at, id").fetchall()
        return [_text(row[0]) or "" for row in rows]

    def read(self, session: str) -> StoredRows:
        """The session with this id as it is stored. Raises LogRejected (``missing``), and as `read_rows` does."""
        preset = "agent_preset" if self.schema == 17 else "NULL"
        query = f"SELECT {_SESSION_COLUMNS}, {preset} FROM sessions WHERE id = CAST(? AS TEXT)"
        with self._faults_named():
            found = self._connection.execute(query, (session.encode("utf-8", "replace"),)).fetchone()
        if found is None:
            raise LogRejected(self._name, None, "missing", f"no session {session!r}")
        columns: list[Any] = [_text(each) if isinstance(each, bytes) else each for each in found]
        row = SessionRow(*columns)
        return read_rows(row, self._events(found[0]), schema=self.schema, name=self._name, limit=self._limit)

    def _events(self, session: bytes) -> Iterator[EventRow]:
        ignorable = "ignorable" if self.schema == 17 else "NULL"
        query = f"""
            SELECT seq, type, time, typeof(data) = 'blob', CAST(data AS BLOB), CAST(source_event_seqs AS BLOB),
            surface_op, {ignorable} FROM events WHERE session_id = CAST(? AS TEXT) ORDER BY seq"""
        with self._faults_named():
            yield from map(EventRow._make, self._connection.execute(query, (session,)))

    def _recognised(self) -> int:
        """Which of the schemas this is."""
        application = self._number("PRAGMA application_id")
        schema = self._number("PRAGMA user_version")
        if application != _APPLICATION_ID:
            raise LogUnsupported(self._name, None, "schema", "a database of another program")
        if schema not in _SCHEMAS:
            raise LogUnsupported(self._name, None, "schema", f"schema {schema}, this reader knows 13 and 17")
        expected = {f"CREATE TABLE {name} ( {columns} ) STRICT" for name, columns in _SCHEMAS[schema].items()}
        found = self._connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        if {" ".join((_text(sql) or "").split()) for (sql,) in found} != expected:
            raise LogUnsupported(self._name, None, "schema", f"not the tables that schema {schema} has")
        return schema

    def _number(self, query: str) -> int:
        return int(self._connection.execute(query).fetchone()[0])

    @contextmanager
    def _faults_named(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DataError as error:
            raise LogRejected(self._name, None, "too_large", str(error)) from None
        except sqlite3.OperationalError as error:
            raise StoreUnavailable(self._name, "read", str(error)) from None
        except sqlite3.DatabaseError as error:
            raise LogRejected(self._name, None, "database", str(error)) from None


def _connect(path: Path) -> sqlite3.Connection:
    """The database, read-only. A folder that cannot be written to needs no lock where no log is waiting."""
    uri = f"file:{quote(str(path.absolute()))}"
    connection = sqlite3.connect(f"{uri}?mode=ro", uri=True, isolation_level=None, timeout=5)
    try:
        connection.execute("PRAGMA schema_version").fetchone()
        return connection
    except sqlite3.OperationalError:
        connection.close()
        waiting = (path.with_name(path.name + suffix) for suffix in ("-wal", "-journal"))
        if any(each.is_file() and each.stat().st_size for each in waiting):
            raise
    return sqlite3.connect(f"{uri}?mode=ro&immutable=1", uri=True, isolation_level=None)


def _text(value: Any) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else None
