"""What the events of a log become: who speaks, what was asked of tools and came of it, what calls cost, how turns end,
and which call a sub-agent belongs to. Logs are made in place, also such as no program has written.
"""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from schemas.dsh import Event, LogHeader
from schemas.session_data import Record
from storage.zone import Zone
from tests.dsh_logs import answer, header, mark, numbered, result, text_chunks, turn, user
from tests.dsh_zone import assembled, calls, land, problems, put_log, records, told, zone_at

USAGE = {"inputTokens": 10, "outputTokens": 5, "cacheReadTokens": 2, "cacheWriteTokens": 3, "reasoningTokens": 2}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def zone(tmp_path: Path) -> Zone:
    return zone_at(tmp_path / "zone")


def landed(root: Path, zone: Zone, *events: Event, generation: int = 4, **more: Any) -> list[Record]:
    """The records of one log of these events, its header's left out."""
    put_log(root, header(generation, **more), numbered(*events))
    assert problems(land(root, zone)) == []
    return [record for _, record in records(zone, "s")][1:]


def step(number: int, *inner: Event, turn: int = 1) -> list[Event]:
    return [mark("step/start", turn=turn, step=number), *inner, mark("step/end", turn=turn, step=number)]


def ended(number: int = 1, kind: str = "completed", **more: Any) -> Event:
    return mark("turn/end", turn=number, reason={"kind": kind, **more})


def kinds(found: dict[str, dict[str, Any]], *names: str) -> list[str]:
    return [key for key, node in found["nodes"].items() if node["kind"] in names]


def test_tokens_are_counted_once_and_reasoning_is_part_of_the_output(root: Path, zone: Zone) -> None:
    stream = [{"type": "chunk", "time": 1, "chunk": {"type": "usage", "usage": USAGE}}]
    landed(root, zone, *turn(1, user("q"), answer("a", usage=USAGE, stream=stream)))
    say = told(record for _, record in records(zone, "s"))
    assert say.usage == [("s:t1.s1", (10, 5, 2, 3))]
    (facts,) = calls(zone, "s")
    assert json.loads(bytes(facts.usage)) == USAGE
    assert (facts.session, facts.cwd, facts.model, facts.call) == ("s", "/srv/proj", "m", "s:t1.s1")


def test_equal_steps_of_two_sessions_are_two_calls(root: Path, zone: Zone) -> None:
    for name in ("a", "b"):
        put_log(root, header(4, id=name), numbered(*turn(1, user("q"), answer("x", usage=USAGE))))
    land(root, zone)
    found = {call for name in ("a", "b") for call, _ in told(record for _, record in records(zone, name)).usage}
    assert found == {"a:t1.s1", "b:t1.s1"}


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("generation", [0, 1])
def test_streamed_pieces_double_neither_words_nor_tokens(root: Path, zone: Zone, packed: bool, generation: int) -> None:
    pieces = text_chunks("one ", "two ", "three") if packed else text_chunks("one two ", "three")
    usage = mark("assistant/chunk", turn=1, step=1, chunk={"type": "usage", "usage": USAGE})
    finish = mark("assistant/chunk", turn=1, step=1, chunk={"type": "finish", "reason": {"kind": "stop"}})
    inner = [*({**each, "seq": None} for each in pieces), usage, finish, answer("one two three", usage=USAGE)]
    events = turn(1, user("q"), *inner)
    for place, event in enumerate(events):
        event.pop("seq", None)
        event["time"] = 1_796_000_000_000 + place
    found = landed(root, zone, *events, generation=generation)
    say = told(found)
    assert [text for _, _, text in say.answers] == ["one two three"]
    assert say.usage == [("s:t1.s1", (10, 5, 2, 3))]
    assert len(found) == len(events) - 2 * packed


def chunk(**said: Any) -> Event:
    return mark("assistant/chunk", turn=1, step=1, chunk=said)


