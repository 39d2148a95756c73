"""DeepSeek Harness sessions in SQLite, read and never written: ``sessions.db`` may be in use by its owner meanwhile.

A database that is not exactly one of the two schemas is refused, as the original refuses it: nothing is migrated, and
no view or trigger that somebody added is ever run.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final
from urllib.parse import quote

from schemas.dsh import MAX_LOG_BYTES, LogHeader
from schemas.dsh_rows import EventRow, SessionRow, StoredRows, header_of_row, read_rows
from schemas.errors import LogRejected, LogUnsupported, ObjectMissing, StoreUnavailable

__all__ = ["APPLICATION_ID", "TABLES", "SessionDatabase", "SessionTables", "as_text", "faults_named"]

APPLICATION_ID: Final = 0x44534850
_TABLES_17: Final = (
    """CREATE TABLE persistence_state (
  singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
  store_id  TEXT NOT NULL
) STRICT""",
    """CREATE TABLE sessions (
  id               TEXT PRIMARY KEY,
  version          INTEGER NOT NULL,
  created_at       INTEGER NOT NULL,
  cwd              TEXT,
  parent_session   TEXT,
  seed_length      INTEGER,
  origin           TEXT,
  delegation_depth INTEGER,
  agent_preset     TEXT,
  incarnation      TEXT NOT NULL,
  revision         INTEGER NOT NULL
) STRICT""",
    """CREATE TABLE events (
  session_id        TEXT NOT NULL REFERENCES sessions(id) ON DELETE CASCADE,
  seq               INTEGER NOT NULL,
  type              TEXT NOT NULL,
  time              INTEGER NOT NULL,
  data              ANY NOT NULL,
  source_event_seqs ANY,
  surface_op        TEXT,
  ignorable         INTEGER CHECK (ignorable IS NULL OR ignorable IN (0, 1)),
  PRIMARY KEY (session_id, seq)
) STRICT""",
)
_TABLES_13: Final = (
    _TABLES_17[0],
    _TABLES_17[1].replace("  agent_preset     TEXT,\n", ""),
    _TABLES_17[2]
    .replace(" ANY NOT NULL", " TEXT NOT NULL")
    .replace(" ANY,", " TEXT,")
    .replace("  ignorable         INTEGER CHECK (ignorable IS NULL OR ignorable IN (0, 1)),\n", ""),
)
TABLES: Final = {13: _TABLES_13, 17: _TABLES_17}
"""The tables of each schema, word for word: a reader refuses any other text."""

_SESSION_COLUMNS: Final = "id, version, created_at, cwd, parent_session, seed_length, origin, delegation_depth"


@contextmanager
def faults_named(name: str, operation: str) -> Iterator[None]:
    """SQLite's refusals in our words: LogRejected for a file that is wrong, StoreUnavailable for what may pass."""
    try:
        yield
    except sqlite3.DataError as error:
        raise LogRejected(name, None, "too_large", str(error)) from None
    except sqlite3.OperationalError as error:
        raise StoreUnavailable(name, operation, str(error)) from None
    except sqlite3.DatabaseError as error:
        raise LogRejected(name, None, "database", str(error)) from None


