"""The rules that headers and events of a session log keep, generation by generation."""

from __future__ import annotations

from typing import Any

import pytest

from schemas._dsh_json import write_value
from schemas.dsh import Event, StoredLog, read_log, write_batch, write_event, write_first_batch
from schemas.errors import LogEventRejected, LogRejected, LogUnsupported
from tests.dsh_logs import answer, header, mark, numbered, result, turn, user

PLAIN = ["session.jsonl", "session.v1.jsonl", "session.v2.jsonl", "session.v3.jsonl", "session.v4.jsonl"]


def read(*events: Event, generation: int = 0) -> StoredLog:
    """A plain log of these events as they stand."""
    data = write_first_batch(header(generation), numbered(*events), compressed=False, packed=False)
    return read_log(data, name=PLAIN[generation])


def refusal(*events: Event, generation: int = 0) -> str:
    """The rule that the last of these events breaks."""
    if len(events) > 1:
        read(*events[:-1], generation=generation)
    with pytest.raises(LogRejected) as refused:
        read(*events, generation=generation)
    assert refused.value.row == len(events) + 1
    assert isinstance(refused.value, (LogEventRejected, LogUnsupported))
    return refused.value.rule


def read_header_of(generation: int, **changes: Any) -> StoredLog:
    value = {key: each for key, each in {**header(generation).as_json(), **changes}.items() if each is not None}
    return read_log(write_value(value) + b"\n", name=PLAIN[generation])


@pytest.mark.parametrize("generation", range(5))
def test_a_header_says_what_it_holds(generation: int) -> None:
    log = read_header_of(generation, parentSession="p", origin="subagent", agentPreset="x", delegationDepth=2)
    assert log.header == header(generation, parent_session="p", origin="subagent", agent_preset="x", delegation_depth=2)
    assert log.events == []


@pytest.mark.parametrize(
    "change",
    [
        {"id": 5},
        {"id": ""},
        {"createdAt": -1},
        {"createdAt": 1.5},
        {"createdAt": True},
        {"delegationDepth": None},
        {"cwd": "srv/proj"},
        {"cwd": 3},
        {"parentSession": 1},
        {"agentPreset": []},
        {"origin": "fork"},
        {"sandboxMode": "x"},
        {"type": "sessions"},
        {"version": "0"},
    ],
    ids=str,
)
def test_a_header_that_breaks_a_rule_is_refused(change: dict[str, Any]) -> None:
    for generation in (0, 4):
        with pytest.raises(LogRejected, match="header"):
            read_header_of(generation, **change)


def test_where_inherited_events_end_is_said_by_number_first_and_by_a_mark_later() -> None:
    assert read_header_of(0, seedLength=3).header.seed_length == 3
    assert read_header_of(4, isSeeded=True).header.is_seeded is True
    for generation, change in ((0, {"seedLength": -1}), (4, {"isSeeded": None}), (4, {"seedLength": 3}), (1, {"x": 1})):
        with pytest.raises(LogRejected, match="header"):
            read_header_of(generation, **change)
    assert read_header_of(0, anything=1).header == header()


def test_the_version_is_looked_at_before_anything_else() -> None:
    for version in (1, 4, -1, 0.5):
        with pytest.raises(LogUnsupported, match="version"):
            read_header_of(0, version=version, id=None)


@pytest.mark.parametrize("cwd", ["/", "C:\\work", "d:/work", "\\\\host\\share"])
def test_a_working_directory_may_be_of_another_system(cwd: str) -> None:
    assert read_header_of(0, cwd=cwd).header.cwd == cwd


@pytest.mark.parametrize(
    "change",
    [
        {"time": 1.5},
        {"time": 2**53},
        {"type": "", "ignorable": True},
        {"ignorable": False},
        {"more": 1},
        {"time": -(2.0**60)},
    ],
    ids=str,
)
def test_an_envelope_has_its_keys_and_no_others(change: dict[str, Any]) -> None:
    assert refusal({**mark("todo/write"), **change}) == "envelope"


def test_an_event_without_data_is_refused() -> None:
    with pytest.raises(LogEventRejected, match="envelope"):
        read_log(
            write_first_batch(header(), [], compressed=False) + b'{"type":"todo/write","seq":0,"time":1}\n',
            name=PLAIN[0],
        )


def test_numbers_that_json_cannot_hold_again_are_refused() -> None:
    line = b'{"type":"todo/write","seq":0,"time":1,"data":{"n":-0}}\n'
    with pytest.raises(LogEventRejected, match="number"):
        read_log(write_first_batch(header(), [], compressed=False) + line, name=PLAIN[0])


def test_an_unknown_type_is_kept_when_it_is_marked_as_one_to_ignore() -> None:
    assert read({**mark("future/hint"), "ignorable": True}).events[0]["type"] == "future/hint"
    for unknown in ("future/need", "", 7, None):
        assert refusal({"type": unknown, "data": {}}) == "unknown_type"
    assert refusal({**mark("future/need"), "ignorable": False}) == "unknown_type"


