"""Native runs are bounded: every cap by its name, checked with an estimate before anything is sent."""

from __future__ import annotations

import pytest

from tasks.agents.native.budget import Caps, Ledger, Refusal, admit
from tasks.agents.native.conversation import Failure, Route, Usage
from tasks.agents.native.protocol import Compact, Expired, Send
from tests.native_sessions import Driven, agent, answer, calls, rules


def _capped(**fields: int) -> Driven:
    return Driven(rules(agent(max_tokens=50), caps=Caps(**fields)))


ROUTE = Route("openai", "gpt-5")


@pytest.mark.parametrize(
    ("caps", "ledger", "cap"),
    [
        # What comes to just the cap is admitted, and one more of anything is not.
        (Caps(tokens=100), Ledger(input_uncached=40, output=10), None),
        (Caps(tokens=100), Ledger(input_uncached=41, output=10), "tokens"),
        (Caps(tokens=100), Ledger(input_uncached=40, maybe_tokens=11), "tokens"),
        (Caps(cost_microusd=100), Ledger(microusd=50), None),
        (Caps(cost_microusd=100), Ledger(microusd=51), "cost_microusd"),
        (Caps(cost_microusd=100), Ledger(microusd=40, maybe_microusd=11), "cost_microusd"),
        # A call without a price may have cost anything.
        (Caps(cost_microusd=100), Ledger(unpriced=1), "cost_microusd"),
        (Caps(answers=2), Ledger(answers=1), None),
        (Caps(answers=2), Ledger(answers=2), "answers"),
        (Caps(wall_ms=10), Ledger(), "wall_time"),
        (Caps(wall_ms=11), Ledger(), None),
    ],
)
def test_request_of_fifty_tokens_is_admitted_up_to_each_cap(caps: Caps, ledger: Ledger, cap: str | None) -> None:
    found = admit(
        caps, ledger, ROUTE, Usage(30, 20), price=lambda route, usage, now: usage.total, started_ms=5, now_ms=15
    )
    assert (found.cap if isinstance(found, Refusal) else None) == cap


def test_the_tokens_cap_refuses_what_would_go_past_it() -> None:
    driven = _capped(tokens=330)
    driven.go(Send("Hello"), answer(usage=Usage(200, 50)))
    assert driven.put(Send("More")) is None
    result = driven.reports[-1]
    assert (result.stop, result.cap) == ("budget_exceeded", "tokens")
    assert "tokens cap" in result.message
    assert len(driven.asked) == 1
    assert driven.end_reasons() == ["completed", "BUDGET_EXCEEDED"]


def test_a_request_that_fits_is_sent() -> None:
    driven = _capped(tokens=500)
    driven.go(Send("Hello"), answer(usage=Usage(200, 50)))
    driven.go(Send("More"), answer())
    assert driven.reports[-1].stop == "completed"


def test_the_cost_cap_counts_micro_dollars() -> None:
    driven = _capped(cost_microusd=330)
    driven.go(Send("Hello"), answer(usage=Usage(200, 50)))
    assert driven.put(Send("More")) is None
    assert driven.reports[-1].cap == "cost_microusd"
    assert driven.session.run.microusd == 250


def test_a_cost_cap_is_not_kept_by_guessing_a_price() -> None:
    driven = Driven(rules(agent(model="unlisted"), caps=Caps(cost_microusd=10**9)))
    assert driven.put(Send("Hello")) is None
    assert driven.reports[-1].cap == "cost_microusd"
    assert "no known price" in driven.reports[-1].message
    assert driven.asked == []


def test_without_a_cost_cap_an_unknown_price_is_noted_and_never_nought() -> None:
    driven = Driven(rules(agent(model="unlisted")))
    driven.go(Send("Hello"), answer())
    assert (driven.session.run.unpriced, driven.session.run.complete) == (1, False)


def test_a_call_whose_usage_is_unknown_counts_with_its_estimate() -> None:
    driven = _capped(tokens=400)
    driven.go(Send("x" * 800), answer(usage=None))
    assert driven.session.run.tokens == 0
    assert driven.put(Send("More " * 40)) is None
    assert driven.reports[-1].cap == "tokens"


def test_the_wall_time_cap_is_checked_before_a_request() -> None:
    driven = _capped(wall_ms=1000)
    driven.now += 2000
    assert driven.put(Send("Hello")) is None
    assert driven.reports[-1].cap == "wall_time"


def test_the_wall_time_cap_ends_what_is_under_way() -> None:
    driven = _capped(wall_ms=1000)
    driven.put(Send("Hello"))
    driven.put(Expired())
    assert (driven.reports[-1].stop, driven.reports[-1].cap) == ("budget_exceeded", "wall_time")
    assert driven.session.run.unknown == 1


def test_rounds_past_their_cap_are_not_run() -> None:
    driven = _capped(tool_rounds=1)
    driven.go(Send("Go"), calls("read_file", path="a"), calls("read_file", path="b"))
    assert (driven.reports[-1].stop, driven.reports[-1].cap) == ("budget_exceeded", "tool_rounds")
    assert len(driven.ran) == 1
    assert driven.of("tool/result")[-1]["error"]["code"] == "BUDGET_EXCEEDED"


def test_the_answers_cap_runs_no_tools_for_an_answer_that_may_not_be_asked_for() -> None:
    driven = _capped(answers=2)
    driven.go(Send("Go"), calls("read_file", path="a"), calls("read_file", path="b"))
    assert driven.reports[-1].cap == "answers"
    assert len(driven.ran) == 1
    assert len(driven.asked) == 2


def test_a_failed_attempt_that_was_refused_costs_nothing_and_one_that_broke_off_its_estimate() -> None:
    refused, broken = _capped(tokens=10_000), _capped(tokens=10_000)
    refused.go(Send("Hello"), Failure("SERVER", "no", 500))
    broken.go(Send("Hello"), Failure("STREAM_CLOSED", "no"))
    assert refused.session.run.maybe_tokens == 0
    assert broken.session.run.maybe_tokens > 0


def test_a_compaction_that_the_budget_refuses_sends_nothing_and_changes_nothing() -> None:
    driven = _capped(tokens=800)
    driven.go(Send("One " * 100), answer(usage=Usage(200, 50)))
    driven.go(Send("Two"), answer(usage=Usage(200, 50)))
    before, stored = driven.session.exchanges, len(driven.events)
    driven.put(Compact())
    result = driven.reports[-1]
    assert (result.kind, result.moment_opened) == ("budget_refused", False)
    assert "tokens cap" in result.message
    assert (driven.session.exchanges, len(driven.events)) == (before, stored)


@pytest.mark.parametrize("cap", ["tokens", "cost_microusd", "answers", "tool_rounds", "wall_ms"])
def test_no_cap_is_no_limit(cap: str) -> None:
    driven = _capped(**{cap: 10**12})
    driven.go(Send("Go"), calls("read_file"), answer())
    assert driven.reports[-1].stop == "completed"