def test_an_attempt_of_an_old_generation_ends_with_its_words_and_what_it_cost(root: Path, zone: Zone) -> None:
    failed = chunk(type="finish", reason={"kind": "error", "failure": {"code": "SERVER", "message": "busy"}})
    config = {"provider": "p", "model": "asked"}
    found = landed(
        root,
        zone,
        *turn(
            1,
            user("q"),
            mark("request/header", header={"config": config}, reason="initial"),
            chunk(type="text-delta", index=0, text="half "),
            chunk(type="reasoning-delta", index=1, text="why"),
            chunk(type="text-delta", index=0, text="a word"),
            chunk(type="usage", usage=USAGE),
            failed,
            failed,
            chunk(type="text-delta", index=0, text="whole"),
            answer("whole"),
        ),
        generation=0,
    )
    first, second = (record for record in found if "error" in record.flags)
    assert [(part.k, bytes(part.text).decode()) for part in first.parts[:2]] == [  # type: ignore[arg-type]
        ("text", '"half a word"'),
        ("reasoning", '"why"'),
    ]
    assert (first.call, first.model, first.flags) == ("s:t1.s1.a1", "asked", ("finished", "error"))
    assert (second.call, second.usage, second.flags) == ("s:t1.s1.a2", None, ("error",))
    assert [text for _, _, text in told(found).answers] == ["whole"]
    assert [used for _, used in told(found).usage] == [(10, 5, 2, 3)]


def test_an_attempt_has_words_but_never_calls(root: Path, zone: Zone) -> None:
    stream = [
        {"type": "text-chunks", "time0": 1, "index": 0, "dt": [1], "texts": ["half ", "a word"]},
        {"type": "tool-call-chunks", "time0": 1, "index": 1, "dt": [], "id": "c", "name": "bash", "args": ["{"]},
        {
            "type": "chunk",
            "time": 1,
            "chunk": {"type": "block-end", "index": 2, "block": {"type": "text", "text": "x"}},
        },
        {
            "type": "chunk",
            "time": 1,
            "chunk": {"type": "finish", "reason": {"kind": "error", "failure": {"code": "E"}}},
        },
    ]
    landed(root, zone, *turn(1, user("q"), mark("assistant/attempt", turn=1, step=1, stream=stream), answer("a")))
    say = told(record for _, record in records(zone, "s"))
    assert (say.attempts, say.calls) == (["s:t1.s1.a1"], {})
    found = assembled(zone, "s")
    assert len(kinds(found, "error.api")) == 1
    assert kinds(found, "llm.call") == ["call/s:t1.s1", "call/s:t1.s1.a1"]
    assert len(kinds(found, "message.assistant")) == 3
    assert found["open"] == {}


@pytest.mark.parametrize("told_so_far", [{}, {"usage": {"inputTokens": 10, "outputTokens": 5}}])
def test_an_interrupted_answer_costs_what_is_not_known(root: Path, zone: Zone, told_so_far: dict[str, Any]) -> None:
    found = landed(root, zone, *turn(1, user("q"), answer("ha", interrupted=True, stream=[], **told_so_far)))
    say = told(found)
    assert (say.usage, [text for _, _, text in say.answers]) == ([], ["ha"])
    node = assembled(zone, "s")["nodes"]["call/s:t1.s1"]
    assert (node["attrs"]["usage"], node["attrs"]["stop_reason"]) == ("unavailable", "unavailable")


def test_the_stream_of_an_answer_that_was_cut_off_is_kept(root: Path, zone: Zone) -> None:
    def stream(kind: str) -> list[Any]:
        return [{"type": "chunk", "time": 1, "chunk": {"type": "finish", "reason": {"kind": kind}}}]

    found = landed(
        root,
        zone,
        *turn(1, user("q"), answer("a", stream=stream("max-tokens"))),
        *turn(2, user("r"), answer("b", turn=2, stream=stream("stop"))),
        *turn(3, user("s"), answer("c", turn=3, stream=stream("stop"), interrupted=True)),
    )
    cut, whole, interrupted = (record for record in found if record.call)
    assert (cut.dropped, [each.what for each in whole.dropped]) == ((), ["stream"])
    assert (interrupted.dropped, b'"stream"' in bytes(interrupted.parts[-1].data)) == ((), True)  # type: ignore[arg-type]
    assert b'"max-tokens"' in bytes(cut.parts[-1].data)  # type: ignore[arg-type]
    assert b'"finish":{"kind":"stop"}' in bytes(whole.parts[-1].data)  # type: ignore[arg-type]


