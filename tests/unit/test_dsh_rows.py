"""Sessions in SQLite: rows of both schemas, torn and hostile ones, and databases that are something else."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from schemas.dsh import Event
from schemas.dsh_rows import EventRow, SessionRow, StoredRows, read_rows
from schemas.errors import LogEventRejected, LogRejected, LogUnsupported, ObjectMissing, StoreUnavailable
from storage.dsh_sqlite import APPLICATION_ID, TABLES, SessionDatabase
from tests.dsh_logs import answer, header, mark, numbered, turn, user

SESSION = SessionRow("s", 0, 1_796_000_000_000, "/srv/proj", None, None, None, 0, None)
EVENTS = numbered(*turn(1, user("a"), answer("b")))


def row(event: Event, **changes: Any) -> EventRow:
    data = json.dumps(event["data"]).encode()
    place = json.dumps(event["surfaceOp"]).encode() if "surfaceOp" in event else None
    made = EventRow(event["seq"], event["type"].encode(), event["time"], False, data, None, place, None)
    return made._replace(**changes)


def read(rows: Sequence[EventRow], schema: int = 17, **limit: int) -> StoredRows:
    return read_rows(SESSION, rows, schema=schema, name="sessions.db", **limit)


ROWS = [row(event) for event in EVENTS]
PACKED = EventRow(
    0, b"text-chunks", 5, False, b'{"turn":1,"step":1,"index":0,"dt":[1,1],"texts":["a","b","c"]}', None, None, 0
)


def database(path: Path, schema: int, rows: Sequence[EventRow] = (), *, application: int = APPLICATION_ID) -> Path:
    """A database of this schema with one session."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA application_id = {application}")
    connection.execute(f"PRAGMA user_version = {schema}")
    for table in TABLES.get(schema, TABLES[17]):
        connection.execute(table)
    preset = [] if schema == 13 else [SESSION.agent_preset]
    values = [*SESSION[:8], *preset, "5f0c", 1]
    connection.execute(f"INSERT INTO sessions VALUES ({','.join('?' * len(values))})", values)
    for each in rows:
        texts = [each.data if each.is_blob else each.data.decode(), each.source_event_seqs]
        place = each.surface_op and each.surface_op.decode()
        cells = ["s", each.seq, each.type.decode(), each.time, *texts, place] + (
            [each.ignorable] if schema != 13 else []
        )
        connection.execute(f"INSERT INTO events VALUES ({','.join('?' * len(cells))})", cells)
    connection.close()
    return path


@pytest.mark.parametrize("schema", [13, 17])
def test_rows_are_the_events_they_stand_for(schema: int) -> None:
    stored = read(ROWS, schema)
    assert (stored.events, stored.rows, stored.torn, stored.header) == (EVENTS, len(ROWS), None, header())


def test_schema_17_packs_chunks_compresses_data_and_marks_what_may_be_ignored() -> None:
    hint = row({**mark("future/hint", note="x"), "seq": 3, "time": 9}, ignorable=1)
    squeezed = hint._replace(is_blob=True, data=zstandard.ZstdCompressor().compress(hint.data))
    for last in (hint, squeezed):
        stored = read([PACKED, last])
        assert [event["seq"] for event in stored.events] == [0, 1, 2, 3]
        assert stored.events[2]["data"]["chunk"] == {"type": "text-delta", "index": 0, "text": "c"}
        assert stored.events[3] == {**mark("future/hint", note="x"), "seq": 3, "time": 9, "ignorable": True}


@pytest.mark.parametrize(
    ("blob", "cited"),
    [(b"", []), (b"\x05\x02\x02", [5, 6, 7]), (b"\x28", [40]), (b"\x90\x02\x01\x04", [272, 271, 273])],
)
def test_cited_events_are_written_as_differences(blob: bytes, cited: list[int]) -> None:
    padding = [row({**mark("todo/write"), "seq": seq, "time": 1}) for seq in range(300)]
    last = row({**answer("x"), "seq": 300, "time": 1}, source_event_seqs=blob)
    assert read([*padding, last]).events[-1]["sourceEventSeqs"] == cited


@pytest.mark.parametrize(
    "change",
    [
        {"source_event_seqs": b"\x80"},
        {"source_event_seqs": b"\x81\x00"},
        {"source_event_seqs": b"\x00\x01"},
        {"source_event_seqs": b"\xff" * 9 + b"\x01"},
        {"is_blob": True, "data": b"nonsense"},
        {"data": b"{"},
        {"surface_op": b"append"},
        {"seq": 9},
        {"ignorable": 0},
    ],
    ids=str,
)
def test_a_bad_row_is_a_torn_tail_unless_a_turn_ends_after_it(change: dict[str, Any]) -> None:
    bad = ROWS[2]._replace(**change)
    stored = read([*ROWS[:2], bad, *ROWS[3:-1]])
    assert (stored.events, stored.rows) == (EVENTS[:2], 2)
    assert stored.torn is not None
    with pytest.raises(LogRejected, match="row"):
        read([*ROWS[:2], bad, *ROWS[3:]])
    with pytest.raises(LogRejected, match="row"):
        read([*ROWS[:-1], ROWS[-1]._replace(**change)])