class SessionTables:
    """The sessions behind an open connection, whose texts are given as bytes.

    Raises LogUnsupported (``schema``) for another layout; the caller names SQLite's own faults.
    """

    def __init__(self, connection: sqlite3.Connection, name: str, limit: int) -> None:
        self._connection = connection
        self._name = name
        self._limit = limit
        self.schema = self._recognised()
        self._preset = "agent_preset" if self.schema == 17 else "NULL"

    def headers(self) -> list[tuple[LogHeader, str, int]]:
        """Each session's header, incarnation and revision, in the order in which they were begun."""
        query = (
            f"SELECT {_SESSION_COLUMNS}, {self._preset}, incarnation, revision FROM sessions ORDER BY created_at, id"
        )
        found = []
        for *columns, incarnation, revision in self._connection.execute(query).fetchall():
            header = header_of_row(_session_row(columns), self._name)
            found.append((header, _text(incarnation) or "", int(revision)))
        return found

    def token(self, session: str) -> tuple[str, int] | None:
        """The session's incarnation and revision."""
        query = "SELECT incarnation, revision FROM sessions WHERE id = CAST(? AS TEXT)"
        found = self._connection.execute(query, (as_text(session),)).fetchone()
        return None if found is None else (_text(found[0]) or "", int(found[1]))

    def read(self, session: str) -> StoredRows | None:
        """The session as it is stored. Raises as `read_rows` does."""
        query = f"SELECT {_SESSION_COLUMNS}, {self._preset} FROM sessions WHERE id = CAST(? AS TEXT)"
        found = self._connection.execute(query, (as_text(session),)).fetchone()
        if found is None:
            return None
        return read_rows(
            _session_row(found), self._events(found[0]), schema=self.schema, name=self._name, limit=self._limit
        )

    def _events(self, session: bytes) -> Iterator[EventRow]:
        ignorable = "ignorable" if self.schema == 17 else "NULL"
        query = f"""
            SELECT seq, type, time, typeof(data) = 'blob', CAST(data AS BLOB), CAST(source_event_seqs AS BLOB),
            surface_op, {ignorable} FROM events WHERE session_id = CAST(? AS TEXT) ORDER BY seq"""
        yield from map(EventRow._make, self._connection.execute(query, (session,)))

    def _recognised(self) -> int:
        """Which of the schemas this is."""
        application = self._number("PRAGMA application_id")
        schema = self._number("PRAGMA user_version")
        if application != APPLICATION_ID:
            raise LogUnsupported(self._name, None, "schema", "a database of another program")
        if schema not in TABLES:
            raise LogUnsupported(self._name, None, "schema", f"schema {schema}, this reader knows 13 and 17")
        expected = {" ".join(text.split()) for text in TABLES[schema]}
        found = self._connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        if {" ".join((_text(sql) or "").split()) for (sql,) in found} != expected:
            raise LogUnsupported(self._name, None, "schema", f"not the tables that schema {schema} has")
        return schema

    def _number(self, query: str) -> int:
        return int(self._connection.execute(query).fetchone()[0])


class SessionDatabase:
    """An open ``sessions.db``; use it as a context. All its methods see the database as it was at the first of them.

    Raises ObjectMissing, LogUnsupported (``schema``) for another layout, LogRejected (``database``) for a file that is
    none, and StoreUnavailable when its owner lets nobody read now.
    """

    def __init__(self, path: Path, *, limit: int = MAX_LOG_BYTES) -> None:
        self._name = path.name
        if not path.is_file():
            raise ObjectMissing(str(path))
        with faults_named(self._name, "read"):
            self._connection = _connect(path)
        try:
            with faults_named(self._name, "read"):
                self._connection.text_factory = bytes
                self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(limit, 1 << 30))
                self._connection.execute("PRAGMA trusted_schema = OFF")
                self._connection.execute("BEGIN")
                self._tables = SessionTables(self._connection, self._name, limit)
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> SessionDatabase:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._connection.close()

    @property
    def schema(self) -> int:
        return self._tables.schema

    def ids(self) -> list[str]:
        """The ids of all sessions, in the order in which they were begun."""
        with faults_named(self._name, "read"):
            rows = self._connection.execute("SELECT id FROM sessions ORDER BY created_at, id").fetchall()
        return [_text(row[0]) or "" for row in rows]

    def headers(self) -> list[tuple[LogHeader, str]]:
        """Every session's header and revision, in the order in which they were begun."""
        with faults_named(self._name, "read"):
            [store] = self._connection.execute("SELECT store_id FROM persistence_state").fetchone() or (b"",)
            found = self._tables.headers()
        source = f"store:{_text(store)}"
        return [(header, f"{source}:incarnation:{name}:revision:{number}") for header, name, number in found]

    def read(self, session: str) -> StoredRows:
        """The session with this id as it is stored. Raises LogRejected (``missing``), and as `read_rows` does."""
        with faults_named(self._name, "read"):
            found = self._tables.read(session)
        if found is None:
            raise LogRejected(self._name, None, "missing", f"no session {session!r}")
        return found


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


def as_text(text: str) -> bytes:
    """A text as SQLite holds it, for a CAST: a surrogate without its partner is not kept."""
    return text.encode("utf-8", "replace")


def _session_row(columns: Sequence[Any]) -> SessionRow:
    values: list[Any] = [_text(each) if isinstance(each, bytes) else each for each in columns]
    return SessionRow(*values)


def _text(value: Any) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else None