def test_ids_of_calls_that_are_used_again_are_other_tools(root: Path, zone: Zone) -> None:
    found = landed(
        root,
        zone,
        *turn(1, user("q"), answer("a", "0"), result("0", "first", generation=4)),
        *turn(2, user("r"), answer("b", "0", turn=2), result("0", "second", generation=4, turn=2, failed=True)),
        *turn(3, user("t"), answer("c", "0", "0", turn=3)),
    )
    say = told(found)
    first, second, third, fourth = say.calls
    assert (first, second) == ("s:0", "s:0@t2.s1")
    assert say.calls[first] == ["bash", (False, "available", "first")]
    assert say.calls[second] == ["bash", (True, "available", "second")]
    assert len({first, second, third, fourth}) == 4
    opened = assembled(zone, "s")["open"]
    assert {entry["ref"] for entry in opened.values()} == {third, fourth}


def test_a_result_that_takes_another_s_place_is_the_same_result(root: Path, zone: Zone) -> None:
    events = turn(1, user("q"), answer("a", "c"), result("c", "long", generation=4))
    shortened = result("c", "…", generation=4)
    shortened |= {"surfaceOp": {"op": "replace", "startSeq": 4, "endSeq": 4}, "sourceEventSeqs": [4]}
    found = landed(root, zone, *events, mark("compaction/prune"), shortened)
    assert told(found).calls == {"s:c": ["bash", (False, "available", "long")]}
    assert assembled(zone, "s")["open"] == {}


def test_results_without_a_call_and_calls_without_a_result_stay_open(root: Path, zone: Zone) -> None:
    landed(root, zone, *turn(1, user("q"), answer("a", "c"), result("other", "x", generation=4)))
    opened = assembled(zone, "s")["open"]
    assert {(entry["kind"], entry["ref"]) for entry in opened.values()} == {
        ("tool_use", "s:other"),
        ("tool_result", "s:c"),
    }


def test_parallel_results_are_paired_by_their_ids(root: Path, zone: Zone) -> None:
    inner = [answer("a", "x", "y", "z"), *(result(each, f"of {each}", generation=4) for each in "zxy")]
    say = told(landed(root, zone, *turn(1, user("q"), *inner)))
    assert [(tool, said[1][2]) for tool, said in say.calls.items()] == [
        ("s:x", "of x"),
        ("s:y", "of y"),
        ("s:z", "of z"),
    ]


@pytest.mark.parametrize(
    ("kind", "more", "trigger", "flags"),
    [
        ("user", {}, "external", ("external_input",)),
        ("goal", {"goalId": "g"}, "notification", ("injected",)),
        ("tool-jobs", {"form": "notice"}, "notification", ("injected",)),
        ("agent-message", {"senderSessionId": "c"}, "notification", ("injected",)),
        ("plan-mode", {"form": "notice"}, "unknown", ("injected",)),
        ("from-the-future", {}, "unknown", ("injected",)),
        ("runtime-context", {"form": "snapshot"}, "", ("injected",)),
    ],
)
def test_what_a_turn_begins_with_is_what_set_it_going(
    root: Path, zone: Zone, kind: str, more: dict[str, Any], trigger: str, flags: tuple[str, ...]
) -> None:
    found = landed(root, zone, *turn(1, user("q", kind=kind, **more), answer("a"), user("steer"), answer("b", step=2)))
    first, steered = (record for record in found if {"injected", "external_input"} & set(record.flags))
    assert (first.trigger, first.flags, first.run) == (trigger, flags, "s:t1")
    assert (steered.trigger, steered.flags, steered.from_) == ("", ("external_input",), "external")


def test_notices_before_a_prompt_do_not_take_the_turn_from_the_person(root: Path, zone: Zone) -> None:
    begun = [user("note", kind="plan-mode"), user("context", kind="runtime-context"), user("q"), user("more")]
    found = landed(root, zone, *turn(1, user("first"), answer("x")), *turn(2, *begun, answer("a", turn=2)))
    assert [record.trigger for record in found if record.trigger] == ["external", "unknown", "external"]
    assert len(kinds(assembled(zone, "s"), "talk")) == 2