def test_an_old_shape_that_is_none_is_told_before_an_unknown_type_and_that_before_a_broken_rule() -> None:
    broken, unknown, old = mark("todo/write", x=1) | {"more": 1}, mark("future/need"), mark("turn/end", turn=0)
    for events, rule in (
        ([broken, unknown, old], "legacy"),
        ([broken, unknown], "unknown_type"),
        ([broken], "envelope"),
    ):
        with pytest.raises(LogRejected) as refused:
            read(*events)
        assert (refused.value.rule, refused.value.row) == (rule, len(events) + 1)


@pytest.mark.parametrize(
    ("kind", "generations"),
    [("assistant/chunk", {0, 1}), ("tool/code-dispatch", {0, 1, 2}), ("assistant/attempt", {1, 2, 3, 4})],
)
def test_types_come_and_go_with_the_generations(kind: str, generations: set[int]) -> None:
    readable = set()
    for generation in range(5):
        try:
            read(mark(kind), generation=generation)
            readable.add(generation)
        except LogRejected:
            pass
    assert readable == generations


@pytest.mark.parametrize(
    "event",
    [
        {**mark("todo/write"), "surfaceOp": "append"},
        {**mark("todo/write"), "sourceEventSeqs": []},
        {key: value for key, value in user("a").items() if key != "surfaceOp"},
        {**user("a"), "surfaceOp": "prepend"},
        {**user("a"), "surfaceOp": {"op": "replace", "start": 0, "end": 0}},
    ],
    ids=str,
)
def test_messages_and_only_messages_say_where_on_the_surface_they_go(event: Event) -> None:
    assert refusal(event) == "surface"


@pytest.mark.parametrize("generation", [0, 4])
def test_a_span_of_the_surface_is_replaced_in_surface_order(generation: int) -> None:
    first, last = ("startSeq", "endSeq") if generation == 4 else ("start", "end")

    def replacing(start: int, end: int, cited: list[int]) -> Event:
        operation = {"op": "replace", first: start, last: end}
        return {**user("sum"), "sourceEventSeqs": cited, "surfaceOp": operation}

    three = [user("a"), user("b"), user("c")]
    # The surface is then 3, 2: the later number stands first.
    read(*three, replacing(0, 1, [0, 1]), replacing(3, 2, [2, 3]), generation=generation)
    assert refusal(*three, replacing(0, 1, [0, 1]), replacing(2, 3, [2, 3]), generation=generation) == "surface"
    assert refusal(*three, replacing(0, 1, [0]), generation=generation) == "surface"
    assert refusal(*three, replacing(0, 5, [0]), generation=generation) == "surface"


def test_a_result_replaces_only_its_own_content() -> None:
    begun = [answer("a", "c1"), result("c1", "long")]
    place = {"surfaceOp": {"op": "replace", "start": 1, "end": 1}, "sourceEventSeqs": [1]}
    read(*begun, {**result("c1", "short"), **place})
    assert refusal(*begun, {**result("c1", "short", failed=True), **place}) == "surface"
    more = result("c1", "short")
    more["data"]["meta"] = {"lines": 1}
    assert refusal(*begun, {**more, **place}) == "surface"
    assert refusal(*begun, {**result("c2", "short"), **place}) == "surface"


@pytest.mark.parametrize("cited", [5, [1, 1], [0, 2], [-1], ["0"], [], [[0, 1]]], ids=str)
def test_what_an_event_cites_comes_before_it(cited: Any) -> None:
    assert refusal(user("a"), user("b"), {**user("c"), "sourceEventSeqs": cited}) == "sources"


def test_later_generations_may_cite_ranges() -> None:
    messages = [user(str(number)) for number in range(6)]
    cited = {**user("c"), "sourceEventSeqs": [0, [2, 4], 5]}
    assert read(*messages, cited, generation=4).events[-1]["sourceEventSeqs"] == [0, 2, 3, 4, 5]
    for wrong in ([[2, 6]], [[3, 2]], [1, [0, 1]], [[1]], [[0.5, 1]]):
        assert refusal(*messages, {**cited, "sourceEventSeqs": wrong}, generation=4) == "sources"
    assert refusal({**answer("a"), "sourceEventSeqs": []}, generation=4) == "sources"


@pytest.mark.parametrize(
    ("event", "part", "change"),
    [
        (user("a"), None, {"id": ""}),
        (user("a"), None, {"role": "assistant"}),
        (user("a"), None, {"source": {}}),
        (user("a"), None, {"content": "text"}),
        (answer("a"), "message", {"source": {"kind": "model", "provider": "p"}}),
        (answer("a"), "message", {"source": {"kind": "user", "provider": "p", "model": "m"}}),
        (result("c", "x"), "message", {"source": {"kind": "tool", "callId": "d"}}),
        (result("c", "x"), "message", {"content": []}),
        (result("c", "x"), "message", {"role": "tool"}),
        (answer("a"), None, {"message": None}),
    ],
)
def test_a_message_says_who_it_is_and_where_it_comes_from(event: Event, part: str | None, change: Event) -> None:
    data = event["data"]
    changed = {**data, **change} if part is None else {**data, part: {**data[part], **change}}
    assert refusal({**event, "data": changed}) == "message"


