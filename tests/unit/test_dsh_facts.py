"""What events come to where the golden logs do not show it: generation 0, open turns, odd orders, weak evidence."""

from __future__ import annotations

import pytest

from schemas.dsh import Event, LogHeader, StoredLog, read_log, write_first_batch
from schemas.dsh_facts import SessionFacts, facts_of, inherited_count
from schemas.dsh_lineage import Delegation, delegations, forks
from schemas.dsh_root import log_key
from tests.dsh_logs import answer, header, mark, numbered, result, turn, user


def stored(of: LogHeader, *events: Event) -> StoredLog:
    return read_log(write_first_batch(of, numbered(*events), packed=False), name=log_key(of))


def facts(*events: Event, generation: int = 4, **fields: object) -> SessionFacts:
    log = stored(header(generation, **fields), *events)
    return facts_of(log.header, log.events)


def test_a_prompt_that_waits_in_the_queue_is_counted_once() -> None:
    message = user("hello")["data"]
    queued = mark("agent/inbox/spliced", target="next-turn", start=0, inserted=[message])
    taken = mark("agent/inbox/spliced", target="next-turn", start=0, removedCount=1, inserted=[])
    found = facts(queued, mark("turn/start", turn=1), taken, *turn(1, user("hello"), answer("hi"))[1:])
    assert [prompt.text for prompt in found.human_prompts] == ["hello"]
    assert found.turns[0].entered_by == ("user",)


def test_a_turn_without_a_step_begins_with_what_it_took_from_the_queue() -> None:
    message = user("late", kind="tool-jobs")["data"]
    queued = mark("agent/inbox/spliced", target="next-turn", start=0, inserted=[message])
    taken = mark("agent/inbox/spliced", target="next-turn", start=0, removedCount=1, inserted=[])
    failed = mark("turn/end", turn=1, reason={"kind": "error", "error": {"message": "no folder", "code": "CWD"}})
    found = facts(queued, mark("turn/start", turn=1), taken, failed)
    assert (found.turns[0].entered_by, found.turns[0].end, found.turns[0].end_detail) == (
        ("tool-jobs",),
        "error",
        "CWD",
    )
    assert found.human_prompts == ()


def test_steering_does_not_say_how_a_turn_was_entered() -> None:
    second = [mark("step/start", turn=1, step=2), user("steer", kind="agent-message"), mark("step/end", turn=1, step=2)]
    begun = turn(1, user("go"), user("where", kind="runtime-context"), answer("x"))
    found = facts(*begun[:-1], *second, begun[-1])
    assert found.turns[0].entered_by == ("user",)
    assert [injected.kind for injected in found.injected] == ["runtime-context", "agent-message"]


def test_the_same_call_id_in_two_answers_is_two_calls() -> None:
    def called(failed: bool, number: int) -> list[Event]:
        call = mark("tool/call", turn=number, step=1, callId="call_0", name="bash", arguments="{}")
        return turn(
            number, answer("x", "call_0", turn=number), call, result("call_0", "y", generation=4, failed=failed)
        )

    found = facts(*called(False, 1), *called(True, 2))
    assert [(call.turn, call.outcome) for call in found.tool_calls] == [(1, "ok"), (2, "error")]


def test_a_shortened_result_is_no_second_result() -> None:
    place = {"surfaceOp": {"op": "replace", "startSeq": 3, "endSeq": 3}, "sourceEventSeqs": [3]}
    events = turn(1, answer("x", "c"), result("c", "long", generation=4))
    found = facts(*events, {**result("c", "short", generation=4), **place})
    assert [call.outcome for call in found.tool_calls] == ["ok"]
    assert found.surface == (2, 6)


def test_a_turn_without_an_end_is_open_and_its_answer_without_usage_costs_nobody_knows_what() -> None:
    found = facts(mark("turn/start", turn=1), mark("step/start", turn=1, step=1), answer("so f", interrupted=True))
    assert (found.open_turn, found.last_turn_end, found.final_texts) == (True, None, [])
    assert (found.steps[0].usage, found.steps[0].interrupted, found.usage_total) == (None, True, {})


def test_generation_0_tells_failed_attempts_by_their_chunks() -> None:
    def finish(kind: str) -> Event:
        return mark("assistant/chunk", turn=1, step=1, chunk={"type": "finish", "reason": {"kind": kind}})

    usage = {"inputTokens": 5, "outputTokens": 2, "cacheReadTokens": 1}
    retry = mark("llm/retry", turn=1, step=1)
    found = facts(*turn(1, finish("error"), retry, finish("stop"), answer("x", usage=usage)), generation=0)
    step = found.steps[0]
    assert (step.attempts_failed, step.retries, step.finish, step.usage) == (1, 1, "stop", usage)


