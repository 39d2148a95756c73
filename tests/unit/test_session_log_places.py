"""Folders and files that are not what a root of session logs has: links, pipes, other encodings, others' databases."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from schemas.dsh import write_event
from schemas.dsh_root import log_key
from schemas.errors import (
    AccessRefused,
    ConfigurationRejected,
    LogEventRejected,
    LogRejected,
    LogUnsupported,
    SessionBusy,
    SessionWriteRefused,
    StoreUnavailable,
)
from storage.session_logs import Cancellation, JsonlSessions, SqliteSessions
from storage.session_logs.log_files import FileHold
from storage.session_logs.turns import Turns
from tests.dsh_logs import answer, header, mark, numbered, text_chunks, turn, user

ONE_TURN = numbered(*turn(1, user("hi"), answer("hello")))
KEY = "--srv-proj--/s/session.jsonl.zstd"


def store(root: Path, *, compressed: bool = True) -> Path:
    """A root with one session; where its log lies."""
    with JsonlSessions(root, compressed=compressed) as sessions:
        sessions.create(header())
        sessions.append("s", ONE_TURN)
    return root / log_key(header(), compressed=compressed)


def test_files_and_folders_are_their_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = store(tmp_path / "root")
        with SqliteSessions(tmp_path / "own/sessions.db") as sessions:
            sessions.create(header())
            sessions.append("s", ONE_TURN)
            modes = {stat.S_IMODE(each.stat().st_mode) for each in (tmp_path / "own").iterdir()}
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in path.parents[:3]} == {0o700}
    assert modes == {0o600}
    assert [each.name for each in path.parent.iterdir()] == ["session.jsonl.zstd"]


@pytest.mark.parametrize("what", ["link", "dangling", "pipe"])
def test_a_log_that_is_no_plain_file_is_refused(what: str, tmp_path: Path) -> None:
    path = store(tmp_path / "root")
    elsewhere = tmp_path / "elsewhere.zstd"
    path.rename(elsewhere)
    if what == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(elsewhere if what == "link" else tmp_path / "nowhere")
    before = elsewhere.read_bytes()
    with JsonlSessions(tmp_path / "root") as sessions:
        for attempt in (
            sessions.list,
            lambda: sessions.inspect("s"),
            lambda: sessions.load("s"),
            lambda: sessions.append("s", [{**mark("turn/start", turn=2), "seq": 6, "time": 1}]),
        ):
            with pytest.raises(LogRejected, match="no plain file"):
                attempt()
        with pytest.raises((LogRejected, SessionWriteRefused)):
            sessions.create(header())
    assert elsewhere.read_bytes() == before


@pytest.mark.parametrize("depth", [1, 2])
def test_folders_that_are_links_are_not_entered(depth: int, tmp_path: Path) -> None:
    path = store(tmp_path / "elsewhere")
    root = tmp_path / "root"
    inside = root.joinpath(*path.relative_to(tmp_path / "elsewhere").parts[:depth])
    inside.parent.mkdir(parents=True)
    inside.symlink_to(path.parents[2 - depth])
    before = path.read_bytes()
    with JsonlSessions(root) as sessions:
        assert sessions.list() == []
        with pytest.raises(LogRejected, match="not found"):
            sessions.load("s")
        sessions.create(header())
        with pytest.raises(LogRejected, match="link"):
            sessions.append("s", ONE_TURN)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_root_that_is_a_link_is_a_root(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "there")
    store(tmp_path / "root")
    with JsonlSessions(tmp_path / "there") as sessions:
        assert sessions.list() == [header()]


def test_a_root_that_is_a_file_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "root").write_text("")
    with pytest.raises(ConfigurationRejected, match="file"):
        JsonlSessions(tmp_path / "root")


def test_one_root_has_one_encoding(tmp_path: Path) -> None:
    store(tmp_path)
    with JsonlSessions(tmp_path, compressed=False) as sessions:
        for attempt in (
            sessions.list,
            lambda: sessions.load("s"),
            lambda: sessions.create(header(id="new")),
            lambda: sessions.append("s", ONE_TURN),
        ):
            with pytest.raises(LogRejected, match="encoding"):
                attempt()
    with JsonlSessions(tmp_path, compressed=None) as sessions:
        assert list(sessions.load("s").events) == ONE_TURN
    # Both look at an empty root first; the second to write then finds what the first has written.
    with JsonlSessions(tmp_path / "new") as first, JsonlSessions(tmp_path / "new", compressed=False) as second:
        first.create(header())
        second.create(header())
        first.append("s", ONE_TURN)
        with pytest.raises(LogRejected, match="encoding"):
            second.append("s", ONE_TURN)


def test_a_newer_generation_in_the_directory_is_the_session(tmp_path: Path) -> None:
    path = store(tmp_path)
    newer = path.with_name("session.v5.jsonl.zstd")
    newer.write_bytes(path.read_bytes())
    with JsonlSessions(tmp_path) as sessions:
        with pytest.raises(LogUnsupported, match="newer"):
            sessions.load("s")
        with pytest.raises(SessionWriteRefused, match="exists"):
            sessions.create(header())


@pytest.mark.parametrize("generation", [1, 2, 3])
def test_generations_between_are_read_and_not_written(generation: int, tmp_path: Path) -> None:
    meta = header(generation)
    path = tmp_path / log_key(meta, compressed=False)
    path.parent.mkdir(parents=True)
    events = numbered(*turn(1, user("hi")), mark("turn/start", turn=2))
    line = write_event(meta.as_json())
    path.write_bytes(line + b"".join(map(write_event, events)))
    before = path.read_bytes()
    with JsonlSessions(tmp_path, compressed=False) as sessions:
        assert [event["type"] for event in sessions.inspect("s").events[-2:]] == ["turn/start", "turn/end"]
        with pytest.raises(LogUnsupported, match="read_only"):
            sessions.load("s")
    assert path.read_bytes() == before


def test_a_log_of_the_current_generation_is_locked_beside_it(tmp_path: Path) -> None:
    meta = header(4)
    path = tmp_path / log_key(meta, compressed=False)
    path.parent.mkdir(parents=True)
    path.write_bytes(write_event(meta.as_json()) + write_event(numbered(mark("turn/start", turn=1))[0]))
    with JsonlSessions(tmp_path, compressed=False) as sessions, JsonlSessions(tmp_path, compressed=None) as other:
        with sessions.prepare("s") as prepared, prepared.publish(now=1) as live:
            assert [event["type"] for event in prepared.events] == ["turn/start", "turn/end"]
            live.record("turn/start", {"turn": 2}, now=2)
            live.flush()
            for attempt in (lambda: other.load("s"), lambda: other.append("s", ONE_TURN)):
                with pytest.raises(SessionBusy):
                    attempt()
        assert [each["type"] for each in other.load("s").events[2:]] == ["session/end-seed", "turn/start", "turn/end"]
        lock = path.with_name("session.lock")
        assert (lock.read_bytes(), stat.S_IMODE(lock.stat().st_mode)) == (b"", 0o644)
    assert path.read_bytes().count(b"\n") == 6


def test_chunks_of_one_batch_alone_are_packed(tmp_path: Path) -> None:
    for packed, lines in ((True, 4), (False, 7)):
        root = tmp_path / str(packed)
        with JsonlSessions(root, compressed=False, packed=packed) as sessions:
            sessions.create(header())
            sessions.append("s", text_chunks(*"abcd"))
            sessions.append("s", text_chunks("e", "f", first_seq=4))
            path = root / log_key(header(), compressed=False)
            assert path.read_bytes().count(b"\n") == lines
            assert sessions.read_from("s", 0).events == text_chunks(*"abcdef")


def test_what_only_a_row_is_called_is_no_event(tmp_path: Path) -> None:
    with JsonlSessions(tmp_path) as sessions:
        sessions.create(header())
        event = {"type": "text-chunks", "seq": 0, "time": 1, "data": {}, "ignorable": True}
        with pytest.raises(LogRejected, match="row"):
            sessions.append("s", [event])


def test_leftovers_of_a_publication_are_passed_over(tmp_path: Path) -> None:
    path = store(tmp_path)
    path.with_name(f"{path.name}.0123456789ab.tmp").write_bytes(b"half")
    with JsonlSessions(tmp_path) as sessions:
        assert sessions.list() == [header()]
        assert list(sessions.load("s").events) == ONE_TURN


def test_a_log_that_is_taken_away_or_replaced_is_noticed(tmp_path: Path) -> None:
    path = store(tmp_path)
    with JsonlSessions(tmp_path) as sessions:
        sessions.append("s", [{**mark("turn/start", turn=2), "seq": 6, "time": 1}])
        revisions = {sessions.list_snapshots()[0].revision}
        copy = path.read_bytes()
        path.unlink()
        with pytest.raises(LogRejected, match="not found"):
            sessions.append("s", [{**mark("step/start", turn=2, step=1), "seq": 7, "time": 1}])
        assert sessions.list() == []
        path.write_bytes(copy)
        revisions.add(sessions.list_snapshots()[0].revision)
        assert len(revisions) == 2
        sessions.append("s", [{**mark("turn/start", turn=3), "seq": 8, "time": 1}])
        assert [event["seq"] for event in sessions.read_from("s", 0).events] == list(range(9))


@pytest.mark.parametrize("change", ["folder", "file", "link"])
def test_a_database_that_others_could_write_to_is_refused(change: str, tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with SqliteSessions(path) as sessions:
        sessions.create(header())
        sessions.append("s", ONE_TURN)
    if change == "folder":
        tmp_path.chmod(0o777)
    elif change == "file":
        path.chmod(0o644)
    else:
        path.rename(tmp_path / "real.db")
        path.symlink_to(tmp_path / "real.db")
    with pytest.raises(AccessRefused):
        SqliteSessions(path)
    tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    "statement",
    [
        "PRAGMA user_version = 18",
        "PRAGMA user_version = 0",
        "PRAGMA application_id = 7",
        "CREATE TABLE more (x)",
        "DROP TABLE persistence_state",
    ],
)
def test_a_database_of_another_layout_is_refused_and_left_as_it_is(statement: str, tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with SqliteSessions(path, journal="delete") as sessions:
        sessions.create(header())
        sessions.append("s", ONE_TURN)
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(LogUnsupported, match="schema"):
        SqliteSessions(path, journal="delete")
    assert path.read_bytes() == before


def test_only_ways_that_are_durable_are_offered(tmp_path: Path) -> None:
    for journal in ("memory", "off", "wal; DROP TABLE events"):
        with pytest.raises(ConfigurationRejected, match="journal"):
            SqliteSessions(tmp_path / "sessions.db", journal=journal)  # type: ignore[arg-type]
    assert not (tmp_path / "sessions.db").exists()


def test_rows_that_were_torn_are_taken_away_with_what_follows(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with SqliteSessions(path) as sessions:
        sessions.create(header())
        sessions.append("s", [*ONE_TURN, *({**e, "seq": 6 + n} for n, e in enumerate(numbered(*turn(2))[:3]))])
    connection = sqlite3.connect(path)
    connection.execute("UPDATE events SET data = '{' WHERE seq = 7")
    connection.commit()
    connection.close()
    with SqliteSessions(path) as sessions:
        before = sessions.list_snapshots()
        seen = sessions.inspect("s").events
        assert [event["seq"] for event in seen] == list(range(8))
        assert sessions.list_snapshots() == before
        assert sessions.load("s").events == seen
        assert sessions.list_snapshots() != before
        sessions.append("s", [{**mark("turn/start", turn=3), "seq": 8, "time": 1}])
        assert len(sessions.read_from("s", 0).events) == 9


def test_a_database_that_is_busy_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.session_logs.sqlite._BUSY_MILLISECONDS", 10)
    path = tmp_path / "sessions.db"
    with SqliteSessions(path) as sessions:
        sessions.create(header())
        sessions.append("s", ONE_TURN)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="locked"):
            sessions.append("s", [{**mark("turn/start", turn=2), "seq": 6, "time": 1}])
        other.execute("ROLLBACK")
        other.close()
        sessions.append("s", [{**mark("turn/start", turn=2), "seq": 6, "time": 1}])


def test_who_waits_for_his_turn_can_be_told_to_stop() -> None:
    turns, signal = Turns(), Cancellation()
    reason = RuntimeError("enough")
    with turns.of("s"), turns.of("another"):
        timer = threading.Timer(0.05, signal.cancel, [reason])
        timer.start()
        with pytest.raises(RuntimeError) as raised, turns.of("s", signal):
            raise AssertionError("it was not his turn")
        timer.join()
    assert raised.value is reason
    with turns.of("s"):
        pass


def test_a_turn_without_a_number_is_closed_in_memory_alone(tmp_path: Path) -> None:
    with JsonlSessions(tmp_path, compressed=False) as sessions:
        sessions.create(header())
        sessions.append("s", numbered(mark("turn/start", turn="one"), mark("step/start", turn="one", step=1)))
        before = (tmp_path / log_key(header(), compressed=False)).read_bytes()
        assert [event["type"] for event in sessions.inspect("s").events[2:]] == ["step/end", "turn/end"]
        with pytest.raises(LogEventRejected, match="unrepairable"):
            sessions.load("s")
        assert (tmp_path / log_key(header(), compressed=False)).read_bytes() == before


def test_a_log_is_free_once_it_is_released_even_if_a_child_of_ours_still_has_it_open(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"")
    hold = FileHold(os.open(path, os.O_RDONLY), "s")
    assert hold._descriptor is not None
    child = subprocess.Popen(["sleep", "60"], pass_fds=[hold._descriptor])
    try:
        hold.release()
        FileHold(os.open(path, os.O_RDONLY), "s").release()
    finally:
        child.kill()
        child.wait()
