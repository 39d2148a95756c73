"""`history.db`: rows as sessions, a store in use, and one that somebody tampered with."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.call_facts import read_call_facts
from schemas.session_data import text_of
from storage import relavium_sqlite
from storage.landings import calls_key
from storage.objects import open_store
from storage.zone import Zone
from tasks.land.relavium import stored
from tests.history_owner import BIG
from tests.memory_store import MemoryStore
from tests.relavium_archive import (
    CONTEXT,
    SCHEMA,
    add_message,
    add_messages,
    add_row,
    add_session,
    assemble,
    cost_row,
    export,
    history,
    land,
    message_lines,
    problems,
    put_pair,
    records,
    session_lines,
)
from tests.relavium_sessions import call, result, said

TURN = (("user", "one"), ("assistant", "1"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    return tmp_path / "source"


@pytest.fixture
def zone(tmp_path: Path) -> Zone:
    (tmp_path / "zone").mkdir()
    return Zone(open_store(tmp_path / "zone"))


@pytest.fixture
def database(source: Path) -> Iterator[sqlite3.Connection]:
    connection = history(source / "history.db")
    yield connection
    connection.close()


@pytest.fixture(autouse=True)
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where copies are made; nothing is left there."""
    folder = tmp_path / "private"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def found(source: Path, zone: Zone) -> list[tuple[str, str]]:
    return [(problem.rule, problem.detail) for problem in problems(land(source, zone))]


def texts(zone: Zone, session: str = "s1") -> list[str]:
    return [text_of(record.parts[0]) for record in records(zone, session)]


def test_rows_are_the_lines_that_files_of_the_session_are(
    source: Path, zone: Zone, database: sqlite3.Connection
) -> None:
    add_session(database, title="Tides")
    add_messages(database, "s1", *TURN)
    add_message(database, "s1", 2, "assistant", [call("read_file")], name="read_file", model_id="mc-1", content="")
    add_message(database, "s1", 3, "tool", [result()], tool_call_id="session-tool:1:0")
    add_message(database, "s1", 4, "system", said("s"), compaction_dropped_through_sequence=1)
    assert found(source, zone) == []
    (line,) = session_lines(zone)
    assert line["record"] == {
        "id": "s1",
        "agentSlug": "pilot",
        "title": "Tides",
        "context": CONTEXT,
        "status": "idle",
        "totalInputTokens": 0,
        "totalOutputTokens": 0,
        "totalCostMicrocents": 0,
        "totalConservativeMicrocents": 0,
        "createdAt": "2026-07-01T12:00:00.000Z",
        "updatedAt": "2026-07-01T12:00:00.000Z",
    }
    stored_messages = [line["message"] for line in message_lines(zone) if "message" in line]
    assert [message["id"] for message in stored_messages] == [f"s1-{n}" for n in range(5)]
    other = Zone(MemoryStore())
    put_pair(source.parent / "files", line["record"], stored_messages)
    assert problems(land(source.parent / "files", other)) == []
    assert records(other) == records(zone)


def test_a_database_and_files_made_from_it_are_one_session(
    source: Path, zone: Zone, database: sqlite3.Connection
) -> None:
    add_session(database)
    add_messages(database, "s1", *TURN)
    land(source, zone)
    (line,) = session_lines(zone)
    put_pair(source / "files", line["record"], [each["message"] for each in message_lines(zone)])
    add_messages(database, "s1", ("user", "two"), start=2)
    assert found(source, zone) == []
    assert texts(zone) == ["one", "1", "two"]


def test_what_models_cost_is_landed_and_stands_in_the_call_facts(
    source: Path, zone: Zone, database: sqlite3.Connection
) -> None:
    add_session(database, total_input_tokens=10, total_output_tokens=4, total_cost_microcents=700)
    add_messages(database, "s1", *TURN)
    cost_row(database, "s1", "m-2", input_tokens=3, cost_microcents=200, call_count=1)
    cost_row(database, "s1", "m-1", output_tokens=4, cost_microcents=500, call_count=2, unpriced_calls=1)
    assert found(source, zone) == []
    (record,) = records(zone, kind="session")
    assert record.usage is not None
    assert (record.usage.in_, record.usage.out, record.call) == (10, 4, "s1#totals")
    data = zone.store.read(calls_key("s1", 2))
    (facts,) = read_call_facts(zstandard.ZstdDecompressor().decompress(data), name="calls")
    usage = json.loads(bytes(facts.usage))
    assert usage["costMicrocents"] == 700
    assert [(model["model"], model["costMicrocents"], model["callCount"]) for model in usage["models"]] == [
        ("m-1", 500, 2),
        ("m-2", 200, 1),
    ]