def test_a_turn_that_fails_before_its_first_step_says_at_its_end_who_set_it_going(root: Path, zone: Zone) -> None:
    waits = mark("agent/inbox/spliced", target="next-turn", start=0, inserted=[user("q")["data"]])
    taken = mark("agent/inbox/spliced", target="next-turn", start=0, removedCount=1, inserted=[])
    error = {"message": "no such directory", "code": "UNKNOWN"}
    found = landed(root, zone, waits, mark("turn/start", turn=1), taken, ended(kind="error", error=error))
    assert (found[-1].trigger, found[-1].flags, found[-1].run) == ("external", ("error",), "s:t1")
    nodes = assembled(zone, "s")
    assert len(kinds(nodes, "talk")) == len(kinds(nodes, "error.api")) == 1
    assert kinds(nodes, "message.external") == []


def test_a_queue_s_message_is_no_second_prompt(root: Path, zone: Zone) -> None:
    waits = mark("agent/inbox/spliced", target="next-turn", start=0, inserted=[user("q")["data"]])
    cancelled = {"target": "next-turn", "start": 0, "removedCount": 1, "inserted": [], "outcome": "canceled"}
    say = told(landed(root, zone, waits, *turn(1, user("q"), answer("a")), mark("agent/inbox/spliced", **cancelled)))
    assert say.human == [("s:t1", "q")]


@pytest.mark.parametrize(
    ("kind", "more", "flags"),
    [
        ("completed", {}, ()),
        ("aborted", {"reason": {"kind": "user"}}, ("notice",)),
        ("interrupted", {}, ("notice",)),
        ("max-tokens", {}, ("notice",)),
        ("error", {"error": {"message": "m", "code": "AUTH"}}, ("error",)),
        ("from-the-future", {}, ()),
    ],
)
def test_turns_end_as_the_log_says(
    root: Path, zone: Zone, kind: str, more: dict[str, Any], flags: tuple[str, ...]
) -> None:
    found = landed(root, zone, mark("turn/start", turn=1), *step(1, user("q")), ended(kind=kind, **more))
    assert found[-1].flags == flags
    assert told(found).ends == {"s:t1": kind}


def test_an_error_is_told_by_its_attempt_or_by_the_turn_s_end_never_by_both(root: Path, zone: Zone) -> None:
    failed = mark("assistant/attempt", turn=1, step=1, stream=[])
    error = {"message": "m", "code": "AUTH"}
    landed(root, zone, mark("turn/start", turn=1), *step(1, user("q"), failed), ended(kind="error", error=error))
    assert len(kinds(assembled(zone, "s"), "error.api")) == 1


def test_a_turn_s_number_that_is_used_twice_is_two_turns(root: Path, zone: Zone) -> None:
    begun = mark("turn/start", turn=1)
    found = landed(
        root, zone, begun, *step(1, user("q"), answer("a")), begun, *step(1, user("r"), answer("b")), generation=0
    )
    assert list(told(found).ends) == ["s:t1", "s:t1@5"]
    assert [call for _, call, _ in told(found).answers] == ["s:t1.s1", "s:t1@5.s1"]
    assert len(kinds(assembled(zone, "s"), "talk")) == 2


def compaction(number: int, start: int, end: int, sources: list[int], **more: Any) -> list[Event]:
    """A summary and its checkpoint in place of the span from `start` to `end`."""
    said = [{"type": "text", "text": f"summary {number}"}]
    summary = mark("compaction/summary", compactionId=f"c{number}", summary=said, model="m", usage=USAGE, **more)
    checkpoint = user(f"so far {number}", kind="compact-checkpoint", compactionId=f"c{number}")
    checkpoint |= {"surfaceOp": {"op": "replace", "startSeq": start, "endSeq": end}, "sourceEventSeqs": sources}
    return [summary, checkpoint]


