"""DeepSeek Harness logs: those of the golden set, and small ones made in place."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from schemas._dsh_json import read_value
from schemas.dsh import NOT_STARTED_TEXT, OUTCOME_UNKNOWN_TEXT, Event, LogHeader, StoredLog, read_log
from schemas.dsh_root import check_place, find_logs

__all__ = [
    "answer",
    "golden_events",
    "header",
    "keys_of",
    "mark",
    "numbered",
    "read_json",
    "read_root",
    "result",
    "text_chunks",
    "their_texts",
    "turn",
    "user",
]

_CLOSER = "interrupted-tool-result-"
_OUR_TEXTS = {"TOOL_OUTCOME_UNKNOWN": OUTCOME_UNKNOWN_TEXT, "TOOL_NOT_STARTED": NOT_STARTED_TEXT}


def keys_of(root: Path) -> list[str]:
    """The keys of a root's files."""
    return [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]


def read_root(root: Path, *, compressed: bool | None = None, session: str | None = None) -> dict[str, StoredLog]:
    """The logs of a root by session id, each looked up by its id and found to lie where it must; or one of them."""
    found = find_logs(keys_of(root), compressed=compressed, name=root.parent.name)
    if session is not None:
        found.find(session, name=root.parent.name)
    logs = {}
    for place in found.logs:
        log = read_log((root / place.key).read_bytes(), name=place.key)
        check_place(log.header, found.find(log.header.id, name=place.key))
        logs[log.header.id] = log
    return logs


def read_json(path: Path) -> Any:
    """A file's JSON as JavaScript reads it, which is how the golden set was made."""
    return read_value(path.read_bytes())[0]


def golden_events(events: Iterable[Event]) -> list[Event]:
    """The original's logical events, with our words in the results that close an interrupted turn."""
    ours = []
    for event in events:
        if _closes_call(event):
            text = _text_block(event)
            text["text"] = _OUR_TEXTS[event["data"]["error"]["code"]]
        ours.append(event)
    return ours


def their_texts(events: Iterable[Event]) -> dict[str, str]:
    """The original's words and ours for the same thing, as far as ``events`` of the original hold them."""
    return {
        _text_block(event)["text"]: _OUR_TEXTS[event["data"]["error"]["code"]]
        for event in events
        if _closes_call(event)
    }


def _closes_call(event: Event) -> bool:
    return event["type"] == "tool/result" and str(event["data"]["message"]["id"]).startswith(_CLOSER)


def _text_block(event: Event) -> dict[str, Any]:
    message = event["data"]["message"]
    content = message["content"] if message["role"] == "tool" else message["content"][0]["content"]
    block: dict[str, Any] = content[0]
    return block


def header(generation: int = 0, **fields: Any) -> LogHeader:
    """A header of this generation, of session ``s`` in ``/srv/proj`` unless said otherwise."""
    given: dict[str, Any] = {"id": "s", "created_at": 1_796_000_000_000, "cwd": "/srv/proj", "delegation_depth": 0}
    if generation >= 2:
        given["is_seeded"] = False
    return LogHeader(version=generation, **{**given, **fields})


def numbered(*events: Event) -> list[Event]:
    """The events with numbers from 0 on, each a millisecond after the one before, in writing order of keys."""
    return [
        {"type": event["type"], "seq": seq, "time": 1_796_000_000_001 + seq, "data": event.get("data", {}), **event}
        for seq, event in enumerate(events)
    ]


def user(text: str, *, kind: str = "user", **more: Any) -> Event:
    """A message that is appended to the surface."""
    content = [{"type": "text", "text": text}]
    data = {"content": content, "source": {"kind": kind, **more}, "role": "user", "id": f"m-{text}"}
    return {"type": "user/message", "data": data, "surfaceOp": "append"}


def answer(text: str, *calls: str, turn: int = 1, step: int = 1, **more: Any) -> Event:
    """A model's answer that asks for these tool calls."""
    content: list[Event] = [{"type": "text", "text": text}]
    content += [{"type": "tool-call", "id": call, "name": "bash", "arguments": "{}"} for call in calls]
    source = {"kind": "model", "provider": "p", "model": "m"}
    message = {"role": "assistant", "content": content, "source": source, "id": f"a-{text}"}
    return {
        "type": "assistant/message",
        "data": {"turn": turn, "step": step, "message": message, **more},
        "surfaceOp": "append",
    }


def result(call: str, text: str, *, generation: int = 0, turn: int = 1, step: int = 1, failed: bool = False) -> Event:
    """What a tool answered."""
    content: list[Event] = [{"type": "text", "text": text}]
    message: Event = {"id": f"r-{call}", "role": "tool", "toolCallId": call, "isError": failed}
    if generation < 4:
        content = [{"type": "tool-result", "toolCallId": call, "content": content, "isError": failed}]
        message = {"id": f"r-{call}", "role": "user"}
    message |= {"source": {"kind": "tool", "callId": call}, "content": content}
    return {"type": "tool/result", "data": {"turn": turn, "step": step, "message": message}, "surfaceOp": "append"}


def mark(kind: str, **data: Any) -> Event:
    """An event that is not on the surface."""
    return {"type": kind, "data": data}


def turn(number: int = 1, *inner: Event) -> list[Event]:
    """A whole turn of one step."""
    start, end = mark("step/start", turn=number, step=1), mark("step/end", turn=number, step=1)
    completed = mark("turn/end", turn=number, reason={"kind": "completed"})
    return [mark("turn/start", turn=number), start, *inner, end, completed]


def text_chunks(*pieces: str, first_seq: int = 0) -> list[Event]:
    """Pieces of one streamed text, as generation 0 keeps them."""
    return [
        {
            "type": "assistant/chunk",
            "seq": first_seq + place,
            "time": 1_796_000_000_001 + first_seq + place,
            "data": {"turn": 1, "step": 1, "chunk": {"type": "text-delta", "index": 0, "text": piece}},
        }
        for place, piece in enumerate(pieces)
    ]
