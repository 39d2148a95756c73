"""How a turn that a crash left open is closed (DSH specification, section 8; version 4: section 7).

Each call without a result gets one that says what is known of it, then the open step ends, then the turn. All of it
bears the time of the last real event, so how long an interrupted turn took is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from schemas._dsh_messages import blocks_of, field, message_of

__all__ = ["NOT_STARTED_TEXT", "OUTCOME_UNKNOWN_TEXT", "closing_events"]

Event = dict[str, Any]

OUTCOME_UNKNOWN_TEXT: Final = (
    "This call had begun when the session stopped, and no result of it was kept, so nobody knows whether it took "
    "effect. Make it again only if it just reads, or if doing it twice changes nothing; otherwise first look at what "
    "it may have left behind, or ask the user."
)
NOT_STARTED_TEXT: Final = (
    "The session stopped before this call was begun, so it did nothing. Make it again if it is still wanted."
)


class _Pending(NamedTuple):
    """A call that an answer asked for: the step of the answer, and the number of its tool/call once there is one."""

    step: Event
    started: int | None


def closing_events(events: Sequence[Event], generation: int) -> list[Event]:
    """The events that close the turn which ``events`` leave open; none when no turn is open."""
    turn: Event | None = None
    step: Event | None = None
    pending: dict[str, _Pending] = {}
    for event in events:
        kind, data = event["type"], event["data"]
        if kind == "assistant/chunk":
            continue
        if kind == "turn/start":
            turn, step = _open(data, "turn"), None
            pending = {}
        elif kind == "turn/end":
            turn = step = None
            pending = {}
        elif kind == "step/start":
            step = _open(data, "step")
        elif kind == "step/end":
            step = None
            pending = {}
        elif kind == "assistant/message":
            for block in blocks_of(message_of(event)):
                if block["type"] == "tool-call" and isinstance(block.get("id"), str):
                    pending[block["id"]] = _Pending(_part(data, "step"), None)
        elif kind == "tool/call":
            call = field(data, "callId")
            if isinstance(call, str) and call in pending:
                pending[call] = pending[call]._replace(started=event["seq"])
        elif kind == "tool/result":
            pending.pop(message_of(event)["source"]["callId"], None)
    if turn is None:
        return []
    time, seq = events[-1]["time"], len(events)
    closers: list[Event] = []
    for call, waiting in pending.items():
        closers.append(_result(call, waiting, turn, seq + len(closers), time, generation))
    if step is not None:
        data = {**turn, **step}
        closers.append({"type": "step/end", "seq": seq + len(closers), "time": time, "data": data})
    data = {**turn, "reason": {"kind": "interrupted"}}
    closers.append({"type": "turn/end", "seq": seq + len(closers), "time": time, "data": data})
    return closers


def _result(call: str, waiting: _Pending, turn: Event, seq: int, time: Any, generation: int) -> Event:
    started = waiting.started is not None
    text = OUTCOME_UNKNOWN_TEXT if started else NOT_STARTED_TEXT
    content: list[Any] = [{"type": "text", "text": text}]
    message: Event = {"id": f"interrupted-tool-result-{call}-{seq}"}
    source = {"kind": "tool", "callId": call}
    if generation >= 4:
        message |= {"role": "tool", "toolCallId": call, "isError": True, "source": source, "content": content}
    else:
        block = {"type": "tool-result", "toolCallId": call, "isError": True, "content": content}
        message |= {"role": "user", "source": source, "content": [block]}
    name, code = (
        ("ToolOutcomeUnknownError", "TOOL_OUTCOME_UNKNOWN") if started else ("ToolNotStartedError", "TOOL_NOT_STARTED")
    )
    data = {**turn, **waiting.step, "message": message, "error": {"name": name, "code": code}}
    result: Event = {"type": "tool/result", "seq": seq, "time": time, "data": data, "surfaceOp": "append"}
    if started:
        result["sourceEventSeqs"] = [waiting.started]
    return result


def _open(data: Any, key: str) -> Event | None:
    """What a start opens: nothing, when it says null of what it starts."""
    part = _part(data, key)
    return None if None in part.values() else part


def _part(data: Any, key: str) -> Event:
    """The one member of ``data``, or nothing where it has no such: what is not there is not made up."""
    return {key: data[key]} if isinstance(data, dict) and key in data else {}
