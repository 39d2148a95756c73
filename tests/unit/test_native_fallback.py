"""Native sessions: which model is asked next when one fails, and when none is."""

from __future__ import annotations

from typing import Any

import pytest

from tasks.agents.native.conversation import Failure
from tasks.agents.native.protocol import Failed, Pause, Paused, Send
from tests.native_sessions import Driven, agent, answer, calls, rules

SECOND = {"model": "claude-haiku-5-5", "provider": "anthropic", "max_attempts": 2}


def _chained(**fields: Any) -> Driven:
    return Driven(rules(agent(**{"fallback_chain": [SECOND], **fields})))


def _asked(driven: Driven) -> list[str]:
    return [str(ask.route) for ask in driven.asked]


@pytest.mark.parametrize(
    "code", ["RATE_LIMIT", "SERVER", "OVERLOADED", "TIMEOUT", "TRANSPORT", "UNREACHABLE", "STREAM_CLOSED"]
)
def test_what_another_model_can_mend_falls_back(code: str) -> None:
    driven = _chained()
    driven.go(Send("Hello"), Failure(code, "no"), answer("Hi."))
    assert _asked(driven) == ["openai/gpt-5-mini", "anthropic/claude-haiku-5-5"]
    assert driven.reports[-1].text == "Hi."


@pytest.mark.parametrize(
    "code", ["INVALID_REQUEST", "AUTH", "QUOTA", "CONTENT_FILTER", "MISSING_CREDENTIAL", "HTTP_418"]
)
def test_what_another_model_should_not_mend_does_not(code: str) -> None:
    driven = _chained()
    driven.go(Send("Hello"), Failure(code, "no"))
    assert _asked(driven) == ["openai/gpt-5-mini"]
    assert driven.reports[-1].stop == "provider_error"
    assert driven.end_reasons() == [code]


def test_each_entry_is_tried_as_often_as_it_says() -> None:
    driven = _chained(retry={"max": 2, "backoff": "linear", "backoff_ms": 10})
    driven.go(Send("Hello"), *[Failure("SERVER", "no", 500)] * 4)
    assert _asked(driven) == ["openai/gpt-5-mini"] * 2 + ["anthropic/claude-haiku-5-5"] * 2
    assert driven.reports[-1].stop == "provider_error"
    assert [data["retry"] for data in driven.of("llm/retry")] == [1, 2, 3]


def test_every_attempt_is_a_step_of_its_own() -> None:
    driven = _chained()
    driven.go(Send("Hello"), Failure("STREAM_CLOSED", "no"), answer())
    assert [data["step"] for data in driven.of("step/start")] == [1, 2]
    assert driven.session.run.unknown == 1
    assert len(driven.of("user/message")) == 1


def test_a_model_that_answered_stays_for_the_turn_and_the_next_begins_with_the_first() -> None:
    driven = _chained()
    driven.go(Send("Go"), Failure("SERVER", "no", 500), calls("read_file"), answer())
    driven.go(Send("Again"), answer())
    assert [str(ask.route).split("/")[0] for ask in driven.asked] == ["openai", "anthropic", "anthropic", "openai"]


def test_the_log_says_which_model_was_asked() -> None:
    driven = _chained()
    driven.go(Send("Hello"), Failure("SERVER", "no", 500), answer())
    headers = driven.of("request/header")
    assert [(data["header"]["config"]["model"], data["reason"]) for data in headers] == [
        ("gpt-5-mini", "initial"),
        ("claude-haiku-5-5", "change"),
    ]


def test_the_pause_grows_and_what_the_provider_asks_for_comes_first() -> None:
    driven = Driven(rules(agent(retry={"max": 4, "backoff": "exponential", "backoff_ms": 100})))
    waits = []
    waiting = driven.put(Send("Hello"))
    for failure in (Failure("SERVER", "no"), Failure("SERVER", "no"), Failure("RATE_LIMIT", "no", 429, 2500)):
        waiting = driven.put(Failed(failure))
        assert isinstance(waiting, Pause)
        waits.append(waiting.milliseconds)
        waiting = driven.put(Paused())
    assert waits == [100, 200, 2500]
    assert [data["delayMs"] for data in driven.of("llm/retry")] == waits


def test_a_provider_that_asks_for_more_patience_than_we_have_is_not_tried_again() -> None:
    driven = _chained(retry={"max": 5, "backoff": "linear"})
    driven.go(Send("Hello"), Failure("RATE_LIMIT", "no", 429, 31_000), answer())
    assert _asked(driven) == ["openai/gpt-5-mini", "anthropic/claude-haiku-5-5"]


def test_retry_on_narrows_what_is_tried_again() -> None:
    retry = {"max": 3, "backoff": "linear", "retry_on": ["provider_rate_limit"]}
    driven = Driven(rules(agent(retry=retry)))
    driven.go(Send("Hello"), Failure("SERVER", "no", 500))
    assert len(driven.asked) == 1
    driven.go(Send("Hello"), Failure("RATE_LIMIT", "no", 429), answer())
    assert driven.reports[-1].stop == "completed"


def test_without_a_chain_one_failure_ends_the_turn() -> None:
    driven = Driven()
    driven.go(Send("Hello"), Failure("SERVER", "no", 500))
    assert driven.reports[-1].failure == Failure("SERVER", "no", 500)