@pytest.mark.parametrize("data", [b'{"turn":1,"step":1,"index":0,"dt":[1],"texts":["a","b"]}', b"[]", b'{"dt":[]}'])
def test_a_packed_row_has_three_members_and_more(data: bytes) -> None:
    assert read([PACKED._replace(data=data)]).events == []


def test_events_keep_the_rules_of_generation_0() -> None:
    with pytest.raises(LogEventRejected, match="surface"):
        read([row(EVENTS[0], surface_op=b'"append"')])
    with pytest.raises(LogEventRejected, match="number"):
        read([row(EVENTS[0], data=b'{"turn":-0}')])
    with pytest.raises(LogUnsupported, match="unknown_type"):
        read([row(EVENTS[0], type=b"future/need")])
    with pytest.raises(LogUnsupported, match="version 4"):
        read_rows(SESSION._replace(version=4), [], schema=17, name="sessions.db")
    with pytest.raises(LogRejected, match="header"):
        read_rows(SESSION._replace(cwd="srv"), [], schema=17, name="sessions.db")
    assert read_rows(SESSION._replace(delegation_depth=None), [], schema=17, name="x").header.delegation_depth is None


def test_a_value_that_grows_without_end_meets_the_limit() -> None:
    bomb = zstandard.ZstdCompressor().compress(b" " * 50_000_000)
    with pytest.raises(LogRejected, match="too_large"):
        read([row(EVENTS[0], is_blob=True, data=bomb)], limit=1_000_000)
    with pytest.raises(LogRejected, match="too_large"):
        read(ROWS, limit=100)


@given(
    st.lists(
        st.builds(
            EventRow,
            st.integers(0, 4),
            st.sampled_from([b"turn/end", b"text-chunks", b"user/message", b"assistant/message", b"\xff"]),
            st.integers(-(2**63), 2**63 - 1),
            st.booleans(),
            st.binary(max_size=12) | st.sampled_from([PACKED.data, b"{}", ROWS[2].data]),
            st.none() | st.binary(max_size=4),
            st.none() | st.sampled_from([b'"append"', b"1", b"{"]),
            st.none() | st.integers(0, 1),
        ),
        max_size=5,
    ),
    st.sampled_from([13, 17]),
)
def test_any_rows_are_refused_or_read(rows: list[EventRow], schema: int) -> None:
    try:
        stored = read(rows, schema)
    except LogRejected:
        return
    assert [event["seq"] for event in stored.events] == list(range(len(stored.events)))


@pytest.mark.parametrize("schema", [13, 17])
def test_a_database_gives_its_sessions(schema: int, tmp_path: Path) -> None:
    with SessionDatabase(database(tmp_path / "sessions.db", schema, ROWS)) as found:
        assert (found.schema, found.ids()) == (schema, ["s"])
        assert found.read("s").events == EVENTS
        for absent in ("t", "\ud800", ""):
            with pytest.raises(LogRejected, match="missing"):
                found.read(absent)


def test_a_database_that_its_owner_writes_to_is_seen_as_it_was(tmp_path: Path) -> None:
    path = database(tmp_path / "sessions.db", 17, ROWS[:3])
    owner = sqlite3.connect(path, isolation_level=None)
    owner.execute("PRAGMA journal_mode = WAL")
    with SessionDatabase(path) as found:
        assert len(found.read("s").events) == 3
        owner.execute("DELETE FROM events WHERE seq = 2")
        assert len(found.read("s").events) == 3
    with SessionDatabase(path) as found:
        assert len(found.read("s").events) == 2
    owner.close()


def test_a_database_that_its_owner_holds_alone_is_to_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = database(tmp_path / "sessions.db", 17, ROWS)
    owner = sqlite3.connect(path, isolation_level=None)
    owner.execute("BEGIN EXCLUSIVE")
    path.with_name("sessions.db-journal").write_bytes(b"waiting")
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: connect(*given, **{**named, "timeout": 0}))
    with pytest.raises(StoreUnavailable):
        SessionDatabase(path)
    owner.close()


@pytest.mark.parametrize(("schema", "application"), [(16, APPLICATION_ID), (18, APPLICATION_ID), (17, 0), (0, 0)])
def test_another_schema_is_refused(schema: int, application: int, tmp_path: Path) -> None:
    with pytest.raises(LogUnsupported, match="schema"):
        SessionDatabase(database(tmp_path / "sessions.db", schema, application=application))


@pytest.mark.parametrize(
    "change",
    ["CREATE VIEW v AS SELECT 1", "CREATE INDEX i ON events (type)", "ALTER TABLE events ADD COLUMN more TEXT"],
)
def test_a_schema_that_somebody_changed_is_refused(change: str, tmp_path: Path) -> None:
    path = database(tmp_path / "sessions.db", 17)
    connection = sqlite3.connect(path)
    connection.execute(change)
    connection.close()
    with pytest.raises(LogUnsupported, match="not the tables"):
        SessionDatabase(path)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sessions.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(LogRejected, match="database"):
        SessionDatabase(tmp_path / "sessions.db")
    with pytest.raises(ObjectMissing):
        SessionDatabase(tmp_path / "absent.db")
    whole = database(tmp_path / "whole.db", 17, ROWS).read_bytes()
    (tmp_path / "cut.db").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(LogRejected), SessionDatabase(tmp_path / "cut.db") as found:
        found.read("s")
