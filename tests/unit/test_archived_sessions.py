"""Session logs that are only read: in an object store, and in a database of somebody else."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from schemas.errors import LogRejected, LogUnsupported, StoreUnavailable, WrongUse
from storage.objects import open_store
from storage.session_logs import (
    ArchivedDatabase,
    ArchivedSessions,
    Cancellation,
    JsonlSessions,
    SessionPersistence,
    SessionReader,
    SqliteSessions,
)
from tests.dsh_logs import answer, header, mark, numbered, turn, user

WHOLE = numbered(*turn(1, user("hi"), answer("hello")))
OPEN = [*WHOLE, {**mark("turn/start", turn=2), "seq": 6, "time": 1}]


@pytest.fixture(params=["frames", "lines", "database"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[SessionPersistence, SessionReader]:
    """What writes to a place, and what only reads there."""
    if request.param == "database":
        return SqliteSessions(tmp_path / "sessions.db"), ArchivedDatabase(tmp_path / "sessions.db")
    sessions = JsonlSessions(tmp_path, compressed=request.param == "frames")
    return sessions, ArchivedSessions(open_store(tmp_path))


def test_the_same_is_seen_as_by_who_may_write(places: tuple[SessionPersistence, SessionReader]) -> None:
    sessions, archive = places
    with sessions:
        for session in ("open", "whole", "../\ud83d"[:3]):
            sessions.create(header(id=session))
            sessions.append(session, OPEN if session == "open" else WHOLE)
        assert sorted(archive.list(), key=str) == sorted(sessions.list(), key=str)
        before = {snapshot.header.id: snapshot.revision for snapshot in archive.list_snapshots()}
        assert archive.inspect("open") == sessions.inspect("open")
        assert len(archive.inspect("open").events) == 8
        assert archive.read_from("open", 6).events == OPEN[6:]
        assert archive.read_from("open", 7).events == []
        assert archive.list_unreadable() == []
        with pytest.raises(WrongUse):
            archive.read_from("open", -1)
        with pytest.raises(LogRejected, match="no session") as missing:
            archive.inspect("nobody")
        assert missing.value.rule == "missing"
        sessions.append("whole", [{**mark("turn/start", turn=2), "seq": 6, "time": 1}])
        after = {snapshot.header.id: snapshot.revision for snapshot in archive.list_snapshots()}
        assert {session for session in before if before[session] != after[session]} == {"whole"}
        assert len(archive.read_from("whole", 0).events) == 7
        sessions.create(header(id="later"))
        sessions.append("later", WHOLE)
        assert archive.inspect("later").events == tuple(WHOLE)


def test_who_cancels_gets_his_reason(places: tuple[SessionPersistence, SessionReader]) -> None:
    sessions, archive = places
    with sessions:
        sessions.create(header())
        sessions.append("s", WHOLE)
        signal = Cancellation()
        signal.cancel(reason := KeyError("enough"))
        for observe in (archive.list, archive.list_snapshots):
            with pytest.raises(KeyError) as raised:
                observe(signal)
            assert raised.value is reason
        with pytest.raises(KeyError):
            archive.inspect("s", signal)
        with pytest.raises(KeyError):
            archive.read_from("s", 0, signal)


def test_logs_out_of_place_are_refused(tmp_path: Path) -> None:
    with JsonlSessions(tmp_path) as sessions:
        for session in ("a", "b"):
            sessions.create(header(id=session))
            sessions.append(session, WHOLE)
    project = tmp_path / "--srv-proj--"
    archive = ArchivedSessions(open_store(tmp_path))
    (project / "a").rename(project / "c")
    with pytest.raises(LogRejected, match="place"):
        archive.list()
    with pytest.raises(LogRejected, match="says that it is 'a'"):
        archive.inspect("c")
    assert archive.inspect("b").events == tuple(WHOLE)
    (project / "c/session.jsonl.zstd").write_bytes(b"")
    assert archive.list_unreadable() == ["--srv-proj--/c/session.jsonl.zstd"]
    assert [each.id for each in archive.list()] == ["b"]
    (project / "c/session.jsonl.zstd").rename(project / "c/session.v5.jsonl.zstd")
    with pytest.raises(LogUnsupported, match="newer"):
        archive.inspect("c")
    (project / "flat.jsonl").write_bytes(b"")
    with pytest.raises(LogRejected, match="layout"):
        archive.list()


def test_a_database_that_is_not_there_or_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"no database" * 100)
    with pytest.raises((LogRejected, StoreUnavailable)):
        ArchivedDatabase(tmp_path / "x.db").list()


def test_a_header_of_many_steps_is_found(tmp_path: Path) -> None:
    folder = "/" + "/".join(f"{number:05d}" for number in range(40_000))
    for compressed in (True, False):
        root = tmp_path / str(compressed)
        with JsonlSessions(root, compressed=compressed) as sessions:
            sessions.create(meta := structs.replace(header(), cwd=folder))
            sessions.append("s", WHOLE)
            assert sessions.list() == ArchivedSessions(open_store(root)).list() == [meta]
