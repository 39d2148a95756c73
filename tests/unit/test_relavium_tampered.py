"""A `history.db` that is none, is damaged, or is not as its owner makes it is refused with a reason, and nothing else
is."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from schemas.session_data import text_of
from storage.objects import open_store
from storage.zone import Zone
from tests.relavium_archive import (
    add_messages,
    add_session,
    history,
    land,
    problems,
    records,
)

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


def found(source: Path, zone: Zone) -> list[tuple[str, str]]:
    return [(problem.rule, problem.detail) for problem in problems(land(source, zone))]


def texts(zone: Zone, session: str = "s1") -> list[str]:
    return [text_of(record.parts[0]) for record in records(zone, session)]


def rejected(source: Path, zone: Zone) -> str:
    """What is said of the store in `source`; a good one beside it lands."""
    other = history(source / "beside.history.db")
    add_session(other, "beside")
    add_messages(other, "beside", *TURN)
    other.close()
    (met,) = problems(land(source, zone))
    assert (met.file, met.rule) == ("history.db", "unreadable")
    assert zone.sessions() == ["beside"]
    assert "Traceback" not in met.detail
    assert met.detail.startswith("history.db: ")
    return met.detail.removeprefix("history.db: ")


@pytest.mark.parametrize("data", [b"no database", b"SQLite format 3\0" + b"\0" * 4080, b"\x8a" * 8192])
def test_a_file_that_is_no_database_is_refused(source: Path, zone: Zone, data: bytes) -> None:
    (source / "history.db").write_bytes(data)
    assert rejected(source, zone).startswith(("database: ", "schema: there is no table"))


def test_an_empty_file_is_refused(source: Path, zone: Zone) -> None:
    (source / "history.db").write_bytes(b"")
    assert rejected(source, zone).startswith("schema: there is no table agent_sessions")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("DROP TABLE session_messages", "schema: there is no table session_messages"),
        ("ALTER TABLE session_messages DROP COLUMN name", "schema: session_messages has no column name"),
        (
            "ALTER TABLE agent_sessions RENAME TO t; CREATE VIEW agent_sessions AS SELECT * FROM t",
            "schema: agent_sessions is no ordinary table",
        ),
        (
            "CREATE TRIGGER t AFTER INSERT ON session_messages BEGIN DELETE FROM agent_sessions; END",
            "schema: session_messages has a trigger",
        ),
        (
            "ALTER TABLE session_messages RENAME COLUMN name TO n; "
            "ALTER TABLE session_messages ADD COLUMN name TEXT AS (upper(n))",
            "schema: session_messages has computed columns",
        ),
        (
            "ALTER TABLE session_messages ADD COLUMN RowId INTEGER",
            "schema: session_messages has a column that hides its row numbers",
        ),
        (
            "DROP TABLE session_messages; CREATE VIRTUAL TABLE session_messages USING fts5(id)",
            "schema: session_messages is no ordinary table",
        ),
    ],
)
def test_a_store_with_other_tables_is_refused(
    source: Path, zone: Zone, database: sqlite3.Connection, change: str, said: str
) -> None:
    add_session(database)
    add_messages(database, "s1", *TURN)
    database.executescript(change)
    assert rejected(source, zone).startswith(said)


def test_a_table_without_row_numbers_is_refused(source: Path, zone: Zone, database: sqlite3.Connection) -> None:
    (made,) = database.execute("SELECT sql FROM sqlite_master WHERE name = 'session_messages'").fetchone()
    database.executescript(f"DROP TABLE session_messages; {made} WITHOUT ROWID")
    assert rejected(source, zone).startswith("schema: session_messages has no row numbers")


def test_other_tables_and_views_are_not_touched(source: Path, zone: Zone, database: sqlite3.Connection) -> None:
    add_session(database)
    add_messages(database, "s1", *TURN)
    database.executescript(
        "CREATE VIEW v AS SELECT load_extension('x'); CREATE TABLE runs (id); "
        "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM agent_sessions; END; DROP TABLE session_costs"
    )
    assert found(source, zone) == []
    assert texts(zone) == ["one", "1"]


def damaged(source: Path, place: Callable[[int], int], data: bytes) -> None:
    path = source / "history.db"
    with path.open("r+b") as file:
        file.seek(place(path.stat().st_size))
        file.write(data)


@pytest.mark.parametrize("page", [1, 2, 5, -1, -3])
def test_a_damaged_page_is_said(source: Path, zone: Zone, database: sqlite3.Connection, page: int) -> None:
    for number in range(30):
        add_session(database, f"s{number}")
        add_messages(database, f"s{number}", *(("user", "x" * 900) for _ in range(5)))
    database.close()
    damaged(source, lambda size: page * 4096 if page > 0 else size + page * 4096, b"\xa5" * 4096)
    assert rejected(source, zone).startswith("database: ")


def test_a_database_that_is_cut_is_said(source: Path, zone: Zone, database: sqlite3.Connection) -> None:
    add_session(database)
    add_messages(database, "s1", *(("user", "x" * 3000) for _ in range(30)))
    database.close()
    data = (source / "history.db").read_bytes()
    (source / "history.db").write_bytes(data[: len(data) // 2])
    assert rejected(source, zone).startswith("database: ")


def test_a_torn_log_gives_what_was_committed_before_the_tear(source: Path, zone: Zone) -> None:
    owner = history(source.parent / "live" / "history.db")
    owner.execute("PRAGMA wal_autocheckpoint = 0")
    add_session(owner)
    add_messages(owner, "s1", *TURN)
    shutil.copy(source.parent / "live/history.db", source)
    log = (source.parent / "live/history.db-wal").read_bytes()
    add_messages(owner, "s1", ("user", "later"), start=2)
    torn = (source.parent / "live/history.db-wal").read_bytes()
    owner.close()
    (source / "history.db-wal").write_bytes(torn[: len(log) + (len(torn) - len(log)) // 2])
    assert found(source, zone) == []
    assert texts(zone) == ["one", "1"]
