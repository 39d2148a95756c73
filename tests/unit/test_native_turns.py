"""Native sessions: their life, their turns and tool rounds (agent-session specification, "Lifecycle")."""

from __future__ import annotations

import pytest

from tasks.agents.native.conversation import Answer, Failure, Message, ToolCall, ToolResult, Usage
from tasks.agents.native.machine import SessionMisuse
from tasks.agents.native.protocol import Abort, Answered, Ask, Cancel, Compact, NotStored, Run, Send, ToolsRan, Trim
from tasks.agents.native.restore import restored
from tasks.agents.native.tool_loop import LoopLimits
from tests.native_sessions import NOW, USED, Driven, agent, answer, calls, closed, rules


def test_start_stores_what_the_session_is_bound_to() -> None:
    driven = Driven()
    assert driven.kinds() == ["agent-preset/selected"]
    assert driven.session.status == "idle"


def test_a_turn_is_completed_by_one_batch() -> None:
    driven = Driven()
    driven.put(Send("Hello"))
    before = len(driven.batches)
    driven.put(Answered(answer("Hi.")))
    assert len(driven.batches) == before + 1
    assert [event["type"] for event in driven.batches[-1]] == [
        "assistant/chunk",
        "assistant/message",
        "step/end",
        "turn/end",
    ]
    assert driven.reports[-1].stop == "completed"
    assert driven.reports[-1].text == "Hi."


def test_what_leads_to_a_request_is_stored_before_it() -> None:
    driven = Driven()
    waiting = driven.put(Send("Hello"))
    assert isinstance(waiting, Ask)
    assert driven.kinds()[-5:] == ["step/start", "user/message", "session/title", "request/header", "request/context"]


def test_later_requests_carry_the_texts_of_completed_turns_and_no_tool_rounds() -> None:
    driven = Driven()
    driven.go(Send("Read a"), calls("read_file", path="a"), answer("It says b."))
    driven.go(Send("And now?"), answer("Nothing."))
    assert driven.asked[-1].request.messages == (
        Message("user", "Read a"),
        Message("assistant", "It says b."),
        Message("user", "And now?"),
    )
    assert driven.asked[-1].request.rounds == ()


def test_a_turn_with_an_empty_answer_is_completed_and_carries_its_user_alone() -> None:
    driven = Driven()
    driven.go(Send("Note this"), answer(""))
    assert driven.end_reasons() == ["completed"]
    driven.go(Send("What was it?"), answer("This."))
    assert driven.asked[-1].request.messages == (Message("user", "Note this\n\nWhat was it?"),)


def test_results_are_given_in_the_order_of_the_calls() -> None:
    driven = Driven()
    waiting = driven.go(Send("Go"), calls("unheard_of", "read_file", "write_file"))
    assert waiting is None
    round = driven.asked[-1].request.rounds[0]
    assert [(result.outcome, result.code) for result in round.results] == [
        ("error", "UNKNOWN_TOOL"),
        ("ok", None),
        ("denied", "TOOL_DENIED"),
    ]
    assert [call.name for call in driven.ran[0].calls] == ["read_file"]


def test_a_call_that_is_not_run_has_a_result_and_no_start() -> None:
    driven = Driven()
    driven.go(Send("Go"), calls("unheard_of", "write_file"), answer("I may not."))
    assert driven.ran == []
    assert "tool/call" not in driven.kinds()
    assert [data["error"]["code"] for data in driven.of("tool/result")] == ["UNKNOWN_TOOL", "TOOL_DENIED"]
    assert [data["outcome"] for data in driven.of("approval/decided")] == ["unavailable"]


def test_a_call_id_stands_for_one_call_in_a_log_whatever_the_provider_calls_it() -> None:
    driven = Driven()
    driven.go(Send("One"), calls("read_file"), answer())
    driven.go(Send("Two"), calls("read_file"), answer())
    ids = [data["callId"] for data in driven.of("tool/call")]
    assert len(set(ids)) == 2
    assert [round.results[0].call_id for ask in driven.asked for round in ask.request.rounds] == ["call_0", "call_0"]


def test_the_turn_past_the_cap_sends_nothing_and_says_so() -> None:
    driven = Driven(rules(max_turns=2))
    driven.go(Send("1"), answer())
    driven.go(Send("2"), answer())
    assert driven.put(Send("3")) is None
    assert len(driven.asked) == 2
    assert driven.reports[-1].stop == "turn_limit"
    assert "2 turns" in driven.reports[-1].message
    assert driven.end_reasons() == ["completed", "completed", "TURN_LIMIT"]


def test_the_cap_is_fifty_where_none_or_nought_is_said() -> None:
    for given in (rules(), rules(max_turns=0)):
        driven = Driven(given)
        for _ in range(50):
            driven.go(Send("x"), answer())
        assert driven.put(Send("x")) is None
        assert driven.reports[-1].stop == "turn_limit"


