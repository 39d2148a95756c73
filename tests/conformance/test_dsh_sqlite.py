"""Databases of the original's two schemas: every session's header and logical events."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.dsh import closing_events
from storage.dsh_sqlite import SessionDatabase
from tests.dsh_logs import golden_events, read_json
from tests.golden import golden_cases

CASES = [case for case in golden_cases("dsh") if (case / "sessions.db").is_file()]
SESSIONS = [path for case in CASES for path in sorted(case.glob("events-*.json"))]


def test_there_are_cases() -> None:
    assert SESSIONS


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_session_has_its_logical_events_to_meet(case: Path) -> None:
    with SessionDatabase(case / "sessions.db") as database:
        assert f"v{database.schema}" in case.name
        assert set(database.ids()) == {read_json(path)["meta"]["id"] for path in case.glob("events-*.json")}


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_header_and_logical_events_are_the_original_ones(path: Path) -> None:
    golden = read_json(path)
    with SessionDatabase(path.parent / "sessions.db") as database:
        stored = database.read(golden["meta"]["id"])
    assert stored.header.as_json() == {"type": "session", **golden["meta"]}
    assert stored.torn is None
    assert stored.events + closing_events(stored.events, 0) == golden_events(golden["events"])