def test_generation_4_names_producers_and_answers_calls_directly() -> None:
    read(answer("a", "c1"), result("c1", "x", generation=4), user("b", kind="anything"), generation=4)
    assert refusal(result("c1", "x"), generation=4) == "message"
    assert refusal(user("a", kind="plugin"), generation=4) == "message"
    other = result("c1", "x", generation=4)
    other["data"]["message"]["toolCallId"] = "c2"
    assert refusal(other, generation=4) == "message"


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"header": {"config": {"provider": "p", "model": ""}}},
        {"header": {"config": {"provider": "p", "model": "m", "reasoningEffort": ""}}},
        {"header": {"config": {"provider": "p", "model": "m"}, "adapterDefaults": {"maxTokens": True}}},
        {"header": {"config": {"provider": "p", "model": "m"}}, "reason": "fallback"},
    ],
    ids=str,
)
def test_a_request_header_names_provider_and_model(data: Event) -> None:
    assert refusal(mark("request/header", **data)) == "request_header"


@pytest.mark.parametrize(
    ("reason", "today"),
    [
        ({"kind": "aborted"}, {"kind": "aborted", "reason": {"kind": "legacy"}}),
        ({"kind": "disposed"}, {"kind": "aborted", "reason": {"kind": "disposed"}}),
        ({"kind": "error", "step": 1, "message": "m"}, {"kind": "error", "error": {"message": "m", "code": "UNKNOWN"}}),
        (
            {"kind": "error", "step": 1, "failure": {"message": "m", "code": "X", "status": 400}},
            {"kind": "error", "error": {"message": "m", "code": "X", "status": 400}},
        ),
        ({"kind": "blocked"}, {"kind": "blocked"}),
    ],
)
def test_an_old_turns_end_is_told_as_today(reason: Event, today: Event) -> None:
    assert read(mark("turn/end", turn=1, reason=reason)).events[0]["data"]["reason"] == today


@pytest.mark.parametrize(
    "event",
    [
        mark("turn/start", turn=1, trigger={"kind": "user"}, more=1),
        mark("turn/start", turn=1, trigger="user"),
        mark("turn/start", turn=0, trigger={"kind": "user"}),
        mark("turn/start", turn=1, trigger={"kind": ""}),
        mark("turn/end", turn=1, reason={"kind": "error", "why": "x"}),
        mark("turn/end", turn=1, reason={}),
        mark("turn/end", turn=1, reason={"kind": "completed"}, more=1),
        mark("turn/end", turn=1, reason={"kind": "completed", "more": 1}),
        mark("turn/end", turn=1, reason={"kind": "aborted", "more": 1}),
        mark("turn/end", turn=1, reason={"kind": "error", "step": -1, "message": "m"}),
        mark("turn/end", turn=1, reason={"kind": "error", "step": 1, "message": 5}),
        mark("turn/end", turn=1, reason={"kind": "error", "step": 1, "failure": {"code": "X"}}),
        mark("turn/end", turn=1, reason={"kind": "error", "step": 1, "failure": {"message": "m", "code": True}}),
        mark("turn/end", turn=1),
        mark("turn/end", turn=0, reason={"kind": "completed"}),
        {"type": "steering/message", "data": [], "surfaceOp": "append"},
        {**mark("steering/message", turn="1", content=[], source={"kind": "user"}), "surfaceOp": "append"},
        {**mark("steering/message", turn=1, text="x"), "surfaceOp": "append"},
        {**mark("assistant/message", turn=1, content=[], provenance="x"), "surfaceOp": "append"},
    ],
    ids=str,
)
def test_a_shape_between_old_and_new_is_refused(event: Event) -> None:
    assert refusal(event) == "legacy"


def test_an_old_result_that_replaces_another_takes_over_its_identity() -> None:
    old = {**mark("tool/result", turn=1, step=1, callId="c1", content=[], isError=False), "surfaceOp": "append"}
    place = {"surfaceOp": {"op": "replace", "start": 1, "end": 1}, "sourceEventSeqs": [1]}
    events = read(answer("a", "c1"), old, {**old, **place}).events
    assert [event["data"]["message"]["id"] for event in events[1:]] == ["legacy-message:s:1"] * 2


def test_an_event_is_written_with_its_keys_in_their_order() -> None:
    event = {"type": "tool/result", "seq": 0, "time": 1, "data": {}, "surfaceOp": "append", "sourceEventSeqs": [0]}
    text = '{"type":"tool/result","seq":0,"time":1,"data":{},"surfaceOp":"append","sourceEventSeqs":[0]}\n'
    assert write_event(event) == text.encode() == write_batch([event], compressed=False)


def test_a_whole_turn_of_every_generation_is_read() -> None:
    for generation in range(5):
        events = turn(1, user("a"), answer("b", "c1"), result("c1", "x", generation=generation))
        assert read(*events, generation=generation).events == numbered(*events)
