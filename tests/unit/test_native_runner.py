"""What the runner ``native`` makes of its program's lines: calls, tools, how the turn ended and why."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from schemas.agent_run import TokenCount, ToolUse
from schemas.agent_spec import AgentSpec, Limits
from schemas.errors import WrongUse
from tasks.agents.native.budget import Caps
from tasks.agents.native.conversation import Failure, Usage
from tasks.agents.native.protocol import Abort, Cancel, Send
from tasks.agents.native.runner import Native, _evidence, _Reading, _task
from tasks.agents.native.session import Rules
from tasks.agents.process import Ended
from tasks.agents.runner import RunEvidence, RunRequest
from tasks.agents.verdict import judge
from tasks.agents.watch import Watch
from tests.native_sessions import Driven, agent, answer, calls, played, rules


def _request(**fields: Any) -> RunRequest:
    document = {
        "name": "tester",
        "runner": "native",
        "agent": {"id": "helper", "model": "gpt-5-mini", "provider": "openai", "system_prompt": "Help."},
        "task": {"prompt": "Hello"},
        "endpoints": {"openai": {"base_url": "http://127.0.0.1:9/v1", "key": {"env": "TEAM_KEY"}}},
        **fields,
    }
    spec = AgentSpec.model_validate(document)
    return RunRequest("run-1", spec, "Hello", Path("/w"), Path("/h"), {"TMPDIR": "/h/tmp"}, {"openai": "sk-key-1"})


def _read(driven: Driven, exit_code: int = 1) -> RunEvidence:
    """The evidence of a program that printed this session."""
    reading = _Reading(Watch(Limits()))
    reading.line(b'{"session": "session-1"}')
    reading.line(b"not a record")
    for event in driven.events:
        reading.line(json.dumps({"event": event}).encode())
    if driven.reports:
        reading.line(msgspec.json.encode({"result": msgspec.to_builtins(driven.reports[-1])}))
    return _evidence(_request(), reading, Ended(exit_code, ""), "2.0")


def test_calls_are_those_of_the_log_and_what_broke_off_is_unknown() -> None:
    evidence = _read(played(), 0)
    keys = [call.key for call in evidence.calls]
    assert keys == [
        "session-1:t1.s1",
        "session-1:t1.s2",
        "session-1:t2.s1.a1",
        "session-1:t2.s2",
        "session-1:t3.s1",
        "session-1:t4.s1",
        "session-1:c:session-1:compaction:1.1",
        "session-1:c:session-1:compaction:1",
        "session-1:t5.s1.a1",
        "session-1:t6.s1",
    ]
    assert evidence.calls[0].tokens == TokenCount(210, 40, 0, 21, 3)
    assert [call.key for call in evidence.calls if call.tokens is None] == [keys[2], keys[8]]
    assert evidence.calls[3].model == "claude-haiku-5-5"
    assert evidence.tools == (
        ToolUse("read_file", "ok"),
        ToolUse("write_file", "denied"),
        ToolUse("unheard_of", "unknown_tool"),
    )
    assert (evidence.turn, evidence.final_text, evidence.session_id) == ("completed", "Four.", "session-1")


def _ended(given: Rules, *replies: Any, text: str = "Go") -> Driven:
    driven = Driven(given)
    driven.go(Send(text), *replies)
    return driven


OVERFLOW = Failure("CONTEXT_WINDOW_EXCEEDED", "x", 400)
ROUND = calls("read_file", path="a")


@pytest.mark.parametrize(
    ("driven", "stop"),
    [
        (_ended(rules(caps=Caps(tokens=10))), "token_limit"),
        (_ended(rules(caps=Caps(cost_microusd=1))), "budget_exceeded"),
        (_ended(rules(caps=Caps(wall_ms=0))), "timeout"),
        (_ended(rules(caps=Caps(tool_rounds=1)), ROUND, ROUND), "tool_round_limit"),
        (_ended(rules(caps=Caps(answers=1)), ROUND), "turn_limit"),
        (_ended(rules(), ROUND, ROUND, ROUND, ROUND), "tool_round_limit"),
        (_ended(rules(), OVERFLOW), "context_overflow"),
        (_ended(rules(), answer("x", finish="length")), "output_limit"),
        (_ended(rules(), answer("x", finish="content_filter")), "provider_refused"),
        (_ended(rules(), Failure("MISSING_CREDENTIAL", "no key")), "missing_key"),
        (_ended(rules(), Failure("RATE_LIMIT", "slow down", 429)), "rate_limited"),
        (_ended(rules(), Failure("SERVER", "broken", 500)), "provider_unavailable"),
        (_ended(rules(), Failure("OVERLOADED", "busy", 529)), "provider_unavailable"),
        (_ended(rules(), Failure("STREAM_CLOSED", "cut")), "provider_unavailable"),
        (_ended(rules(), Failure("UNREACHABLE", "gone")), "provider_unavailable"),
        (_ended(rules(), Failure("AUTH", "who are you", 401)), "provider_refused"),
        (_ended(rules(), Failure("INVALID_REQUEST", "no", 400)), "provider_refused"),
        (_ended(rules(), Failure("HTTP_418", "teapot", 418)), "provider_refused"),
        (_ended(rules(), Failure("UNSUPPORTED_MODEL", "which server")), "runner_failed"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_why_there_is_no_answer_is_the_reason_of_the_verdict(driven: Driven, stop: str) -> None:
    verdict = judge(_read(driven))
    assert (verdict.status, verdict.stop) == ("failed", stop)
    assert driven.reports[-1].message in verdict.reason


@pytest.mark.parametrize(("how", "cause"), [(Abort(), None), (Cancel(), "cancelled")])
def test_a_turn_that_was_ended_from_outside_says_nothing_of_the_task(how: Any, cause: Any) -> None:
    driven = Driven()
    driven.put(Send("Go"))
    driven.put(how)
    evidence = _read(driven)
    assert evidence.turn == "aborted"
    assert judge(evidence, cause).status == "interrupted"
    assert [call.tokens for call in evidence.calls] == [None]


def test_a_program_that_was_killed_leaves_an_open_turn_and_an_open_call() -> None:
    driven = Driven()
    driven.go(Send("Go"), calls("read_file", usage=Usage(5, 1)))
    driven.batches.pop()
    evidence = _read(driven, -9)
    assert (evidence.turn, evidence.tools) == ("open", (ToolUse("read_file", "open"),))
    assert judge(evidence).status == "interrupted"


def test_the_task_has_the_run_s_limits_and_its_keys_and_nothing_else_has_them() -> None:
    limits = {"turns": 7, "tokens": 1000, "cost_microusd": 5, "tool_rounds": 3, "wall_seconds": 9}
    request = _request(
        limits=limits,
        permissions={"mode": "read-only", "tools": ["read_file"]},
        environment={"TOKEN": {"env": "TEAM_TOKEN"}, "PLAIN": {"value": "text"}},
    )
    request = replace(request, environment={**request.environment, "TOKEN": "tok-1234", "PLAIN": "text"})
    task = _task(request, 1.0)
    assert (task.answers, task.tokens, task.cost_microusd, task.tool_rounds, task.wall_ms) == (7, 1000, 5, 3, 9000)
    assert (task.mode, task.tools, task.temporary) == ("read-only", ["read_file"], "/h/tmp")
    assert (task.access["openai"].key, task.access["openai"].base_url) == ("sk-key-1", "http://127.0.0.1:9/v1")
    assert "sk-key-1" not in repr(request)
    assert task.secrets == ["sk-key-1", "tok-1234"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"permissions": {"tools": ["Bash"]}}, "native has no tool Bash"),
        ({"agent": {**agent().model_dump(exclude_none=True), "output_schema": {"type": "object"}}}, "output_schema"),
    ],
)
def test_what_this_runner_cannot_do_is_refused_before_anything_starts(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(WrongUse, match=said):
        asyncio.run(Native().run(_request(**fields), Watch(Limits())))
