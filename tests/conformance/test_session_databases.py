"""The original's databases, through the backend that reads both of its schemas and writes one."""

from __future__ import annotations

import shutil
import sqlite3
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import LogUnsupported
from storage.session_logs import SqliteSessions
from tests.dsh_logs import golden_events, header, read_json
from tests.golden import golden_cases

CASES = [case for case in golden_cases("dsh") if (case / "sessions.db").is_file()]
SESSIONS = [path for case in CASES for path in sorted(case.glob("events-*.json"))]
WRITTEN = [path for path in SESSIONS if "v17" in path.parent.name]


@pytest.fixture
def copied(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The case's database as a file of one's own."""
    path: Path = request.getfixturevalue("path")
    shutil.copyfile(path.parent / "sessions.db", tmp_path / "sessions.db")
    (tmp_path / "sessions.db").chmod(0o600)
    return tmp_path / "sessions.db"


def rows(path: Path, session: str) -> list[tuple[Any, ...]]:
    query = """
        SELECT seq, type, time, data, source_event_seqs, surface_op, ignorable
        FROM events WHERE session_id = ? ORDER BY seq"""
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query, (session,)).fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_header_and_logical_events_are_the_original_ones(path: Path, copied: Path) -> None:
    golden = read_json(path)
    session = golden["meta"]["id"]
    with SqliteSessions(copied) as sessions:
        assert {"type": "session", **golden["meta"]} in [header.as_json() for header in sessions.list()]
        seen = sessions.inspect(session)
        assert seen.meta.as_json() == {"type": "session", **golden["meta"]}
        assert list(seen.events) == golden_events(golden["events"])
        closed = len(seen.events) - len(sessions.read_from(session, 0).events)
        if closed and "v13" in path.parent.name:
            with pytest.raises(LogUnsupported, match="read_only"):
                sessions.load(session)
        else:
            assert sessions.load(session) == seen
            assert list(sessions.read_from(session, 2).events) == list(seen.events[2:])


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_each_row_is_written_as_the_original_wrote_it(path: Path, copied: Path, tmp_path: Path) -> None:
    with SqliteSessions(copied) as theirs, SqliteSessions(tmp_path / "ours.db") as ours:
        session = read_json(path)["meta"]["id"]
        stored = theirs.read_from(session, 0)
        expected = rows(copied, session)
        ours.create(stored.meta)
        for start, end in pairwise([row[0] for row in expected] + [len(stored.events)]):
            ours.append(session, stored.events[start:end])
        assert rows(tmp_path / "ours.db", session) == expected
        assert ours.read_from(session, 0) == stored


def test_our_tables_are_the_original_ones(tmp_path: Path) -> None:
    [case] = [case for case in CASES if "v17" in case.name]
    with SqliteSessions(tmp_path / "ours.db") as ours:
        ours.create(header())
        ours.append("s", [{"type": "plan/mode", "seq": 0, "time": 0, "data": {"active": True}}])
        for query in ("SELECT sql FROM sqlite_master", "PRAGMA application_id", "PRAGMA user_version"):
            assert asked(tmp_path / "ours.db", query) == asked(case / "sessions.db", query)


def asked(path: Path, query: str) -> list[Any]:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()
