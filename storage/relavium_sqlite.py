"""Relavium's ``history.db`` (Relavium notes, section 5): the rows of its sessions, from a private copy of it.

Only ordinary tables with the known columns are read: a view or a trigger in their place is somebody else's program. A
row that is too large does not hide the others.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from schemas.errors import AgentSessionRejected

__all__ = ["MAX_VALUE_BYTES", "HistoryDatabase", "HistoryRow"]

MAX_VALUE_BYTES: Final = 64 << 20
"""Of one value, and of one row."""

_SESSIONS, _MESSAGES, _COSTS = "agent_sessions", "session_messages", "session_costs"
_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    _SESSIONS: (
        "id",
        "agent_id",
        "agent_slug",
        "agent_snapshot",
        "title",
        "model_id",
        "status",
        "context_json",
        "total_input_tokens",
        "total_output_tokens",
        "total_cost_microcents",
        "total_conservative_microcents",
        "exported_workflow_path",
        "deleted_at",
        "created_at",
        "updated_at",
    ),
    _MESSAGES: (
        "id",
        "session_id",
        "sequence_number",
        "role",
        "content",
        "content_parts",
        "tool_calls",
        "tool_call_id",
        "name",
        "finish_reason",
        "model_id",
        "compaction_dropped_through_sequence",
        "created_at",
    ),
    _COSTS: (
        "session_id",
        "model",
        "input_tokens",
        "output_tokens",
        "cost_microcents",
        "conservative_microcents",
        "call_count",
        "unpriced_calls",
        "is_legacy",
    ),
}
_ROW_NUMBERS: Final = frozenset(("rowid", "oid", "_rowid_"))
_ABOUT_VALUES: Final = re.compile(r"(?:NULL|TEXT|NUMERIC|non-\w+) value in |CHECK constraint failed in ")
"""What SQLite's check says of a row's values; those are judged one by one, with the row named."""


class HistoryRow(NamedTuple):
    """One row by column: texts, numbers, bytes or None. ``values`` is None when it is larger than is read."""

    number: int
    values: dict[str, Any] | None


class HistoryDatabase:
    """A copied ``history.db``; use it as a context. ``name`` is what errors call the original.

    Raises AgentSessionRejected: ``database`` for a file that is none or is damaged, ``schema`` for other tables.
    """

    def __init__(self, path: Path, *, name: str) -> None:
        self._name = name
        with self._faults_named():
            # The copy may be written to: SQLite takes the log into it.
            uri = f"file:{quote(str(path.absolute()))}?mode=rw"
            self._connection = sqlite3.connect(uri, uri=True, isolation_level=None)
        try:
            with self._faults_named():
                self._connection.text_factory = lambda text: text.decode("utf-8", "replace")
                self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
                for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "ignore_check_constraints = ON"):
                    self._connection.execute(f"PRAGMA {pragma}")
                self._check_schema()
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> HistoryDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def check(self) -> None:
        """Raises AgentSessionRejected (``database``) for damage anywhere. Reads all of it."""
        with self._faults_named():
            found = [str(line) for (line,) in self._connection.execute("PRAGMA quick_check(1000)")]
        damage = [line for line in found if line != "ok" and _ABOUT_VALUES.match(line) is None]
        if damage:
            raise self._rejected("database", " ".join(damage[0].split()))

    def sessions(self) -> Iterator[HistoryRow]:
        """Every row of `agent_sessions`, in the order in which they were put in."""
        with self._faults_named():
            numbers = [number for (number,) in self._connection.execute(f"SELECT rowid FROM {_SESSIONS} ORDER BY 1")]
        return self._rows(_SESSIONS, numbers)

    def message_numbers(self) -> dict[str, list[int]]:
        """The row numbers of each session's messages in sequence. A row whose place is no number comes last."""
        found: dict[str, list[tuple[bool, float, int]]] = {}
        query = f"SELECT rowid, session_id, sequence_number FROM {_MESSAGES} NOT INDEXED"
        with self._faults_named(), closing(self._connection.execute(query)) as rows:
            for number, session, sequence in rows:
                numbered = isinstance(sequence, int | float)
                found.setdefault(str(session), []).append((not numbered, sequence if numbered else 0, number))
        return {session: [number for *_, number in sorted(places)] for session, places in found.items()}

    def messages(self, numbers: list[int]) -> Iterator[HistoryRow]:
        """The messages with these row numbers, in that order."""
        return self._rows(_MESSAGES, numbers)

    def costs(self) -> dict[str, list[dict[str, Any]]]:
        """What each session has cost, a row for each model; empty where the store has no such table."""
        found: dict[str, list[dict[str, Any]]] = {}
        if _COSTS not in self._tables:
            return found
        columns = _COLUMNS[_COSTS]
        query = f"SELECT {', '.join(columns)} FROM {_COSTS} NOT INDEXED ORDER BY session_id, is_legacy, model"
        with self._faults_named(), closing(self._connection.execute(query)) as rows:
            for row in rows:
                values = dict(zip(columns, row, strict=True))
                found.setdefault(str(values.pop("session_id")), []).append(values)
        return found

    def _rows(self, table: str, numbers: list[int]) -> Iterator[HistoryRow]:
        columns = _COLUMNS[table]
        query = f"SELECT {', '.join(columns)} FROM {table} WHERE rowid = ?"
        for number in numbers:
            with self._faults_named():
                try:
                    found = self._connection.execute(query, (number,)).fetchone()
                except sqlite3.DataError:
                    yield HistoryRow(number, None)
                    continue
            yield HistoryRow(number, dict(zip(columns, found, strict=True)))

    def _check_schema(self) -> None:
        found = self._connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
        kinds = {str(name): str(kind) for kind, name, _, _ in found if kind in ("table", "view")}
        made = {str(name): str(sql or "") for kind, name, _, sql in found if kind == "table"}
        for table in (_SESSIONS, _MESSAGES):
            if table not in kinds:
                raise self._rejected("schema", f"there is no table {table}")
        self._tables = frozenset(kinds) & _COLUMNS.keys()
        for table in sorted(self._tables):
            if kinds[table] != "table" or re.match(r"\s*CREATE\s+VIRTUAL\b", made[table], re.IGNORECASE):
                raise self._rejected("schema", f"{table} is no ordinary table")
            self._check_columns(table)
        watched = sorted({str(table) for kind, _, table, _ in found if kind == "trigger"} & self._tables)
        if watched:
            raise self._rejected("schema", f"{watched[0]} has a trigger, which no known store has")

    def _check_columns(self, table: str) -> None:
        columns = {str(row[1]): row[6] for row in self._connection.execute(f"PRAGMA table_xinfo({table})")}
        missing = [name for name in _COLUMNS[table] if name not in columns]
        if missing:
            raise self._rejected("schema", f"{table} has no column {missing[0]}; stores up to migration 0017 are known")
        if any(columns[name] for name in _COLUMNS[table]):
            raise self._rejected("schema", f"{table} has computed columns")
        if _ROW_NUMBERS & {name.lower() for name in columns}:
            raise self._rejected("schema", f"{table} has a column that hides its row numbers")
        try:
            self._connection.execute(f"SELECT rowid FROM {table} LIMIT 1").fetchone()
        except sqlite3.OperationalError:
            raise self._rejected("schema", f"{table} has no row numbers") from None

    def _rejected(self, rule: str, detail: str) -> AgentSessionRejected:
        return AgentSessionRejected(self._name, None, rule, "", detail)

    @contextmanager
    def _faults_named(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._rejected("database", f"not a sound SQLite database: {error}") from None