def test_two_compactions_in_a_row_are_two_resets_with_their_summaries(root: Path, zone: Zone) -> None:
    first = turn(1, user("q"), answer("a", usage=USAGE))
    found = landed(
        root,
        zone,
        *first,
        mark("turn/start", turn=2),
        *compaction(1, 2, 3, [2, 3]),
        *compaction(2, 8, 8, [8]),
        *step(1, user("r"), answer("b", turn=2, usage=USAGE), turn=2),
        ended(2),
    )
    say = told(found)
    assert say.resets == [("s:8", "s:3"), ("s:10", "s:8")]
    assert say.summaries == ["summary 1", "summary 2"]
    assert [call for call, _ in say.usage] == ["s:t1.s1", "s:c:c1", "s:c:c2", "s:t2.s1"]
    assert [text for _, text in say.human] == ["q", "r"]
    nodes = assembled(zone, "s")
    assert len(kinds(nodes, "epoch")) == 3
    assert len(kinds(nodes, "talk")) == 2
    assert sum(key.startswith("rel/summarizes/") for key in nodes["relations"]) == 2


def test_a_compaction_that_failed_is_a_notice_and_no_reset(root: Path, zone: Zone) -> None:
    found = landed(root, zone, mark("compaction/start", turn=None), mark("compaction/end", error={"message": "no"}))
    assert [record.flags for record in found] == [(), ("notice",)]


def test_titles_are_the_main_stream_s_and_the_last_one_stands(root: Path, zone: Zone) -> None:
    child = header(4, id="child", parent_session="s", origin="subagent", delegation_depth=1)
    put_log(root, child, numbered(*turn(1, user("do it")), mark("session/title", title="of the child")))
    landed(
        root,
        zone,
        mark("session/title", title="first", messageSeqs=[], source={"kind": "user"}),
        *turn(1, user("q"), mark("session/title", title="second", messageSeqs=[], source={"kind": "fallback"})),
    )
    assert assembled(zone, "s")["nodes"]["session/s"]["attrs"]["title"] == "second"


def fork(identity: str, parent: str, **more: Any) -> LogHeader:
    return header(4, id=identity, parent_session=parent, is_seeded=True, **more)


def test_a_fork_of_a_fork_counts_only_what_is_its_own(root: Path, zone: Zone) -> None:
    first = turn(1, user("a"), answer("re a", usage=USAGE), mark("session/title", title="theirs"))
    cut = mark("session/end-seed", inherited=True)
    second = [*first, cut, *turn(2, user("b"), answer("re b", turn=2, usage=USAGE))]
    third = [*second, cut, mark("session/end-seed"), *turn(3, user("c"), answer("re c", turn=3, usage=USAGE))]
    put_log(root, header(4, id="one"), numbered(*first))
    put_log(root, fork("two", "one"), numbered(*second))
    put_log(root, fork("three", "two"), numbered(*third))
    assert problems(land(root, zone)) == []
    says = {name: told(record for _, record in records(zone, name)) for name in ("one", "two", "three")}
    assert {name: say.human for name, say in says.items()} == {
        "one": [("one:t1", "a")],
        "two": [("two:t2", "b")],
        "three": [("three:t3", "c")],
    }
    assert sum(len(say.usage) for say in says.values()) == 3
    assert [say.inherited for say in says.values()] == [0, len(first), len(second)]
    assert [assembled(zone, name)["nodes"][f"session/{name}"]["attrs"]["title"] for name in says] == ["theirs"] * 3
    assert all(len(kinds(assembled(zone, name), "talk")) == 1 for name in says)


def test_what_closes_an_inherited_turn_is_nobody_s_turn_and_answers_no_call(root: Path, zone: Zone) -> None:
    inherited = [mark("turn/start", turn=1), mark("step/start", turn=1, step=1), user("q"), answer("a", "c")]
    closers = [
        result("c", "not here", generation=4, failed=True),
        mark("step/end", turn=1, step=1),
        ended(kind="forked"),
    ]
    own = turn(2, user("r"), answer("b", "c", turn=2), result("c", "ok", generation=4, turn=2))
    put_log(
        root,
        fork("f", "s"),
        numbered(*inherited, mark("session/end-seed", inherited=True), *closers, *own),
    )
    land(root, zone)
    say = told(record for _, record in records(zone, "f"))
    assert say.ends == {"f:t2": "completed"}
    assert say.calls == {"f:c": ["bash", (False, "available", "ok")]}
    found = assembled(zone, "f")
    assert (len(kinds(found, "run")), found["open"]) == (1, {})