def test_only_turns_that_a_provider_has_seen_count() -> None:
    driven = Driven(rules(max_turns=2))
    driven.go(Send("1"), Failure("MISSING_CREDENTIAL", "no key"))
    driven.go(Send("2"), Failure("UNREACHABLE", "no server"))
    assert driven.session.engaged_turns == 0
    driven.go(Send("3"), Failure("INVALID_REQUEST", "no", 400))
    assert driven.session.engaged_turns == 1
    again = restored("session-1", driven.events, price=driven.rules.price, now_ms=NOW)
    assert again.engaged_turns == 1


def test_a_failed_turn_is_rolled_back_and_its_usage_is_not() -> None:
    driven = Driven()
    driven.go(Send("Try"), calls("read_file"), Failure("INVALID_REQUEST", "no", 400))
    assert driven.reports[-1].stop == "provider_error"
    assert driven.session.exchanges == ()
    assert driven.session.run.tokens == USED.total
    driven.go(Send("Again"), answer())
    assert driven.asked[-1].request.messages == (Message("user", "Again"),)


def test_abort_ends_the_turn_and_keeps_the_session() -> None:
    driven = Driven()
    driven.put(Send("Long one"))
    assert driven.put(Abort()) is None
    assert driven.reports[-1].stop == "aborted"
    assert driven.of("turn/end")[-1]["reason"] == {"kind": "aborted", "reason": {"kind": "user"}}
    assert driven.session.run.unknown == 1
    driven.go(Send("Short one"), answer("Yes."))
    assert driven.asked[-1].request.messages == (Message("user", "Short one"),)


def test_abort_while_tools_run_gives_each_call_a_result() -> None:
    driven = Driven()
    driven.put(Send("Go"))
    assert isinstance(driven.put(Answered(calls("read_file", "unheard_of"))), Run)
    driven.put(Abort())
    assert [data["error"]["code"] for data in driven.of("tool/result")] == ["ABORTED", "UNKNOWN_TOOL"]
    assert closed(driven.events) == driven.events


def test_a_late_abort_does_nothing() -> None:
    driven = Driven()
    driven.go(Send("Hello"), answer("Hi."))
    stored = len(driven.events)
    driven.put(Abort())
    assert len(driven.events) == stored
    assert driven.session.exchanges[0].answer == "Hi."


def test_cancel_ends_the_session_which_stays_resumable() -> None:
    driven = Driven()
    driven.go(Send("Hello"), answer("Hi."))
    driven.put(Send("More"))
    driven.put(Cancel())
    assert driven.reports[-1].stop == "cancelled"
    assert driven.session.status == "ended"
    with pytest.raises(SessionMisuse, match="ended"):
        driven.put(Send("?"))
    session = restored("session-1", driven.events, price=driven.rules.price, now_ms=NOW)
    again = Driven(driven.rules, session, driven.events)
    assert again.kinds() == ["session/end-seed"]
    again.go(Send("Where were we?"), answer("Here."))
    assert [message.text for message in again.asked[0].request.messages] == ["Hello", "Hi.", "Where were we?"]


def test_operations_need_an_idle_session() -> None:
    driven = Driven()
    driven.put(Send("Hello"))
    for operation in (Send("x"), Compact(), Trim(2)):
        with pytest.raises(SessionMisuse, match="streaming"):
            driven.put(operation)


def test_events_that_were_not_stored_end_the_instance() -> None:
    driven = Driven()
    driven.put(Send("Hello"))
    driven.put(NotStored("the disk is full"))
    assert driven.reports[-1].stop == "not_stored"
    with pytest.raises(SessionMisuse, match="not stored"):
        driven.put(Send("x"))


def test_trim_keeps_whole_turns_and_leaves_a_boundary() -> None:
    driven = Driven()
    for text in ("1", "2", "3"):
        driven.go(Send(text), answer(f"a{text}"))
    driven.go(Trim(3))
    assert (driven.reports[-1].kind, driven.reports[-1].kept_turns, driven.reports[-1].dropped_turns) == (
        "trimmed",
        1,
        2,
    )
    assert [exchange.user for exchange in driven.session.exchanges] == ["3"]
    assert len(driven.asked) == 3
    again = restored("session-1", driven.events, price=driven.rules.price, now_ms=NOW)
    assert again.exchanges == driven.session.exchanges


def test_trim_with_nothing_to_drop_stores_nothing() -> None:
    driven = Driven()
    driven.go(Send("1"), answer())
    stored = len(driven.events)
    driven.go(Trim(2))
    assert driven.reports[-1].kind == "nothing_to_trim"
    assert len(driven.events) == stored


@pytest.mark.parametrize("memory", [{"type": "none"}, {"type": "window", "window_size": 2}])
def test_a_memory_without_a_summary_refuses_compaction_and_trimming(memory: dict[str, object]) -> None:
    driven = Driven(rules(agent(memory=memory)))
    driven.go(Send("1"), answer())
    for operation in (Compact(), Trim(1)):
        stored = len(driven.events)
        driven.put(operation)
        assert driven.reports[-1].kind == "policy_refused"
        assert driven.reports[-1].memory == memory["type"]
        assert len(driven.events) == stored


