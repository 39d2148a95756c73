"""OpenAI's Responses: ``POST /v1/responses``, streamed or not. Input includes what the cache gave."""

from __future__ import annotations

from typing import Any

from tests.stub_llm.chat import error
from tests.stub_llm.events import Event, arguments, pieces
from tests.stub_llm.script import Answer, Tokens

__all__ = ["document", "error", "events"]


def document(answer: Answer, number: str, model: str) -> dict[str, Any]:
    cut_short = answer.stopped == "length"
    made = _response(number, model, "incomplete" if cut_short else "completed") | {"output": _items(answer, number)}
    if cut_short:
        made["incomplete_details"] = {"reason": "max_output_tokens"}
    if answer.usage is not None:
        made["usage"] = _usage(answer.usage)
    return made


def events(answer: Answer, number: str, model: str) -> list[Event]:
    made = [_event("response.created", response=_response(number, model, "in_progress"))]
    for index, item in enumerate(_items(answer, number)):
        made += _item_events(index, item)
    final = document(answer, number, model)
    kind = "response.incomplete" if answer.stopped == "length" else "response.completed"
    made.append(_event(kind, counted=answer.usage is not None, response=final))
    return [
        Event(event.data | {"sequence_number": place}, event.name, event.counted)
        for place, event in enumerate(made)
        if isinstance(event.data, dict)
    ]


def _items(answer: Answer, number: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if answer.reasoning:
        summary = [{"type": "summary_text", "text": answer.reasoning}]
        items.append({"type": "reasoning", "id": f"rs_{number}", "summary": summary})
    if answer.text or not answer.tools:
        content = [{"type": "output_text", "text": answer.text, "annotations": []}]
        items.append(
            {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        )
    for place, call in enumerate(answer.tools):
        name = f"{number}_{place}"
        items.append(
            {
                "type": "function_call",
                "id": f"fc_{name}",
                "call_id": f"call_{name}",
                "name": call.name,
                "arguments": arguments(call),
                "status": "completed",
            }
        )
    return items


def _item_events(index: int, item: dict[str, Any]) -> list[Event]:
    place = {"output_index": index, "item_id": item["id"]}
    made: list[Event] = []
    if item["type"] == "message":
        part = item["content"][0]
        place["content_index"] = 0
        made.append(
            _event(
                "response.output_item.added", output_index=index, item=item | {"content": [], "status": "in_progress"}
            )
        )
        made.append(_event("response.content_part.added", **place, part=part | {"text": ""}))
        made += [_event("response.output_text.delta", **place, delta=piece) for piece in pieces(part["text"])]
        made.append(_event("response.output_text.done", **place, text=part["text"]))
        made.append(_event("response.content_part.done", **place, part=part))
    elif item["type"] == "function_call":
        made.append(
            _event(
                "response.output_item.added", output_index=index, item=item | {"arguments": "", "status": "in_progress"}
            )
        )
        for piece in pieces(item["arguments"]):
            made.append(_event("response.function_call_arguments.delta", **place, delta=piece))
        made.append(_event("response.function_call_arguments.done", **place, arguments=item["arguments"]))
    else:
        made.append(_event("response.output_item.added", output_index=index, item=item | {"summary": []}))
        text = item["summary"][0]["text"]
        place["summary_index"] = 0
        made.append(_event("response.reasoning_summary_part.added", **place, part={"type": "summary_text", "text": ""}))
        made += [_event("response.reasoning_summary_text.delta", **place, delta=piece) for piece in pieces(text)]
        made.append(_event("response.reasoning_summary_text.done", **place, text=text))
    made.append(_event("response.output_item.done", output_index=index, item=item))
    return made


def _response(number: str, model: str, status: str) -> dict[str, Any]:
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": status,
        "model": model,
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
    }


def _usage(used: Tokens) -> dict[str, Any]:
    return {
        "input_tokens": used.input_total,
        "input_tokens_details": {"cached_tokens": used.cache_read, "cache_write_tokens": used.cache_write},
        "output_tokens": used.output,
        "output_tokens_details": {"reasoning_tokens": used.reasoning},
        "total_tokens": used.input_total + used.output,
    }


def _event(kind: str, *, counted: bool = False, **fields: Any) -> Event:
    return Event({"type": kind, **fields}, name=kind, counted=counted)
