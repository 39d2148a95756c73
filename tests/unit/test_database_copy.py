"""Copying a database that its owner changes meanwhile: a copy is one moment of it."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import ObjectTooLarge, StoreUnavailable
from storage.database_copy import copy_database
from storage.objects import ObjectStore, open_store
from tests.relavium_archive import (
    add_messages,
    add_session,
    history,
)


class Changing:
    """A store in which something happens after each of the first reads; otherwise the one that it is made of."""

    def __init__(self, store: ObjectStore, *happenings: Callable[[], None]) -> None:
        self._store = store
        self._happenings = list(happenings)
        self.reads: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read_range(self, key: str, start: int, length: int) -> bytes:
        data = self._store.read_range(key, start, length)
        self.reads.append(key)
        if self._happenings:
            self._happenings.pop(0)()
        return data


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    connection = history(tmp_path / "live" / "history.db")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    add_session(connection)
    add_messages(connection, "s1", *((("user", "x" * 500)) for _ in range(50)))
    yield connection
    connection.close()


def copied(store: Any, folder: Path) -> list[int]:
    folder.mkdir(exist_ok=True)
    path = copy_database(store, "history.db", folder)
    with sqlite3.connect(path) as copy:
        assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = copy.execute("SELECT sequence_number FROM session_messages ORDER BY 1").fetchall()
    copy.close()
    return [number for (number,) in rows]


@pytest.mark.parametrize("moment", [0, 1, 2])
@pytest.mark.parametrize("mode", ["PASSIVE", "RESTART", "TRUNCATE"])
def test_a_checkpoint_while_copying_gives_one_moment_of_the_store(
    tmp_path: Path, owner: sqlite3.Connection, mode: str, moment: int
) -> None:
    def checkpoint_and_write() -> None:
        owner.execute(f"PRAGMA wal_checkpoint({mode})")
        add_messages(owner, "s1", ("user", "y" * 500), start=50)
        owner.execute("UPDATE session_messages SET content_parts = '[]' WHERE sequence_number < 25")

    happenings = [lambda: None] * moment + [checkpoint_and_write]
    store = Changing(open_store(tmp_path / "live"), *happenings)
    numbers = copied(store, tmp_path / "copy")
    assert numbers in (list(range(50)), list(range(51)))
    assert oct((tmp_path / "copy/copy.db").stat().st_mode & 0o777) == "0o600"


def test_commits_while_copying_need_no_second_attempt(tmp_path: Path, owner: sqlite3.Connection) -> None:
    store = Changing(
        open_store(tmp_path / "live"),
        lambda: None,
        lambda: add_messages(owner, "s1", ("user", "y"), start=50),
        lambda: add_messages(owner, "s1", ("user", "y"), start=51),
    )
    assert copied(store, tmp_path / "copy") in (list(range(51)), list(range(52)))
    assert store.reads.count("history.db") == 1


def test_a_store_that_keeps_changing_is_a_problem_of_this_run(
    tmp_path: Path, owner: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def again() -> None:
        owner.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        owner.execute("UPDATE agent_sessions SET title = coalesce(title, '') || 'x'")

    monkeypatch.setattr("storage.database_copy._WAIT_SECONDS", 0.0)
    store = Changing(open_store(tmp_path / "live"), *[again] * 100)
    (tmp_path / "copy").mkdir()
    with pytest.raises(StoreUnavailable, match="its owner kept changing it"):
        copy_database(store, "history.db", tmp_path / "copy")


def test_a_store_above_the_limit_is_not_copied(tmp_path: Path, owner: sqlite3.Connection) -> None:
    (tmp_path / "copy").mkdir()
    with pytest.raises(ObjectTooLarge):
        copy_database(open_store(tmp_path / "live"), "history.db", tmp_path / "copy", limit=10_000)
    assert list((tmp_path / "copy").iterdir()) == []


def test_every_copy_of_a_store_whose_owner_never_rests_is_one_moment_of_it(tmp_path: Path) -> None:
    path = tmp_path / "live/history.db"
    owner = subprocess.Popen(
        [sys.executable, "-m", "tests.history_owner", str(path), "busy"], stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    moments: list[int] = []
    try:
        assert owner.stdout.readline() == "written\n"
        for number in range(40):
            folder = tmp_path / f"copy{number}"
            folder.mkdir()
            try:
                copied_path = copy_database(open_store(path.parent), "history.db", folder)
            except StoreUnavailable:
                continue  # it is allowed to be too busy, and says so
            with closing(sqlite3.connect(copied_path)) as copy:
                assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                found = copy.execute("SELECT DISTINCT created_at FROM session_messages").fetchall()
            if len(found) > 1:  # the owner had not changed them yet
                assert len(found) == 100
                continue
            moments.append(found[0][0])
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()
    assert moments == sorted(moments)
    assert len(set(moments)) >= 10