def test_memory_decides_what_a_request_carries() -> None:
    texts = {}
    for memory in ({"type": "none"}, {"type": "window", "window_size": 2}, {"type": "summary"}):
        driven = Driven(rules(agent(memory=memory)))
        for text in ("1", "2", "3"):
            driven.go(Send(text), answer(f"a{text}"))
        texts[memory["type"]] = [message.text for message in driven.asked[-1].request.messages]
    assert texts == {"none": ["3"], "window": ["2", "a2", "3"], "summary": ["1", "a1", "2", "a2", "3"]}


def test_a_turn_that_makes_too_many_rounds_ends_with_tool_loop() -> None:
    driven = Driven(rules(loops=LoopLimits(rounds=2, same=9)))
    driven.go(Send("Go"), calls("read_file", path="a"), calls("read_file", path="b"))
    assert driven.reports[-1].stop == "tool_loop"
    assert driven.end_reasons() == ["TOOL_LOOP"]
    assert len(driven.asked) == 2


def test_rounds_that_repeat_themselves_end_with_tool_loop() -> None:
    driven = Driven()
    driven.go(Send("Go"), *[calls("read_file", path="a")] * 4)
    assert driven.reports[-1].stop == "tool_loop"
    assert "read_file" in driven.reports[-1].message


def test_the_same_calls_with_other_results_are_no_loop() -> None:
    driven = Driven()
    seen = iter(range(9))
    driven.go(
        Send("Go"),
        *[calls("read_file", path="a")] * 5,
        answer(),
        tool=lambda call: ToolResult(call.id, f"line {next(seen)}"),
    )
    assert driven.reports[-1].stop == "completed"


def test_an_answer_cut_off_at_the_output_limit_is_no_answer() -> None:
    driven = Driven()
    driven.go(Send("Write"), answer("Half of", finish="length"))
    assert (driven.reports[-1].stop, driven.reports[-1].text) == ("max_tokens", "Half of")
    assert driven.of("turn/end")[-1]["reason"] == {"kind": "max-tokens"}
    assert driven.session.exchanges == ()
    assert driven.session.run.tokens == USED.total


def test_calls_of_an_answer_that_was_cut_off_are_not_run() -> None:
    driven = Driven()
    cut = Answer("", (ToolCall("c", "read_file", '{"pa'),), USED, "length")
    driven.go(Send("Read"), cut)
    assert driven.ran == []


def test_usage_that_the_provider_does_not_say_stays_unknown() -> None:
    driven = Driven()
    driven.go(Send("Hello"), answer("Hi.", usage=None))
    assert "usage" not in driven.of("assistant/message")[0]
    assert (driven.session.run.unknown, driven.session.run.tokens, driven.session.run.complete) == (1, 0, False)
    assert driven.session.run.maybe_tokens > 0
    again = restored("session-1", driven.events, price=driven.rules.price, now_ms=NOW)
    assert (again.before.unknown, again.before.complete) == (1, False)


def test_a_request_that_a_crash_left_unanswered_is_unknown_when_the_session_is_taken_up() -> None:
    driven = Driven()
    driven.put(Send("Hello"))
    session = restored("session-1", closed(driven.events), price=driven.rules.price, now_ms=NOW)
    assert (session.before.calls, session.before.unknown, session.engaged_turns) == (1, 1, 1)
    assert session.exchanges == ()


def test_a_request_that_was_refused_is_not_unknown() -> None:
    driven = Driven()
    driven.go(Send("Hello"), Failure("INVALID_REQUEST", "no", 400))
    assert driven.session.run.complete
    assert driven.session.run.calls == 0


def test_figures_are_the_providers_own() -> None:
    driven = Driven()
    driven.go(
        Send("Go"),
        calls("read_file", usage=Usage(7, 3, cache_read=2, cache_write=1, reasoning=2)),
        answer(usage=Usage(11, 5)),
    )
    run = driven.session.run
    assert (run.input_uncached, run.cache_read, run.cache_write, run.output) == (18, 2, 1, 8)
    assert driven.of("assistant/message")[0]["usage"] == {
        "inputTokens": 7,
        "outputTokens": 3,
        "cacheReadTokens": 2,
        "cacheWriteTokens": 1,
        "reasoningTokens": 2,
    }


def test_results_are_stored_before_the_next_request() -> None:
    driven = Driven()
    driven.put(Send("Go"))
    driven.put(Answered(calls("read_file")))
    assert isinstance(driven.put(ToolsRan((ToolResult("call_0", "text"),))), Ask)
    assert [event["type"] for event in driven.batches[-1]] == ["tool/result", "step/end", "step/start"]