def test_a_reset_after_what_is_inherited_goes_on_from_nothing_of_its_own(root: Path, zone: Zone) -> None:
    put_log(
        root,
        fork("f", "s"),
        numbered(user("a"), mark("session/end-seed", inherited=True), *compaction(1, 0, 0, [0]), *turn(2, user("b"))),
    )
    land(root, zone)
    assert told(record for _, record in records(zone, "f")).resets == [("f:3", "")]
    assert assembled(zone, "f")["open"] == {}


def delegated(call: str, child: str, *, time: int = 0) -> tuple[Event, Event, Event]:
    """What a parent's log says of a delegation: the call, the catalog, the result."""
    return (
        mark("tool/call", turn=1, step=1, callId=call, name="subagent", arguments="{}"),
        mark("subagent/catalog", version=1, childId=child, childCreatedAt=1_796_000_000_000, label=f"for {child}"),
        result(call, f"started subagent {child}", generation=4),
    )


def asking(*asked: tuple[str, str, str], turn: int = 1) -> Event:
    """An answer that asks for these calls: id, tool, arguments."""
    event = answer("", *(call for call, _, _ in asked), turn=turn)
    for block, (_, name, arguments) in zip(event["data"]["message"]["content"][1:], asked, strict=True):
        block |= {"name": name, "arguments": arguments}
    return event


def of(parent: str, child: str, generation: int = 4, **more: Any) -> LogHeader:
    return header(generation, id=child, parent_session=parent, origin="subagent", delegation_depth=1, **more)


def test_parallel_delegations_are_joined_each_to_its_own_call(root: Path, zone: Zone) -> None:
    one, two = delegated("x", "c1"), delegated("y", "c2")
    settled = [
        user(f"{child} is done", kind="subagent-settled", form="notice", senderSessionId=child)
        for child in ("c2", "c1")
    ]
    for child in ("c1", "c2"):
        descriptor = mark("subagent/descriptor", version=3, label=f"for {child}")
        put_log(root, of("s", child), numbered(descriptor, *turn(1, user("go"), answer("done", usage=USAGE))))
    landed(
        root,
        zone,
        *turn(
            1,
            user("q"),
            asking(("x", "subagent", "{}"), ("y", "subagent", "{}")),
            one[0], two[0], two[1], two[2], one[1], one[2],
            answer("waiting", step=2),
            settled[0],
        ),
        *turn(2, settled[1], answer("all done", turn=2)),
    )  # fmt: skip
    found = assembled(zone, "s")
    assert {
        relation["to"]: (relation["from"], relation["quality"])
        for key, relation in found["relations"].items()
        if key.startswith("rel/starts/")
    } == {"stream/c1": ("tool/s:x", "exact_unique"), "stream/c2": ("tool/s:y", "exact_unique")}
    reports = [relation["to"] for key, relation in found["relations"].items() if key.startswith("rel/reports/")]
    assert sorted(reports) == ["stream/c1", "stream/c2"]
    assert (len(kinds(found, "agent.launch_ack")), len(kinds(found, "agent.output")), found["open"]) == (2, 2, {})
    assert [found["nodes"][f"stream/{child}"]["attrs"]["label"] for child in ("c1", "c2")] == ["for c1", "for c2"]
    assert len(kinds(found, "talk")) == 3
    assert len(kinds(found, "message.external")) == 1


def test_a_background_child_of_the_first_generation_is_joined_and_its_notice_reports_it(root: Path, zone: Zone) -> None:
    put_log(root, of("s", "c1", 0), numbered(*turn(1, user("go"), answer("done"))))
    call = mark("tool/call", turn=1, step=1, callId="x", name="subagent", arguments="{}")
    notice = user("it is done", kind="plugin", plugin="subagent", form="notice", senderSessionId="c1")
    first = turn(1, user("q"), asking(("x", "subagent", "{}")), call, result("x", "started subagent c1"))
    found = landed(root, zone, *first, *turn(2, notice, answer("well", turn=2)), generation=0)
    assert [record.child for record in found if record.child and not record.started_by] == ["c1", "c1"]
    nodes = assembled(zone, "s")
    assert nodes["relations"]["rel/starts/tool_s:x/stream_c1"]["quality"] == "exact_unique"
    assert len([key for key in nodes["relations"] if key.startswith("rel/reports/")]) == 1
    assert len(kinds(nodes, "talk")) == 2


