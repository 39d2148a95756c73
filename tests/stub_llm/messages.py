"""Anthropic's Messages: ``POST /v1/messages``, as a stream and as one document. Input excludes the cache."""

from __future__ import annotations

import json
from typing import Any

from tests.stub_llm.events import Event, arguments, pieces
from tests.stub_llm.script import Answer, Tokens

__all__ = ["document", "error", "events"]

_STOPS = {"end": "end_turn", "tools": "tool_use", "length": "max_tokens"}
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def error(status: int, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": _ERRORS.get(status, "api_error"), "message": message}}


def document(answer: Answer, number: str, model: str) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if answer.reasoning:
        content.append({"type": "thinking", "thinking": answer.reasoning, "signature": "c3R1Yg=="})
    if answer.text or not answer.tools:
        content.append({"type": "text", "text": answer.text})
    for place, call in enumerate(answer.tools):
        content.append(
            {
                "type": "tool_use",
                "id": f"toolu_{number}_{place}",
                "name": call.name,
                "input": json.loads(arguments(call)),
            }
        )
    return _message(answer, number, model, content) | {
        "stop_reason": _STOPS[answer.stopped],
        "usage": _usage(answer.usage or Tokens()),
    }


def events(answer: Answer, number: str, model: str) -> list[Event]:
    start = _message(answer, number, model, []) | {
        "usage": _usage(answer.usage or Tokens()) | {"output_tokens": 1},
    }
    made = [_event("message_start", message=start)]
    index = 0
    if answer.reasoning:
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(answer.reasoning)]
        deltas.append({"type": "signature_delta", "signature": "c3R1Yg=="})
        made += _block(index, {"type": "thinking", "thinking": "", "signature": ""}, deltas)
        index += 1
    if answer.text or not answer.tools:
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(answer.text)]
        made += _block(index, {"type": "text", "text": ""}, deltas)
        index += 1
    for place, call in enumerate(answer.tools):
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(arguments(call))]
        block = {"type": "tool_use", "id": f"toolu_{number}_{place}", "name": call.name, "input": {}}
        made += _block(index, block, deltas)
        index += 1
    ending: dict[str, Any] = {"delta": {"stop_reason": _STOPS[answer.stopped], "stop_sequence": None}}
    if answer.usage is not None:
        ending["usage"] = _usage(answer.usage)
    made.append(_event("message_delta", counted=answer.usage is not None, **ending))
    made.append(_event("message_stop"))
    return made


def _message(answer: Answer, number: str, model: str, content: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": None,
        "stop_sequence": None,
    }


def _usage(used: Tokens) -> dict[str, Any]:
    usage: dict[str, Any] = {
        "input_tokens": used.input,
        "cache_read_input_tokens": used.cache_read,
        "cache_creation_input_tokens": used.cache_write,
        "output_tokens": used.output,
    }
    if used.reasoning:
        usage["output_tokens_details"] = {"thinking_tokens": used.reasoning}
    return usage


def _block(index: int, block: dict[str, Any], deltas: list[dict[str, Any]]) -> list[Event]:
    return [
        _event("content_block_start", index=index, content_block=block),
        *(_event("content_block_delta", index=index, delta=delta) for delta in deltas),
        _event("content_block_stop", index=index),
    ]


def _event(kind: str, *, counted: bool = False, **fields: Any) -> Event:
    return Event({"type": kind, **fields}, name=kind, counted=counted)
