"""A stored session as two documents of JSON lines, the same whichever way it was stored (dialect notes, "Documents").

Keys are sorted and numbers are those that JavaScript reads, so that copies of one session are equal to the byte. Each
line of messages names the digest of the line before it: a message that was changed afterwards changes all that follow,
and a growing file's tail tells.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from pydantic import ValidationError

from schemas.relavium_session import SessionMessage, TextPart

__all__ = [
    "BOUNDARY",
    "MESSAGE",
    "ROW",
    "SESSION",
    "Refused",
    "digest_of",
    "message_lines",
    "record_line",
    "to_json",
]

SESSION: Final = "relavium_session/1"
MESSAGE: Final = "relavium_message/1"
BOUNDARY: Final = "relavium_boundary/1"
ROW: Final = "relavium_row/1"

_LONE = re.compile("[\ud800-\udfff]")
_INFINITE: Final = 10**310
"""Read again, it is infinite, as it is to JavaScript; JSON has no word for that."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A stored row that breaks a rule of its store: the row as it is, the rule, and the column."""

    row: Mapping[str, Any]
    rule: str
    field: str


@dataclass(slots=True)
class _Turn:
    """The line of the person's message that is being answered; 0 for none."""

    line: int = 0


def record_line(record: Any, lines: Sequence[bytes], costs: Sequence[Mapping[str, Any]] = ()) -> bytes:
    """The session's document: its record, how many lines its messages take, the last one's digest, and what each model
    has cost where that is known."""
    last = digest_of(lines[-1]) if lines else ""
    value: dict[str, Any] = {"schema": SESSION, "lines": len(lines), "last": last}
    if isinstance(record, Refused):
        value |= _refused(record)
    else:
        value["record"] = record
    if costs:
        value["costs"] = [_row(cost) for cost in costs]
    return to_json(value)


def message_lines(messages: Iterable[Any]) -> list[bytes]:
    """The lines of a session's messages: JSON values, or `Refused` rows, in any order."""
    lines: list[bytes] = []
    turn = _Turn()
    for message in _in_sequence(messages):
        for value in _values(message, turn, len(lines) + 1):
            lines.append(to_json({"before": digest_of(lines[-1]) if lines else "", **value}))
    return lines


def digest_of(line: bytes) -> str:
    """What a line is called: the beginning of its SHA-256, as Session Data has it."""
    return sha256(line).hexdigest()[:12]


def to_json(value: Any) -> bytes:
    """A JSON value on one line, its keys sorted."""
    text = json.dumps(_finite(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return _LONE.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def _values(message: Any, turn: _Turn, number: int) -> list[dict[str, Any]]:
    """The lines of one message. A boundary with a summary is two: what was left behind, and what stands for it."""
    if isinstance(message, Refused):
        return [_refused(message)]
    values: list[dict[str, Any]] = []
    role = message.get("role") if isinstance(message, dict) else None
    if role == "user":
        turn.line = number
    elif role == "system" and (summary := _boundary(message)) is not None and _has_text(summary):
        boundary = {"droppedThroughSequence": message["compaction"]["droppedThroughSequence"], "message": message["id"]}
        values.append({"schema": BOUNDARY, "boundary": boundary, "timestamp": message["timestamp"]})
    of_turn = turn.line if role in ("user", "assistant", "tool") else 0
    values.append({"schema": MESSAGE, "message": message} | ({"turn": of_turn} if of_turn else {}))
    if role == "assistant" and _is_answer(message):
        turn.line = 0
    return values


def _boundary(value: dict[str, Any]) -> SessionMessage | None:
    """The message, if it is a sound one with a boundary."""
    if "compaction" not in value:
        return None
    try:
        return SessionMessage.model_validate(value)
    except ValidationError:
        return None


def _has_text(message: SessionMessage) -> bool:
    return any(isinstance(part, TextPart) and part.text for part in message.content)


def _is_answer(value: dict[str, Any]) -> bool:
    """Whether an assistant's message ends its turn (notes, section 2)."""
    content = value.get("content")
    parts = content if isinstance(content, list) else []
    types = [part.get("type") for part in parts if isinstance(part, dict)]
    return "text" in types and "tool_call" not in types


def _in_sequence(messages: Iterable[Any]) -> list[Any]:
    """The messages by sequence number; one without stays behind the one before it."""
    place = -math.inf
    placed: list[tuple[float, Any]] = []
    for message in messages:
        values = message.row if isinstance(message, Refused) else message
        key = "sequence_number" if isinstance(message, Refused) else "sequenceNumber"
        number = values.get(key) if isinstance(values, Mapping) else None
        if isinstance(number, int | float) and not isinstance(number, bool):
            place = number
        placed.append((place, message))
    return [message for _, message in sorted(placed, key=lambda each: each[0])]


def _refused(row: Refused) -> dict[str, Any]:
    return {"schema": ROW, "row": _row(row.row), "refused": {"rule": row.rule, "field": row.field}}


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A stored row as a JSON object."""
    return {key: {"hex": value.hex()} if isinstance(value, bytes) else value for key, value in row.items()}


def _finite(value: Any) -> Any:
    """The value with a number for what is infinite; itself when nothing is."""
    if isinstance(value, float):
        return value if math.isfinite(value) else int(math.copysign(1, value)) * _INFINITE
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