def test_a_store_in_use_shows_what_is_committed_and_is_not_touched(source: Path, zone: Zone) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-m", "tests.history_owner", str(source / "history.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdin is not None
    assert owner.stdout is not None
    try:
        assert owner.stdout.readline() == "written\n"
        before = contents(source)
        assert len(before["history.db-wal"][0]) > 40 * len(BIG)
        assert found(source, zone) == []
        assert texts(zone) == ["one", "1"]
        assert contents(source) == before
        owner.stdin.write("\n")
        owner.stdin.flush()
        assert owner.stdout.readline() == "committed\n"
        assert found(source, zone) == []
        assert texts(zone) == ["one", "1", *[BIG] * 40]
    finally:
        owner.kill()
        owner.wait()
        owner.stdin.close()
        owner.stdout.close()
    # What a killed owner leaves reads as well.
    assert found(source, zone) == []
    assert sorted(contents(source)) == ["history.db", "history.db-shm", "history.db-wal"]


def test_a_store_on_a_read_only_folder_reads(source: Path, zone: Zone, database: sqlite3.Connection) -> None:
    add_session(database)
    add_messages(database, "s1", *TURN)
    database.close()
    source.chmod(0o555)
    try:
        assert found(source, zone) == []
    finally:
        source.chmod(0o755)
    assert sorted(contents(source)) == ["history.db"]
    assert texts(zone) == ["one", "1"]


def test_a_transaction_that_a_crash_cut_is_undone_in_the_copy_alone(source: Path, zone: Zone) -> None:
    path = source / "history.db"
    with sqlite3.connect(path, isolation_level=None) as owner:
        owner.executescript(SCHEMA)
        add_session(owner)
        add_messages(owner, "s1", *TURN)
        owner.execute("PRAGMA cache_size = 1")
        owner.execute("BEGIN")
        add_messages(owner, "s1", *(("user", BIG) for _ in range(40)), start=2)
        crashed = source.parent / "crashed"
        shutil.copytree(source, crashed)
        owner.execute("ROLLBACK")
    owner.close()
    assert (crashed / "history.db-journal").stat().st_size > 0
    before = contents(crashed)
    assert found(crashed, zone) == []
    assert texts(zone) == ["one", "1"]
    assert contents(crashed) == before


def test_deleted_sessions_do_not_land_and_one_that_is_deleted_later_stays(
    source: Path, zone: Zone, database: sqlite3.Connection
) -> None:
    add_session(database, "gone", deleted_at=1)
    add_messages(database, "gone", *TURN)
    add_session(database)
    add_messages(database, "s1", *TURN)
    assert found(source, zone) == []
    assert zone.sessions() == ["s1"]
    database.execute("UPDATE agent_sessions SET deleted_at = 1")
    add_session(database, "s2")
    assert found(source, zone) == []
    assert texts(zone) == ["one", "1"]
    assert {cursor.values["state"] for cursor in zone.cursors("s1")} == {"source_gone"}


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"content": "other"}, "metadata_invalid: content"),
        ({"tool_calls": "[]", "finish_reason": "never"}, "metadata_invalid: finish_reason"),
        ({"tool_calls": json.dumps([call("x")])}, "metadata_invalid: tool_calls"),
        ({"name": "x"}, "metadata_invalid: name"),
        ({"tool_call_id": "x"}, "metadata_invalid: tool_call_id"),
        ({"content_parts": "{"}, "message_invalid: content_parts"),
        ({"content_parts": b"\x00\xff"}, "message_invalid: content_parts"),
        ({"content_parts": json.dumps([{"type": "text", "text": "x", "args": 1}])}, "message_invalid: content.0.args"),
        ({"role": "robot"}, "message_invalid: role"),
        ({"created_at": "yesterday"}, "message_invalid: created_at"),
        ({"created_at": 10**18}, "message_invalid: created_at"),
    ],
)
def test_a_row_that_breaks_the_stores_rules_is_named_and_the_rest_lands(
    source: Path, zone: Zone, database: sqlite3.Connection, columns: dict[str, Any], problem: str
) -> None:
    add_session(database)
    add_messages(database, "s1", *TURN)
    role = columns.pop("role", "assistant")
    add_message(database, "s1", 2, role, said("bad"), **columns)
    add_messages(database, "s1", ("user", "two"), start=3)
    add_session(database, "s2")
    add_messages(database, "s2", *TURN)
    (met,) = problems(land(source, zone))
    assert (met.rule, met.row, met.detail) == ("not_understood", 3, problem)
    kinds = [record.parts[0].k for record in records(zone)]
    assert kinds == ["text", "text", "unknown", "text"]
    assert texts(zone, "s2") == ["one", "1"]
    assemble(zone)
    outcomes = {outcome.conversation: outcome.state for outcome in export(zone, MemoryStore())}
    assert outcomes == {"s1": "rejected", "s2": "written"}


def test_a_number_where_a_place_should_be_is_a_row_of_its_own(
    source: Path, zone: Zone, database: sqlite3.Connection
) -> None:
    add_session(database)
    add_message(database, "s1", 7, "user", said("x"), sequence_number="first", content="x")
    add_messages(database, "s1", *TURN)
    assert [detail for _, detail in found(source, zone)] == ["message_invalid: sequenceNumber"]
    assert [record.parts[0].k for record in records(zone)] == ["text", "text", "unknown"]


