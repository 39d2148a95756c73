"""OpenAI's Chat Completions: ``POST /v1/chat/completions``, streamed or not. Input includes what the cache gave."""

from __future__ import annotations

from typing import Any

from tests.stub_llm.events import Event, arguments, pieces
from tests.stub_llm.script import Answer, Tokens

__all__ = ["document", "error", "events"]

_STOPS = {"end": "stop", "tools": "tool_calls", "length": "length"}
_ERRORS = {401: "authentication_error", 429: "rate_limit_error"}


def error(status: int, message: str) -> dict[str, Any]:
    kind = _ERRORS.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def document(answer: Answer, number: str, model: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.tools:
        message["tool_calls"] = [
            {
                "id": f"call_{number}_{place}",
                "type": "function",
                "function": {"name": call.name, "arguments": arguments(call)},
            }
            for place, call in enumerate(answer.tools)
        ]
    made = _chunk(number, model, [{"index": 0, "message": message, "finish_reason": _STOPS[answer.stopped]}])
    return made | {"object": "chat.completion"} | ({"usage": _usage(answer.usage)} if answer.usage else {})


def events(answer: Answer, number: str, model: str, *, with_usage: bool) -> list[Event]:
    def delta(value: dict[str, Any], stop: str | None = None) -> Event:
        return Event(_chunk(number, model, [{"index": 0, "delta": value, "finish_reason": stop}]))

    made = [delta({"role": "assistant", "content": ""})]
    if answer.reasoning:
        made += [delta({"reasoning_content": piece}) for piece in pieces(answer.reasoning)]
    if answer.text:
        made += [delta({"content": piece}) for piece in pieces(answer.text)]
    for place, call in enumerate(answer.tools):
        opening = {"index": place, "id": f"call_{number}_{place}", "type": "function"}
        made.append(delta({"tool_calls": [opening | {"function": {"name": call.name, "arguments": ""}}]}))
        for piece in pieces(arguments(call)):
            made.append(delta({"tool_calls": [{"index": place, "function": {"arguments": piece}}]}))
    made.append(delta({}, _STOPS[answer.stopped]))
    if with_usage and answer.usage is not None:
        made.append(Event(_chunk(number, model, []) | {"usage": _usage(answer.usage)}, counted=True))
    made.append(Event("[DONE]"))
    return made


def _chunk(number: str, model: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": model,
        "choices": choices,
    }


def _usage(used: Tokens) -> dict[str, Any]:
    return {
        "prompt_tokens": used.input_total,
        "completion_tokens": used.output,
        "total_tokens": used.input_total + used.output,
        "prompt_tokens_details": {"cached_tokens": used.cache_read, "cache_write_tokens": used.cache_write},
        "completion_tokens_details": {"reasoning_tokens": used.reasoning},
    }
