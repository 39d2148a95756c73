"""Whatever happens in whatever order, a native session keeps its rules, and its log tells all of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.agents.native.budget import Caps
from tasks.agents.native.conversation import Answer, Failure, ToolResult, Usage
from tasks.agents.native.machine import SessionMisuse
from tasks.agents.native.protocol import (
    Abort,
    Answered,
    Ask,
    Cancel,
    Compact,
    Disclose,
    Disclosed,
    Expired,
    Failed,
    Pause,
    Paused,
    Run,
    Send,
    ToolsRan,
    Trim,
)
from tasks.agents.native.restore import restored
from tests.native_sessions import NOW, Driven, agent, answer, calls, closed, rules

CODES = ["RATE_LIMIT", "SERVER", "TIMEOUT", "INVALID_REQUEST", "CONTEXT_WINDOW_EXCEEDED", "UNREACHABLE", "AUTH"]
WORDS = "word " * 400
usages = st.one_of(st.none(), st.builds(Usage, st.integers(0, 300), st.integers(0, 90), st.integers(0, 50)))
good = st.builds(answer, st.sampled_from(["", "Yes.", WORDS]), usages)
calling = st.builds(
    lambda names, usage: calls(*names, usage=usage),
    st.lists(st.sampled_from(["read_file", "write_file", "x"]), min_size=1, max_size=3),
    usages,
)
cut = st.builds(
    lambda finish, usage: Answer("part", usage=usage, finish=finish),
    st.sampled_from(["length", "content_filter", "context_window"]),
    usages,
)
failures = st.builds(Failure, st.sampled_from(CODES), st.just("no"), st.none(), st.sampled_from([None, 1000]))
interrupts = st.sampled_from([Abort(), Abort(), Cancel(), Expired()])
replies: Any = st.one_of(good, good, calling, good, failures, cut, interrupts)
sending = st.builds(Send, st.sampled_from(["hi", WORDS]))
operations = st.one_of(
    sending, sending, sending, sending, st.just(Compact()), st.builds(Trim, st.integers(1, 6)), interrupts
)
moves = st.lists(st.tuples(operations, st.lists(replies, max_size=5)), min_size=1, max_size=12)
chains = st.sampled_from(
    [
        {},
        {"retry": {"max": 2, "backoff": "linear"}},
        {"fallback_chain": [{"model": "unlisted", "provider": "anthropic", "max_attempts": 2}]},
        {"memory": {"type": "window", "window_size": 3}},
        {"memory": {"type": "none"}},
    ]
)
caps = st.builds(
    Caps,
    tokens=st.sampled_from([None, 9000, 30_000]),
    cost_microusd=st.sampled_from([None, 20_000]),
    tool_rounds=st.sampled_from([None, 1, 3]),
    answers=st.sampled_from([None, 4]),
)


def _played(script: Any, chain: dict[str, Any], cap: Caps, window: int | None) -> Driven:
    """A session to which all of this happened; operations that are not allowed just then are left out."""
    given = rules(agent(**chain), window=window, caps=cap, max_turns=8, max_tokens_estimate=200, max_messages=4)
    driven = Driven(given)
    for operation, answers in script:
        try:
            driven.put(operation)
        except SessionMisuse:
            continue
        for reply in answers:
            if driven.waiting is None:
                break
            _reply(driven, reply)
        _settle(driven)
    return driven


def _reply(driven: Driven, reply: Any) -> None:
    if isinstance(reply, (Abort, Cancel, Expired)):
        driven.put(reply)
        return
    waiting = driven.waiting
    if isinstance(waiting, Ask):
        driven.put(Failed(reply) if isinstance(reply, Failure) else Answered(reply))
    elif isinstance(waiting, Run):
        driven.put(ToolsRan(tuple(ToolResult(call.id, "found") for call in waiting.calls)))
    elif isinstance(waiting, Pause):
        driven.put(Paused())
    else:
        assert isinstance(waiting, Disclose)
        driven.put(Disclosed())


def _settle(driven: Driven) -> None:
    while driven.waiting is not None:
        _reply(driven, answer("All done."))


@settings(max_examples=150)
@given(moves, chains, caps, st.sampled_from([None, 3500, 6000, 400_000]))
def test_a_session_read_back_from_its_log_is_the_session_that_wrote_it(
    script: Any, chain: dict[str, Any], cap: Caps, window: int | None
) -> None:
    driven = _played(script, chain, cap, window)
    session = driven.session
    again = restored(session.id, driven.events, price=driven.rules.price, now_ms=driven.now)
    assert again.exchanges == session.exchanges
    assert again.summary == session.summary
    assert again.surface == session.surface
    assert (again.turns, again.engaged_turns) == (session.turns, session.engaged_turns)
    assert (again.next_seq, again.call_ids) == (session.next_seq, session.call_ids)
    assert session.run.pending is None
    told = (session.run.calls, session.run.unknown, session.run.tokens, session.run.microusd, session.run.unpriced)
    assert told == (
        again.before.calls,
        again.before.unknown,
        again.before.tokens,
        again.before.microusd,
        again.before.unpriced,
    )


@settings(max_examples=80)
@given(moves, chains, st.sampled_from([3500, 400_000]), st.data())
def test_a_session_cut_between_any_two_batches_goes_on_from_its_last_completed_turn(
    script: Any, chain: dict[str, Any], window: int, data: st.DataObject
) -> None:
    driven = _played(script, chain, Caps(), window)
    assert driven.batches
    cut = data.draw(st.integers(1, len(driven.batches)))
    stored = closed([event for batch in driven.batches[:cut] for event in batch])
    ended = [event["data"] for event in stored if event["type"] == "turn/end"]
    completed = {end["turn"] for end in ended if end["reason"]["kind"] == "completed"}
    session = restored("session-1", stored, price=driven.rules.price, now_ms=NOW)
    assert {exchange.turn for exchange in session.exchanges} <= completed
    assert len(ended) == sum(event["type"] == "turn/start" for event in stored)
    again = Driven(replace(driven.rules, max_turns=60), session, stored)
    again.go(Send("and now?"), answer("Now this."))
    assert again.end_reasons() == ["completed"]


@settings(max_examples=80)
@given(moves, chains, caps, st.sampled_from([None, 3500]))
def test_nothing_is_sent_before_what_led_to_it_is_durable_nor_beyond_the_turn_cap(
    script: Any, chain: dict[str, Any], cap: Caps, window: int | None
) -> None:
    driven = _played(script, chain, cap, window)
    of_turns = [ask for ask in driven.asked if ask.request.tools]
    assert len(of_turns) == driven.kinds().count("step/start")
    assert driven.session.engaged_turns <= 8
    assert driven.session.run.tool_rounds <= (cap.tool_rounds or 10_000)
    assert driven.session.run.answers <= (cap.answers or 10_000)
    texts = [message.text for ask in driven.asked for message in ask.request.messages]
    assert all(texts), "no message of a request is empty"


@settings(max_examples=60)
@given(moves, chains)
def test_the_same_inputs_give_the_same_bytes(script: Any, chain: dict[str, Any]) -> None:
    assert _played(script, chain, Caps(), 6000).batches == _played(script, chain, Caps(), 6000).batches