def test_a_child_that_is_announced_and_not_there_stays_open(root: Path, zone: Zone) -> None:
    landed(root, zone, *turn(1, user("q"), asking(("x", "subagent", "{}")), *delegated("x", "gone")))
    opened = assembled(zone, "s")["open"]
    assert [(entry["kind"], entry["ref"]) for entry in opened.values()] == [("child_stream", "gone")]


def test_a_child_of_a_workflow_is_inferred_to_be_its_call_s(root: Path, zone: Zone) -> None:
    put_log(root, of("s", "c1"), numbered(*turn(1, user("go"), answer("done"))))
    landed(
        root,
        zone,
        *turn(
            1,
            user("q"),
            asking(("w", "workflow", "{}")),
            mark("tool/call", turn=1, step=1, callId="w", name="workflow", arguments="{}"),
            mark("tool-workflow/run-start", runId="r", name="wf"),
            mark("tool-workflow/agent-start", runId="r", seq=1, label="a", childId="c1"),
            mark("tool-workflow/run-end", runId="r", stopReason="completed"),
            result("w", "3 agents ran", generation=4),
        ),
    )
    found = assembled(zone, "s")
    assert [
        (relation["from"], relation["to"], relation["quality"], relation["via"])
        for key, relation in found["relations"].items()
        if key.startswith("rel/starts/")
    ] == [("tool/s:w", "stream/c1", "strong_inference", "run journal")]
    assert found["open"] == {}


def test_a_foreground_child_of_the_first_generation_is_inferred_by_its_words(root: Path, zone: Zone) -> None:
    arguments = json.dumps({"description": "count", "prompt": "go"})
    asked = mark("tool/call", turn=1, step=1, callId="x", name="subagent", arguments=arguments)
    descriptor = mark("subagent/descriptor", version=2, label="count")
    made = 1_796_000_000_005
    put_log(root, of("s", "c1", 0, created_at=made), numbered(descriptor, *turn(1, user("go"), answer("3"))))
    inner = [user("q"), asking(("x", "subagent", arguments)), asked, result("x", "3")]
    landed(root, zone, *turn(1, *inner), generation=0)
    found = assembled(zone, "s")
    assert [
        (relation["from"], relation["quality"])
        for key, relation in found["relations"].items()
        if key.startswith("rel/starts/")
    ] == [("tool/s:x", "strong_inference")]
    assert found["open"] == {}


def test_a_child_that_nothing_but_its_header_knows_is_no_call_s(root: Path, zone: Zone) -> None:
    put_log(root, of("s", "c1"), numbered(*turn(1, user("go"))))
    landed(root, zone, *turn(1, user("q"), answer("a")))
    found = assembled(zone, "s")
    assert (found["open"], [key for key in found["relations"] if key.startswith("rel/starts/")]) == ({}, [])
    (sidecar,) = (record for _, record in records(zone, "s") if record.started_by)
    assert (sidecar.child, sidecar.started_by, sidecar.tool) == ("c1", "main", "")
    assert json.loads(bytes(sidecar.parts[0].data))["evidence"] == "header"  # type: ignore[arg-type]


def test_a_child_s_first_prompt_is_no_person_s_and_later_ones_are(root: Path, zone: Zone) -> None:
    put_log(root, of("s", "c1"), numbered(*turn(1, user("go"), answer("a")), *turn(2, user("and you?"))))
    landed(root, zone, *turn(1, user("q")))
    say = told(record for at, record in records(zone, "s") if at == "c1")
    assert (say.injected, say.human) == (["go"], [("c1:t2", "and you?")])