@pytest.mark.parametrize(
    ("columns", "detail"),
    [
        ({"context_json": "{}"}, "message_invalid: context.workingDir"),
        ({"agent_snapshot": "{"}, "message_invalid: agent_snapshot"),
        ({"agent_slug": "Not Kebab"}, "message_invalid: agentSlug"),
        ({"updated_at": None}, "message_invalid: updated_at"),
    ],
)
def test_a_session_row_that_breaks_a_rule_is_named_and_its_messages_land(
    source: Path, zone: Zone, database: sqlite3.Connection, columns: dict[str, Any], detail: str
) -> None:
    if columns.get("updated_at", 0) is None:  # no known store has such a table, but SQLite would hold it
        database.execute("PRAGMA writable_schema = ON")
        database.execute(
            "UPDATE sqlite_master SET sql = replace(sql, 'updated_at INTEGER NOT NULL', 'updated_at INTEGER')"
        )
        database.execute("PRAGMA writable_schema = RESET")
    add_session(database, **columns)
    add_messages(database, "s1", *TURN)
    (met,) = problems(land(source, zone))
    assert (met.rule, met.detail, met.file) == ("not_understood", detail, "history.db#s1/record")
    assert texts(zone) == ["one", "1"]


def test_rows_without_a_session_are_named(source: Path, zone: Zone, database: sqlite3.Connection) -> None:
    add_session(database)
    add_messages(database, "s1", *TURN)
    add_messages(database, "nobody", *TURN)
    add_session(database, "")
    assert found(source, zone) == [
        ("unreadable", "row 2 of agent_sessions has no usable id"),
        ("unreadable", "2 of the rows of session_messages belong to no session"),
    ]
    assert texts(zone) == ["one", "1"]


def test_a_row_that_is_too_large_is_named_and_the_rest_lands(
    source: Path, zone: Zone, database: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relavium_sqlite, "MAX_VALUE_BYTES", 100_000)
    add_session(database)
    add_messages(database, "s1", ("user", "x" * 200_000), ("assistant", "1"))
    assert [detail for _, detail in found(source, zone)] == ["too_large: the row"]
    assert [record.parts[0].k for record in records(zone)] == ["unknown", "text"]


def test_a_session_that_is_too_large_is_named_and_others_land(
    source: Path, zone: Zone, database: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "MAX_SESSION_BYTES", 10_000)
    add_session(database)
    add_messages(database, "s1", ("user", "x" * 20_000))
    add_session(database, "s2")
    add_messages(database, "s2", *TURN)
    (met,) = problems(land(source, zone))
    assert (met.rule, met.file) == ("unreadable", "history.db#s1/messages")
    assert zone.sessions() == ["s2"]


def test_a_record_that_is_nested_too_deep_is_named_and_its_messages_land(
    source: Path, zone: Zone, database: sqlite3.Connection
) -> None:
    agent = '{"id":"a","model":"m","provider":"openai","system_prompt":"p","input_schema":'
    add_session(database, agent_snapshot=agent + '{"a":' * 800 + "1" + "}" * 801)
    add_messages(database, "s1", *TURN)
    (met,) = problems(land(source, zone))
    assert (met.rule, met.detail) == ("not_understood", "too_deep: agent_snapshot")
    assert texts(zone) == ["one", "1"]


VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.binary(max_size=9),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
    st.sampled_from(["user", "assistant", "[]", '[{"type":"text","text":"x"}]', "{}", "s1", "é\x00"]),
)
FREE = ("id", "role", "content", "content_parts", "tool_calls", "tool_call_id", "name", "finish_reason", "model_id",
        "compaction_dropped_through_sequence", "sequence_number", "created_at")  # fmt: skip
LOOSE = re.sub(r" NOT NULL| PRIMARY KEY| UNIQUE", "", SCHEMA)
OF_COSTS = ("model", "input_tokens", "output_tokens", "cost_microcents", "call_count", "is_legacy")


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from(FREE), VALUES), max_size=4),
    st.dictionaries(st.sampled_from(OF_COSTS), VALUES),
)
def test_whatever_rows_hold_each_is_one_line(rows: list[dict[str, Any]], cost: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.db"
        with closing(history(path, LOOSE)) as owner:
            owner.executescript("PRAGMA ignore_check_constraints = ON; PRAGMA synchronous = OFF")
            add_session(owner, total_input_tokens=1)
            for number, row in enumerate(rows):
                add_row(owner, "session_messages", {"session_id": "s1", "sequence_number": number, **row})
            add_row(owner, "session_costs", {"session_id": "s1", **cost})
        zone = Zone(MemoryStore())
        land(Path(folder), zone)
        assert len(records(zone)) == len(rows)
        assert len(records(zone, kind="session")) == 1
