"""What a provider says that a request used: only what can be is taken, and the rest of an answer stands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from schemas.agent_run import TokenCount
from tasks.agents.native.told_usage import believed
from tasks.agents.program import tokens

NAMES = ("in", "read", "write", "out")


def _read(data: bytes, size: int) -> bytes:
    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(data), size):
            yield data[at : at + size]

    async def play() -> bytes:
        return b"".join([piece async for piece in believed(pieces())])

    return asyncio.run(play())


def _stream(*events: dict[str, Any]) -> bytes:
    return b"".join(b"event: e\r\ndata: " + json.dumps(each).encode() + b"\r\n\r\n" for each in events)


def _usages(data: bytes) -> list[Any]:
    events = [json.loads(line[6:]) for line in data.splitlines() if line.startswith(b"data: ")]
    return [event.get("message", event).get("usage") for event in events]


START = {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 7, "output_tokens": 1}}}
NOTHING = dict.fromkeys(("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"), 0)


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_what_can_be_comes_through_byte_for_byte(size: int) -> None:
    usage = {"output_tokens": 5, "input_tokens": None, "service_tier": "x", "cost": 0.5}
    text = {"type": "content_block_delta", "delta": {"text": '"usage": {"output_tokens": -1} é'}}
    chunk = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4, "details": [{"a_tokens": 1}]}}
    data = _stream(START, text, {"type": "message_delta", "usage": usage}, chunk, {"usage": None}) + b"data: [DONE]\n"
    assert _read(data, size) == data


@pytest.mark.parametrize(
    "usage",
    [
        None, [], "x", {}, {"output_tokens": None}, {"output_tokens": -1}, {"output_tokens": 2**53},
        {"output_tokens": True}, {"output_tokens": "5"}, {"output_tokens": 1.0},
        {"output_tokens": 5, "input_tokens": "x"}, {"output_tokens": 5, "cache_creation": {"five_tokens": -1}},
    ],
)  # fmt: skip
def test_messages_answer_that_does_not_tell_its_usage_tells_nothing(usage: Any) -> None:
    ending = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}} | (
        {"usage": usage} if usage != "x" else {}
    )
    assert _usages(_read(_stream(START, ending), 11))[1] == NOTHING


def test_messages_answer_whose_start_cannot_be_tells_nothing_to_its_end() -> None:
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 2**63, "output_tokens": 1}}}
    ending = {"type": "message_delta", "usage": {"output_tokens": 5}}
    assert _usages(_read(_stream(start, ending), 11)) == [NOTHING, NOTHING]
    # One that says nothing at its start and all at its end tells its usage.
    start, ending = (
        {"type": "message_start", "message": {}},
        {"type": "message_delta", "usage": NOTHING | {"input_tokens": 4}},
    )
    assert _usages(_read(_stream(start, ending), 11)) == [NOTHING, NOTHING | {"input_tokens": 4}]


@pytest.mark.parametrize(
    "usage", [[1], "x", 5, {"prompt_tokens": -1}, {"d": {"cached_tokens": "x"}}, {"completion_tokens": 2**53}]
)
def test_chunk_whose_usage_cannot_be_loses_it(usage: Any) -> None:
    assert _usages(_read(_stream({"choices": [], "usage": usage}), 3)) == [None]


@pytest.mark.parametrize("wrong", [-1, 2**53, "5", True, 1.5, []])
@pytest.mark.parametrize("name", NAMES)
def test_program_that_tells_what_cannot_be_tells_nothing(name: str, wrong: Any) -> None:
    told = {"in": 1, "read": 2, "out": 4}
    assert tokens(told, NAMES, 3) == TokenCount(1, 2, 0, 4, 3)
    assert tokens(told | {name: wrong}, NAMES) is None
    assert tokens(told, NAMES, wrong) is None