def test_tool_schemas_and_system_prompts_are_left_out_with_their_sizes(root: Path, zone: Zone) -> None:
    tools = [{"name": "bash", "description": "d" * 1000, "parameters": {}}]
    request = {"config": {"provider": "p", "model": "m"}, "tools": tools, "system": "s" * 1000}
    content = [{"type": "text", "text": "secret of the house"}]
    message = {"id": "m", "role": "system", "source": {"kind": "system-prompt"}, "content": content}
    prompt = {**mark("system/message", turn=1, step=1, message=message), "surfaceOp": "append"}
    found = landed(root, zone, prompt, mark("request/header", header=request, reason="initial"))
    assert [[(each.what, each.bytes > 20) for each in record.dropped] for record in found] == [
        [("system prompt", True)],
        [("tool schemas", True), ("system prompt", True)],
    ]
    kept = b"".join(bytes(part.data) for record in found for part in record.parts)  # type: ignore[arg-type]
    assert b"secret" not in kept
    assert b"dddd" not in kept
    assert b'"tools":["bash"]' in kept


def test_images_have_their_name_and_not_their_bytes(root: Path, zone: Zone) -> None:
    image = {"type": "image", "attachment": {"attachmentId": "sha256:00", "mediaType": "image/png", "bytes": 7}}
    event = user("look")
    event["data"]["content"].append(image)
    (record,) = (each for each in landed(root, zone, *turn(1, event)) if "external_input" in each.flags)
    (media,) = (part for part in record.parts if part.k == "media")
    assert (media.media, media.state, media.bytes) == ("image/png", "unavailable", 7)
    assert b"sha256:00" in bytes(media.data)  # type: ignore[arg-type]


ODD: list[Any] = [None, 0, -1, 1.5, 2**53, "", "x", "\ud800", [], [None], {}, {"type": "text"}, {"kind": "user"}, True]


def test_nothing_that_the_original_accepts_can_stop_a_log_from_landing(tmp_path: Path) -> None:
    """What events hold beyond their rules can be anything: values in all places are replaced by odd ones."""
    chance = random.Random(7)
    base = [
        mark("agent/inbox/spliced", target="next-turn", start=0, inserted=[user("q")["data"]]),
        *turn(
            1,
            user("q"),
            mark("request/header", header={"config": {"provider": "p", "model": "m"}, "tools": []}, reason="initial"),
            mark("assistant/attempt", turn=1, step=1, stream=[{"type": "text-chunks", "index": 0, "texts": ["a"]}]),
            answer("a", "c", usage=USAGE, stream=[{"type": "chunk", "chunk": {"type": "finish", "reason": {}}}]),
            mark("tool/call", turn=1, step=1, callId="c", name="subagent", arguments='{"prompt":"x"}'),
            mark("tool-workflow/agent-start", runId="r", seq=1, childId="k"),
            mark("subagent/catalog", childId="k"),
            result("c", "started subagent k", generation=4),
            user("k is done", kind="subagent-settled", senderSessionId="k"),
            mark("session/title", title="t", source={"kind": "user"}),
            mark("compaction/summary", compactionId="z", summary=[{"type": "text", "text": "s"}], usage=USAGE),
            mark("compaction/end", compactionId="z", error=None),
        ),
    ]
    for number in range(60):
        events = numbered(*json.loads(json.dumps(base)))
        for _ in range(3):
            event = chance.choice(events)
            _replace_somewhere(event["data"], chance)
        zone, root = zone_at(tmp_path / f"zone{number}"), tmp_path / f"root{number}"
        put_log(root, header(4), events)
        put_log(root, of("s", "k"), numbered(*turn(1, user("go"))))
        for problem in problems(land(root, zone)):
            assert problem.rule in ("message", "request_header", "surface", "number")
        for session in zone.sessions():
            assembled(zone, session)


def _replace_somewhere(value: Any, chance: random.Random) -> None:
    while isinstance(value, (dict, list)) and value:
        key = chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if chance.random() < 0.4 or not isinstance(value[key], (dict, list)):
            value[key] = chance.choice(ODD)
            return
        value = value[key]


def test_lines_are_numbered_and_placed_without_a_gap(root: Path, zone: Zone) -> None:
    landed(root, zone, *turn(1, user("q"), answer("ä" * 100)))
    found = [record for _, record in records(zone, "s")]
    assert [record.ord for record in found] == list(range(1, len(found) + 1))
    assert found[0].off == 0
    assert all(later.off == earlier.off + earlier.bytes + 1 for earlier, later in pairwise(found))
