"""What every backend of session logs promises (DSH specification, section 12): the same for each of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from schemas.dsh import OUTCOME_UNKNOWN_TEXT, Event
from schemas.errors import LogEventRejected, LogRejected, LogUnsupported, SessionWriteRefused, WrongUse
from storage.session_logs import Cancellation, SessionPersistence
from storage.session_logs.coordinator import CoordinatedSessions
from tests.dsh_logs import answer, header, mark, numbered, result, text_chunks, turn, user
from tests.session_logs import KEPT, Kept

ONE_TURN = numbered(*turn(1, user("hi"), answer("hello")))
META = header()


@pytest.fixture(params=KEPT, ids=str)
def kept(request: pytest.FixtureRequest) -> Kept:
    found: Kept = request.param
    return found


@pytest.fixture
def sessions(kept: Kept, tmp_path: Path) -> Iterator[SessionPersistence]:
    with kept.open(tmp_path) as opened:
        yield opened


def after(*events: Event, seq: int) -> list[Event]:
    """The events, numbered from ``seq`` on."""
    return [{**event, "seq": seq + place} for place, event in enumerate(numbered(*events))]


def stored(sessions: SessionPersistence, *events: Event) -> None:
    sessions.create(META)
    sessions.append("s", list(events))


def revision(sessions: SessionPersistence) -> str:
    [snapshot] = sessions.list_snapshots()
    return snapshot.revision


def test_what_is_stored_is_loaded_the_same(sessions: SessionPersistence) -> None:
    stored(sessions, *ONE_TURN)
    loaded = sessions.load("s")
    assert (loaded.meta, list(loaded.events)) == (META, ONE_TURN)


@pytest.mark.parametrize("moment", [1.5, -1, 2**53, True])
def test_a_moment_that_is_none_is_refused_and_does_not_take_the_id(sessions: SessionPersistence, moment: Any) -> None:
    with pytest.raises(LogRejected, match="createdAt"):
        sessions.create(structs.replace(META, created_at=moment))
    stored(sessions, *ONE_TURN)


def test_a_turn_that_was_left_open_is_closed_in_memory_and_then_in_the_log(
    kept: Kept, sessions: SessionPersistence, tmp_path: Path
) -> None:
    stored(sessions, *ONE_TURN)
    sessions.append("s", after(mark("turn/start", turn=2), mark("step/start", turn=2, step=1), seq=6))
    before = revision(sessions)
    with kept.open(tmp_path) as again:
        seen = again.inspect("s").events
        assert [event["type"] for event in seen[8:]] == ["step/end", "turn/end"]
        assert seen[9]["data"] == {"turn": 2, "reason": {"kind": "interrupted"}}
        assert seen[9]["time"] == seen[7]["time"]
        assert revision(again) == before
        loaded = again.load("s").events
        assert loaded == seen
        assert [event["seq"] for event in loaded] == list(range(10))
        assert revision(again) != before
        again.append("s", after(*turn(3), seq=10))
    with kept.open(tmp_path) as again:
        assert len(again.load("s").events) == 14
        assert again.load("s").events[:10] == loaded


def test_a_call_that_was_never_begun_gets_a_result_that_says_so(sessions: SessionPersistence) -> None:
    begun = numbered(mark("turn/start", turn=1), mark("step/start", turn=1, step=1), answer("do", "c1"))
    stored(sessions, *begun)
    closing = sessions.load("s").events[3:]
    assert [event["type"] for event in closing] == ["tool/result", "step/end", "turn/end"]
    assert closing[0]["data"]["error"] == {"name": "ToolNotStartedError", "code": "TOOL_NOT_STARTED"}
    assert closing[0]["data"]["message"]["source"] == {"kind": "tool", "callId": "c1"}
    assert "sourceEventSeqs" not in closing[0]


def test_a_call_whose_outcome_is_unknown_is_not_to_be_repeated_blindly(sessions: SessionPersistence) -> None:
    call = mark("tool/call", turn=1, step=1, callId="c1", name="bash", arguments="{}")
    stored(
        sessions, *numbered(mark("turn/start", turn=1), mark("step/start", turn=1, step=1), answer("do", "c1"), call)
    )
    closing = sessions.load("s").events[4:]
    assert closing[0]["data"]["error"] == {"name": "ToolOutcomeUnknownError", "code": "TOOL_OUTCOME_UNKNOWN"}
    assert closing[0]["data"]["message"]["content"][0]["content"][0]["text"] == OUTCOME_UNKNOWN_TEXT
    assert closing[0]["sourceEventSeqs"] == [3]
    with sessions.prepare("s") as prepared, prepared.publish(now=1) as live:
        assert live.record("turn/start", {"turn": 2}, now=2)["seq"] == 8


def test_a_session_without_events_is_listed_nowhere(sessions: SessionPersistence, tmp_path: Path) -> None:
    sessions.create(META)
    assert sessions.list() == []
    assert sessions.list_snapshots() == []
    with pytest.raises(LogRejected, match="not found"):
        sessions.load("s")
    assert not (tmp_path / "root").exists()


def test_who_cancels_gets_exactly_his_reason(sessions: SessionPersistence) -> None:
    signal = Cancellation()
    assert sessions.list_snapshots(signal) == []
    stored(sessions, *ONE_TURN)
    reason = RuntimeError("enough")
    signal.cancel(reason)
    signal.cancel(RuntimeError("too late"))
    for observe in (
        lambda: sessions.list(signal),
        lambda: sessions.list_snapshots(signal),
        lambda: sessions.inspect("s", signal),
        lambda: sessions.read_from("s", 0, signal),
        lambda: sessions.prepare("s", signal),
    ):
        with pytest.raises(RuntimeError) as raised:
            observe()
        assert raised.value is reason
    sessions.append("s", after(*turn(2), seq=6))


def test_a_suffix_is_read_as_it_is_stored(sessions: SessionPersistence) -> None:
    stored(sessions, *ONE_TURN, *after(mark("turn/start", turn=2), seq=6))
    everything = [*ONE_TURN, *after(mark("turn/start", turn=2), seq=6)]
    for first, expected in ((0, everything), (3, everything[3:]), (7, []), (107, [])):
        assert sessions.read_from("s", first).events == expected
    no_numbers: list[Any] = [-1, 1.5, True, 2**53]
    for number in no_numbers:
        with pytest.raises(WrongUse, match="non-negative safe integer"):
            sessions.read_from("s", number)
    with pytest.raises(LogRejected, match="not found") as missing:
        sessions.read_from("absent", 0)
    assert missing.value.rule == "missing"


def test_a_revision_is_equal_until_the_log_changes(sessions: SessionPersistence) -> None:
    stored(sessions, *ONE_TURN)
    first = revision(sessions)
    sessions.inspect("s")
    sessions.load("s")
    assert revision(sessions) == first
    sessions.append("s", after(*turn(2), seq=6))
    assert revision(sessions) != first


@pytest.mark.parametrize("seqs", [[5], [7], [6, 8], [6, 6], [6, 5]])
def test_a_batch_goes_on_where_the_log_ends(sessions: SessionPersistence, seqs: list[int]) -> None:
    stored(sessions, *ONE_TURN)
    batch = [{**mark("turn/start", turn=2), "seq": seq, "time": 1} for seq in seqs]
    with pytest.raises(SessionWriteRefused) as refused:
        sessions.append("s", batch)
    assert refused.value.rule == "seq"
    assert sessions.read_from("s", 0).events == ONE_TURN


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    "value",
    [
        math.inf,
        math.nan,
        -0.0,
        2**53 + 1,
        (1, 2),
        {1, 2},
        {1: 2},
        b"bytes",
        1j,
        len,
        object(),
        CYCLE,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_json_cannot_hold_without_loss_is_refused(sessions: SessionPersistence, value: Any) -> None:
    stored(sessions, *ONE_TURN)
    with pytest.raises(SessionWriteRefused, match="losslessly JSON-serializable") as refused:
        sessions.append("s", after(mark("todo/write", todos=value), seq=6))
    assert refused.value.rule == "not_json"
    assert sessions.read_from("s", 0).events == ONE_TURN


def test_a_batch_is_stored_as_it_was_when_it_was_given(sessions: SessionPersistence) -> None:
    batch = numbered(*turn(1, user("hi")))
    stored(sessions, *batch)
    batch[2]["data"]["content"][0]["text"] = "changed"
    assert sessions.load("s").events[2]["data"]["content"][0]["text"] == "hi"


def test_an_empty_batch_does_nothing(sessions: SessionPersistence) -> None:
    sessions.create(META)
    sessions.append("s", [])
    assert sessions.list() == []


def test_a_session_that_is_not_there_is_refused(sessions: SessionPersistence) -> None:
    for attempt in (
        lambda: sessions.append("s", ONE_TURN),
        lambda: sessions.load("s"),
        lambda: sessions.inspect("s"),
        lambda: sessions.prepare("s"),
    ):
        with pytest.raises(LogRejected, match="not found"):
            attempt()


def test_an_id_is_taken_once(kept: Kept, sessions: SessionPersistence, tmp_path: Path) -> None:
    sessions.create(META)
    with pytest.raises(SessionWriteRefused, match="exists"):
        sessions.create(META)
    sessions.append("s", ONE_TURN)
    with kept.open(tmp_path) as other, pytest.raises(SessionWriteRefused, match="exists"):
        other.create(structs.replace(META, cwd="/elsewhere"))


def test_another_instance_goes_on_where_the_log_ends(kept: Kept, sessions: SessionPersistence, tmp_path: Path) -> None:
    stored(sessions, *ONE_TURN)
    with kept.open(tmp_path) as other:
        other.append("s", after(*turn(2), seq=6))
        sessions.append("s", after(mark("plan/mode", active=True), seq=10))
        other.append("s", after(mark("plan/mode", active=False), seq=11))
    with pytest.raises(SessionWriteRefused, match="12 was expected"):
        sessions.append("s", after(*turn(2), seq=6))
    sessions.append("s", after(*turn(3), seq=12))
    assert len(sessions.load("s").events) == 16


@pytest.mark.parametrize("version", [1, 4, 5, -1, 0.5])
def test_a_session_is_begun_in_the_one_version_that_is_written(sessions: SessionPersistence, version: Any) -> None:
    with pytest.raises((LogUnsupported, LogRejected)):
        sessions.create(structs.replace(META, version=version, is_seeded=False if version else None))


def test_lineage_and_depth_are_kept(kept: Kept, sessions: SessionPersistence, tmp_path: Path) -> None:
    meta = header(parent_session="p", seed_length=6, origin="subagent", delegation_depth=3, agent_preset=None)
    sessions.create(meta)
    sessions.append("s", ONE_TURN)
    with kept.open(tmp_path) as again:
        assert again.list() == [meta]
        assert again.inspect("s").meta == meta


def test_an_event_that_could_not_be_read_again_is_refused(sessions: SessionPersistence) -> None:
    stored(sessions, *ONE_TURN)
    replaced = {**user("new"), "surfaceOp": {"op": "replace", "start": 2, "end": 2}}
    for event, kind in (
        (mark("future/event"), LogUnsupported),
        (mark("mode/set"), LogEventRejected),
        (mark("request/header", header={}, reason="initial"), LogEventRejected),
        ({**user("x"), "extra": 1}, LogEventRejected),
        (replaced, LogEventRejected),
        ({"type": "user/message", "data": {"content": []}, "surfaceOp": "append"}, LogEventRejected),
    ):
        with pytest.raises(kind):
            sessions.append("s", after(event, seq=6))
    ignorable = {**mark("future/event"), "ignorable": True}
    sessions.append("s", after(ignorable, {**replaced, "sourceEventSeqs": [2]}, seq=6))
    assert sessions.read_from("s", 6).events[0]["ignorable"] is True


def test_pieces_of_an_answer_come_back_one_by_one(sessions: SessionPersistence) -> None:
    opened = numbered(mark("turn/start", turn=1), mark("step/start", turn=1, step=1))
    chunks = text_chunks("a", "b", "", "d\ud800", first_seq=2)
    stored(sessions, *opened, *chunks)
    sessions.append("s", text_chunks("e", "f", first_seq=6))
    assert sessions.read_from("s", 0).events == [*opened, *chunks, *text_chunks("e", "f", first_seq=6)]
    assert sessions.read_from("s", 4).events == [*chunks[2:], *text_chunks("e", "f", first_seq=6)]


def test_results_and_calls_are_paired_over_batches(sessions: SessionPersistence) -> None:
    call = mark("tool/call", turn=1, step=1, callId="c1", name="bash", arguments="{}")
    stored(
        sessions, *numbered(mark("turn/start", turn=1), mark("step/start", turn=1, step=1), answer("do", "c1"), call)
    )
    sessions.append("s", after(result("c1", "done"), seq=4))
    sessions.append("s", after(mark("step/end", turn=1, step=1), seq=5))
    assert [event["type"] for event in sessions.load("s").events[4:]] == ["tool/result", "step/end", "turn/end"]


HOSTILE = ["../../etc/x", ".", "..", "a/b", "\0", "\ud800", "~", "session.jsonl", "x" * 200, "s\n", "\U0001f9ea"]


@pytest.mark.parametrize("session", HOSTILE, ids=ascii)
def test_any_text_is_an_id(kept: Kept, sessions: SessionPersistence, tmp_path: Path, session: str) -> None:
    meta = header(id=session, cwd="/../x" if session != "." else None)
    if kept.name == "database" and session == "\ud800":
        with pytest.raises(SessionWriteRefused, match="surrogate"):
            sessions.create(meta)
        return
    sessions.create(meta)
    sessions.append(session, ONE_TURN)
    with kept.open(tmp_path) as again:
        assert again.list() == [meta]
        assert list(again.load(session).events) == ONE_TURN
    assert {path.name.removesuffix("-wal").removesuffix("-shm") for path in tmp_path.iterdir()} in (
        {"root"},
        {"sessions.db"},
    )


def test_the_empty_text_is_no_id(sessions: SessionPersistence) -> None:
    with pytest.raises(LogRejected):
        sessions.create(header(id=""))
    with pytest.raises(LogRejected):
        sessions.load("")


def stored_unjudged(sessions: SessionPersistence, *events: Event) -> None:
    """Store what another program may have written, past the rules that ours keeps."""
    assert isinstance(sessions, CoordinatedSessions)
    sessions._backend.publish(META, list(events), False)


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (mark("future/event"), LogUnsupported),
        (mark("mode/set"), LogEventRejected),
        (mark("request/header-delta"), LogEventRejected),
        ({**user("x"), "surfaceOp": "prepend"}, LogEventRejected),
        ({**user("x"), "data": {**user("x")["data"], "id": ""}}, LogEventRejected),
        (
            {**answer("x"), "data": {"message": {**answer("x")["data"]["message"], "source": {"kind": "user"}}}},
            LogEventRejected,
        ),
        ({**result("c", "x"), "data": {"message": {}}}, LogEventRejected),
    ],
    ids=["unknown", "mode", "delta", "place", "id", "source", "result"],
)
def test_what_another_program_wrote_against_the_rules_is_refused_wherever_it_is_read(
    sessions: SessionPersistence, event: Event, kind: type[LogRejected]
) -> None:
    stored_unjudged(sessions, *numbered(mark("turn/start", turn=1), event))
    before = sessions.list_snapshots()
    for attempt in (
        lambda: sessions.inspect("s"),
        lambda: sessions.load("s"),
        lambda: sessions.prepare("s"),
        lambda: sessions.read_from("s", 0),
        lambda: sessions.append("s", after(mark("plan/mode", active=True), seq=2)),
    ):
        with pytest.raises(LogRejected) as refused:
            attempt()
        assert type(refused.value) is kind
    assert sessions.list_snapshots() == before


def test_what_earlier_programs_wrote_is_brought_up_to_date_and_gone_on_with(sessions: SessionPersistence) -> None:
    old_start = {"turn": 1, "trigger": {"kind": "user"}}
    old_prompt = {"content": [{"type": "text", "text": "hi"}], "source": {"kind": "user"}}
    steering = {"turn": 1, "content": [{"type": "text", "text": "no"}], "source": {"kind": "user"}}
    source = {"provider": "p", "model": "m"}
    old_answer = {"turn": 1, "content": [], "provenance": source}
    stored_unjudged(
        sessions,
        *numbered(
            {"type": "turn/start", "data": old_start},
            {"type": "user/message", "data": old_prompt, "surfaceOp": "append"},
            {"type": "steering/message", "data": steering, "surfaceOp": "append"},
            {
                "type": "assistant/message",
                "data": old_answer,
                "surfaceOp": "append",
            },
            {"type": "turn/end", "data": {"turn": 1, "reason": {"kind": "disposed"}}},
        ),
    )
    events = sessions.load("s").events
    assert sessions.read_from("s", 1).events == list(events[1:])
    assert events[0]["data"] == {"turn": 1}
    assert [event["type"] for event in events[1:3]] == ["user/message", "user/message"]
    assert [event["data"]["id"] for event in events[1:3]] == ["legacy-message:s:1", "legacy-message:s:2"]
    assert events[3]["data"]["message"]["source"] == {**source, "kind": "model"}
    assert events[4]["data"]["reason"] == {"kind": "aborted", "reason": {"kind": "disposed"}}
    cited = {**user("all"), "surfaceOp": {"op": "replace", "start": 1, "end": 2}, "sourceEventSeqs": [1, 2]}
    sessions.append("s", after(cited, seq=5))
    assert len(sessions.load("s").events) == 6