def test_what_was_inherited_is_counted_where_it_came_from() -> None:
    copied = turn(1, user("a"), answer("b", usage={"inputTokens": 9}))
    own = turn(2, user("c"), answer("d", turn=2, usage={"inputTokens": 4}))
    first = stored(header(0, parent_session="p", seed_length=6), *copied, mark("session/end-seed"), *own)
    latest = stored(
        header(4, parent_session="p", is_seeded=True), *copied, mark("session/end-seed", inherited=True), *own
    )
    for log in (first, latest):
        found = facts_of(log.header, log.events)
        assert found.inherited_events == 6
        assert found.usage_total == {"inputTokens": 4}
        assert [prompt.text for prompt in found.human_prompts] == ["c"]
        assert [(each.turn, each.inherited) for each in found.turns] == [(1, True), (2, False)]
        assert found.resumes == ()
        assert forks([log])[0].inherited_events == 6


def test_a_copy_that_was_cut_short_is_all_inherited() -> None:
    log = stored(header(4, parent_session="p", is_seeded=True), *turn(1, user("a")))
    assert inherited_count(log.header, log.events) == len(log.events)
    log = stored(header(0, parent_session="p", seed_length=50), *turn(1, user("a")))
    assert inherited_count(log.header, log.events) == len(log.events)


def test_each_resume_is_told() -> None:
    found = facts(*turn(), mark("session/end-seed"), *turn(2), mark("session/end-seed"))
    assert found.resumes == (4, 9)


def test_only_the_first_prompt_of_a_child_is_delegated() -> None:
    found = facts(*turn(1, user("do"), user("more")), origin="subagent", parent_session="p", delegation_depth=1)
    assert [prompt.text for prompt in found.delegated_prompts] == ["do"]
    assert [prompt.text for prompt in found.human_prompts] == ["more"]


ASKED = '{"description":"count","prompt":"Count the files."}'


def child(session: str, *, created_at: int = 1_796_000_000_005, label: str = "count") -> StoredLog:
    of = header(0, id=session, origin="subagent", parent_session="s", delegation_depth=1, created_at=created_at)
    descriptor = mark("subagent/descriptor", version=2, mode="one-shot", provider="spawn", label=label)
    return stored(of, descriptor, *turn(1, user("Count the files.")))


def parent(*inner: Event, generation: int = 0) -> StoredLog:
    return stored(header(generation), *turn(1, *inner))


def call(call_id: str = "c1", name: str = "subagent") -> Event:
    return mark("tool/call", turn=1, step=1, callId=call_id, name=name, arguments=ASKED)


def only(found: list[Delegation]) -> tuple[str, str | None, int | None]:
    (delegation,) = found
    return delegation.evidence, delegation.call_id, delegation.result_seq


def test_a_result_that_names_the_child_is_the_firmest_evidence() -> None:
    log = parent(answer("x", "c1"), call(), result("c1", "started subagent kid"))
    assert only(delegations(log, [child("kid"), log])) == ("result", "c1", 4)


def test_only_a_delegating_tool_can_start_a_child() -> None:
    log = parent(answer("x", "c1"), call(name="bash"), result("c1", "started subagent kid"))
    assert only(delegations(log, [child("kid")])) == ("header", None, None)


def test_a_child_that_runs_to_its_end_in_the_call_is_known_by_its_words_and_its_time() -> None:
    log = parent(answer("x", "c1"), call(), mark("todo/write"), mark("todo/write"), result("c1", "There are 3."))
    assert only(delegations(log, [child("kid")])) == ("words", "c1", 6)
    assert only(delegations(log, [child("kid", label="other")])) == ("header", None, None)
    assert only(delegations(log, [child("kid", created_at=1_796_000_000_900)])) == ("header", None, None)


def test_two_calls_in_the_same_words_name_no_child() -> None:
    log = parent(answer("x", "c1", "c2"), call("c1"), call("c2"), mark("todo/write"))
    assert only(delegations(log, [child("kid")])) == ("header", None, None)


@pytest.mark.parametrize(("under_way", "found"), [(["w"], ("workflow", "w", 5)), (["w", "v"], ("header", None, None))])
def test_a_workflow_names_its_child_and_the_call_if_one_was_under_way(
    under_way: list[str], found: tuple[str, str | None, int | None]
) -> None:
    calls = [mark("tool/call", turn=1, step=1, callId=each, name="workflow", arguments="{}") for each in under_way]
    started = mark("tool-workflow/agent-start", runId="r", seq=1, label="count", childId="kid")
    log = parent(answer("x", *under_way), *calls, started, result("w", "done"))
    assert only(delegations(log, [child("kid")])) == found


def test_catalog_and_notices_of_a_child_are_told() -> None:
    catalog = mark("subagent/catalog", version=0, childId="kid", childCreatedAt=1, mode="continuable", label="count")
    settled = user("done", kind="subagent-settled", form="notice", senderSessionId="kid")
    log = parent(answer("x", "c1"), call(), catalog, settled, generation=4)
    (found,) = delegations(log, [child("kid")])
    assert (found.catalog_seq, found.notice_seqs, found.label, found.seeded) == (4, (5,), "count", False)
