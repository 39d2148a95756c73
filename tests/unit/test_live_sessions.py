"""Sessions that are live: the checkpoint, batches in the background, seeds, reservations, and who may write."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.dsh import MAX_LOG_BYTES, LogHeader
from schemas.errors import (
    AccessRefused,
    LogEventRejected,
    LogRejected,
    SessionBusy,
    SessionWriteRefused,
    StoreUnavailable,
)
from storage.session_logs import JsonlSessions, SessionPersistence
from storage.session_logs.coordinator import CoordinatedSessions
from storage.session_logs.jsonl import _Files
from storage.session_logs.log_files import FileHold
from tests.dsh_logs import answer, header, mark, numbered, text_chunks, turn, user
from tests.session_logs import KEPT, Kept

META = header()
ONE_TURN = numbered(*turn(1, user("hi"), answer("hello")))
NOW = 1_796_000_000_000


@pytest.fixture(params=KEPT, ids=str)
def kept(request: pytest.FixtureRequest) -> Kept:
    found: Kept = request.param
    return found


@pytest.fixture
def sessions(kept: Kept, tmp_path: Path) -> Iterator[SessionPersistence]:
    with kept.open(tmp_path) as opened:
        yield opened


def waited_for(sessions: SessionPersistence, events: int, seconds: float = 60) -> None:
    """Wait until so many events are stored."""
    started = time.monotonic()
    while time.monotonic() - started < seconds:
        try:
            if len(sessions.read_from("s", 0).events) >= events:
                return
        except LogRejected:
            pass
        time.sleep(0.005)
    raise AssertionError(f"{events} events were not stored in {seconds} s")


def test_what_was_recorded_is_stored_when_flush_returns(kept: Kept, tmp_path: Path) -> None:
    with kept.open(tmp_path) as sessions, kept.open(tmp_path) as other, sessions.begin(META, now=NOW) as live:
        for event in ONE_TURN:
            placed = {"surfaceOp": event["surfaceOp"]} if "surfaceOp" in event else {}
            assert live.record(event["type"], event["data"], now=event["time"], **placed) == event
        live.flush()
        assert other.read_from("s", 0).events == ONE_TURN


def test_a_batch_is_stored_without_being_asked_for(sessions: SessionPersistence) -> None:
    with sessions.begin(META, now=NOW) as live:
        live.record("turn/start", {"turn": 1}, now=NOW)
        live.record("step/start", {"turn": 1, "step": 1}, now=NOW)
        waited_for(sessions, 2)


def test_events_of_one_window_are_one_batch(tmp_path: Path) -> None:
    with JsonlSessions(tmp_path, batch_seconds=60) as sessions, sessions.begin(META, now=NOW) as live:
        for chunk in text_chunks(*"abcdef"):
            live.record("assistant/chunk", chunk["data"], now=chunk["time"])
        live.flush()
        [path] = tmp_path.rglob("*.zstd")
        assert path.read_bytes().count(b"\x28\xb5\x2f\xfd") == 2


def test_a_live_session_is_seen_as_it_is_and_never_repaired(sessions: SessionPersistence) -> None:
    with sessions.begin(META, now=NOW) as live:
        live.record("turn/start", {"turn": 1}, now=NOW)
        assert [event["type"] for event in sessions.inspect("s").events] == ["turn/start"]
        with pytest.raises(SessionWriteRefused, match="turn open"):
            sessions.load("s")
        live.record("turn/end", {"turn": 1, "reason": {"kind": "completed"}}, now=NOW)
        assert sessions.load("s").events == live.inspection().events
        assert len(sessions.read_from("s", 0).events) == 2


def test_a_live_session_without_events_is_not_found(sessions: SessionPersistence) -> None:
    with sessions.begin(META, now=NOW), pytest.raises(LogRejected, match="not found"):
        sessions.load("s")
    assert sessions.list() == []
    sessions.create(META)  # the id is free again


def test_only_the_owner_writes(kept: Kept, sessions: SessionPersistence, tmp_path: Path) -> None:
    with sessions.begin(META, ONE_TURN, now=NOW):
        with pytest.raises(SessionWriteRefused, match="live"):
            sessions.append("s", ONE_TURN)
        with pytest.raises(SessionBusy):
            sessions.prepare("s")
        with pytest.raises(SessionWriteRefused, match="exists"):
            sessions.begin(META, now=NOW)
    with sessions.prepare("s") as prepared:
        assert [event["seq"] for event in prepared.events] == list(range(7))
        for attempt in (lambda: sessions.load("s"), lambda: sessions.prepare("s")):
            with pytest.raises(SessionBusy):
                attempt()
        with pytest.raises(SessionWriteRefused, match="reserved"):
            sessions.append("s", ONE_TURN)
        assert sessions.inspect("s").events == prepared.events
    prepared.dispose()
    with pytest.raises(SessionWriteRefused, match="used up"):
        prepared.publish(now=NOW)
    assert len(sessions.load("s").events) == 7


@pytest.mark.parametrize("kept", KEPT[:2], ids=str, indirect=True)
def test_another_owner_of_the_files_has_to_wait(kept: Kept, sessions: SessionPersistence, tmp_path: Path) -> None:
    with kept.open(tmp_path) as other:
        with sessions.begin(META, now=NOW) as live:
            live.record("turn/start", {"turn": 1}, now=NOW)
            live.flush()
            for attempt in (lambda: other.load("s"), lambda: other.append("s", ONE_TURN), lambda: other.prepare("s")):
                with pytest.raises(SessionBusy):
                    attempt()
            assert [event["type"] for event in other.inspect("s").events] == ["turn/start", "turn/end"]
            assert len(other.read_from("s", 0).events) == 1
        assert [event["type"] for event in other.load("s").events] == ["turn/start", "turn/end"]
        with other.prepare("s"), pytest.raises(SessionBusy):
            sessions.prepare("s")


class _Overtaken(_Files):
    """Files whose log grows by another's hand between being read and being held, `times` over."""

    def __init__(self, root: Path, times: int) -> None:
        super().__init__(root, None, packed=True, limit=MAX_LOG_BYTES)
        self._times = times

    def hold(self, header: LogHeader) -> FileHold:
        if self._times:
            self._times -= 1
            with JsonlSessions(self._root) as other:
                count = len(other.read_from(header.id, 0).events)
                other.append(
                    header.id,
                    [
                        {
                            **mark("command/run", commandId=f"c{count}", name="n", source={"kind": "user"}),
                            "seq": count,
                            "time": NOW,
                        }
                    ],
                )
        return super().hold(header)


