"""Reading one stored session: from a record with its messages beside it, or from a copied `history.db`.

A file that is no JSON, or no session, is refused as a whole. A message that breaks a rule is not: it is a line like any
other, and the reader of lines says what is wrong with it.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from schemas._relavium_model import plain
from schemas._relavium_values import kind_of
from schemas.errors import AgentSessionRejected, ObjectTooLarge
from schemas.lenient_json import is_deeper_than
from schemas.relavium import message_of_row, record_of_row
from schemas.relavium_json import read_json
from schemas.times import NO_TIME, parse_time
from storage.database_copy import copy_database
from storage.objects import ObjectStore
from storage.relavium_sqlite import HistoryDatabase, HistoryRow
from tasks.land.relavium.kinds import messages_beside
from tasks.land.relavium.lines import Refused, message_lines, record_line

__all__ = ["MAX_FILE_BYTES", "MAX_SESSION_BYTES", "Database", "Stored", "read_pair"]

MAX_FILE_BYTES: Final = 64 << 20
"""Of a record, and of a list of messages; a JSON file has to be in memory as a whole."""
MAX_SESSION_BYTES: Final = 256 << 20
"""Of one session's messages in a database."""

_DEEPEST: Final = 200
"""Nesting of a document, or of a column. What Python can hold depends on who asks, which is no rule for data."""
_JSON_COLUMNS: Final = ("agent_snapshot", "context_json")
_BOM: Final = b"\xef\xbb\xbf"
_TOO_LARGE, _TOO_DEEP = "too_large", "too_deep"


@dataclass(frozen=True, slots=True)
class Stored:
    """A session's two documents. ``updated`` is when its record says it changed last, in nanoseconds."""

    session: str
    updated: int
    record: bytes
    messages: bytes


def read_pair(store: ObjectStore, key: str) -> Stored:
    """The session whose record is at ``key``. Raises AgentSessionRejected, ObjectMissing and ObjectTooLarge."""
    record = _read(store, key)
    session = record.get("id") if isinstance(record, dict) else None
    if not isinstance(session, str) or not session or not record.keys() & {"agentSlug", "context"}:
        raise AgentSessionRejected(key, None, "not_a_session", "", "it is no session's record")
    beside = messages_beside(key)
    messages = _read(store, beside)
    if not isinstance(messages, list):
        detail = f"expected an array, received {kind_of(messages)}"
        raise AgentSessionRejected(beside, None, "invalid_type", "messages", detail)
    return _stored(session, record, messages, str(record.get("updatedAt")))


class Database:
    """The sessions of one `history.db` as they were when it was copied. The copy goes with this object.

    Raises as `copy_database` and `HistoryDatabase` do.
    """

    def __init__(self, store: ObjectStore, key: str) -> None:
        self._key = key
        folder = tempfile.mkdtemp(prefix="sessionmill-")
        self._gone = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        try:
            self._path = copy_database(store, key, Path(folder))
            with self._open() as opened:
                opened.check()
                self._messages = opened.message_numbers()
                self._costs = opened.costs()
                self._sessions, self._faults = self._recorded(opened.sessions())
        except BaseException:
            self._gone()
            raise

    @property
    def sessions(self) -> list[str]:
        """The ids of its sessions, without deleted ones."""
        return sorted(self._sessions)

    @property
    def faults(self) -> list[str]:
        """What is wrong with rows that belong to no session."""
        return self._faults

    def read(self, session: str) -> Stored:
        """The session with this id. Raises KeyError, and ObjectTooLarge when it is larger than can be held."""
        record, updated = self._sessions[session]
        messages: list[Any] = []
        size = 0
        with self._open() as opened:
            for row in opened.messages(self._messages.get(session, [])):
                messages.append(self._message(row))
                size += sum(len(value) for value in (row.values or {}).values() if isinstance(value, str | bytes))
                if size > MAX_SESSION_BYTES:
                    raise ObjectTooLarge(f"{self._key} session {session}", size, MAX_SESSION_BYTES)
        return _stored(session, record, messages, updated, self._costs.get(session, []))

    def _open(self) -> HistoryDatabase:
        return HistoryDatabase(self._path, name=self._key)

    def _recorded(self, rows: Iterator[HistoryRow]) -> tuple[dict[str, tuple[Any, str]], list[str]]:
        found: dict[str, tuple[Any, str]] = {}
        known: set[str] = set()
        faults: list[str] = []
        for row in rows:
            session = None if row.values is None else row.values["id"]
            if not isinstance(session, str) or not session:
                why = "is larger than can be read" if row.values is None else "has no usable id"
                faults.append(f"row {row.number} of agent_sessions {why}")
                continue
            known.add(session)
            if row.values is not None and row.values["deleted_at"] is None:
                found[session] = self._record(row.values)
        orphans = sum(len(numbers) for session, numbers in self._messages.items() if session not in known)
        if orphans:
            faults.append(f"{orphans} of the rows of session_messages belong to no session")
        return found, faults

    def _record(self, row: dict[str, Any]) -> tuple[Any, str]:
        for column in _JSON_COLUMNS:
            if is_deeper_than(_DEEPEST, str(row[column]).encode("utf-8", "surrogatepass")):
                return Refused(row, _TOO_DEEP, column), ""
        try:
            record = record_of_row(row, name=self._key)
        except AgentSessionRejected as error:
            return Refused(row, error.rule, error.field), ""
        return plain(record), record.updatedAt

    def _message(self, row: HistoryRow) -> Any:
        if row.values is None:
            return Refused({"rowid": row.number}, _TOO_LARGE, "")
        try:
            return plain(message_of_row(row.values, name=self._key))
        except AgentSessionRejected as error:
            return Refused(row.values, error.rule, error.field)


def _stored(
    session: str,
    record: Any,
    messages: Sequence[Any],
    updated: str,
    costs: Sequence[dict[str, Any]] = (),
) -> Stored:
    moment = parse_time(updated)
    lines = message_lines(messages)
    document = record_line(record, lines, costs) + b"\n"
    return Stored(session, moment if moment != NO_TIME else 0, document, b"".join(line + b"\n" for line in lines))


def _read(store: ObjectStore, key: str) -> Any:
    data = store.read_range(key, 0, MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ObjectTooLarge(key, len(data), MAX_FILE_BYTES)
    if is_deeper_than(_DEEPEST, data):
        raise AgentSessionRejected(key, None, "json", "", f"nested deeper than {_DEEPEST}")
    return read_json(data.removeprefix(_BOM), name=key)