def test_a_log_that_grows_while_it_is_prepared_is_not_reserved_as_it_was(tmp_path: Path) -> None:
    with JsonlSessions(tmp_path) as sessions:
        sessions.create(META)
        sessions.append("s", ONE_TURN)
    with CoordinatedSessions(_Overtaken(tmp_path, times=1)) as overtaken:
        with pytest.raises(SessionBusy):
            overtaken.prepare("s")
        with overtaken.prepare("s") as prepared:
            assert len(prepared.events) == len(ONE_TURN) + 1


def test_a_seed_is_stored_once_and_its_end_is_marked(kept: Kept, sessions: SessionPersistence, tmp_path: Path) -> None:
    meta = header(parent_session="p", seed_length=len(ONE_TURN))
    with sessions.begin(meta, ONE_TURN, now=NOW) as live:
        with kept.open(tmp_path) as other:
            assert len(other.read_from("s", 0).events) == 7
        live.record("turn/start", {"turn": 2}, now=NOW)
    with kept.open(tmp_path) as again:
        found = again.read_from("s", 0).events
        assert found[:6] == ONE_TURN
        assert [event["type"] for event in found[6:]] == ["session/end-seed", "turn/start"]
        with again.prepare("s") as prepared, prepared.publish(now=NOW + 9) as live:
            live.record("turn/start", {"turn": 3}, now=NOW + 9)
        kinds = [event["type"] for event in again.read_from("s", 6).events]
        assert kinds == ["session/end-seed", "turn/start", "turn/end", "session/end-seed", "turn/start"]


def test_what_breaks_a_rule_is_refused_and_has_not_happened(sessions: SessionPersistence) -> None:
    with sessions.begin(META, now=NOW) as live:
        live.record("turn/start", {"turn": 1}, now=NOW)
        with pytest.raises(LogEventRejected, match="surface"):
            live.record("user/message", user("x")["data"], now=NOW)
        with pytest.raises(SessionWriteRefused, match="not_json"):
            live.record("todo/write", {"todos": (1, 2)}, now=NOW)
        live.record("user/message", user("x")["data"], now=NOW, surfaceOp="append")
        assert live.next_seq == 2
    assert len(sessions.read_from("s", 0).events) == 2


def test_what_could_not_be_stored_is_kept_and_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = tmp_path / "root"
    with JsonlSessions(root, batch_seconds=0.02) as sessions:
        live = sessions.begin(META, now=NOW)
        root.write_text("a file where the folder has to be")
        with caplog.at_level(logging.WARNING):
            for number, (kind, data) in enumerate((("turn/start", {"turn": 1}), ("plan/mode", {"active": True})), 1):
                live.record(kind, data, now=NOW)
                started = time.monotonic()
                while len(caplog.records) < number and time.monotonic() - started < 60:
                    time.sleep(0.005)
                time.sleep(0.1)
                assert len(caplog.records) == number  # and then it waits for the next event, or a flush
        with pytest.raises((AccessRefused, StoreUnavailable)):
            live.flush()
        with pytest.raises((AccessRefused, StoreUnavailable)):
            live.close()
        root.unlink()
        live.close()
        assert [event["seq"] for event in sessions.read_from("s", 0).events] == [0, 1]
        with pytest.raises(SessionWriteRefused, match="closed"):
            live.record("turn/end", {"turn": 1, "reason": {"kind": "completed"}}, now=NOW)


def test_closing_the_place_stores_what_is_left(kept: Kept, tmp_path: Path) -> None:
    sessions = kept.open(tmp_path)
    live = sessions.begin(META, now=NOW)
    live.record("turn/start", {"turn": 1}, now=NOW)
    sessions.close()
    with kept.open(tmp_path) as again:
        assert len(again.read_from("s", 0).events) == 1


def test_many_threads_record_in_one_order(kept: Kept, sessions: SessionPersistence, tmp_path: Path) -> None:
    with sessions.begin(META, now=NOW) as live:

        def work(number: int) -> None:
            for place in range(50):
                live.record("todo/write", {"todos": [f"{number}-{place}"]}, now=NOW)
                if place % 10 == number:
                    live.flush()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with kept.open(tmp_path) as again:
        events = again.read_from("s", 0).events
    assert [event["seq"] for event in events] == list(range(200))
    for number in range(4):
        said = [event["data"]["todos"][0] for event in events if event["data"]["todos"][0].startswith(f"{number}-")]
        assert said == [f"{number}-{place}" for place in range(50)]


def test_a_kept_session_is_read_again_when_its_log_changed(kept: Kept, tmp_path: Path) -> None:
    with kept.open(tmp_path) as sessions, kept.open(tmp_path) as other:
        sessions.create(META)
        sessions.append("s", ONE_TURN)
        assert other.inspect("s").events is other.inspect("s").events
        sessions.append("s", [{**mark("turn/start", turn=2), "seq": 6, "time": NOW}])
        assert len(other.inspect("s").events) == 8
