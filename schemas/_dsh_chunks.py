"""Packed chunk rows: many small pieces of a model's answer as one line (DSH specification, section 5).

Packing is about storage only. A row and the events it stands for say the same, and reading never asks how it was
written.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, Final

from schemas._dsh_json import MAX_SAFE, is_safe

__all__ = ["ROW_TYPES", "pack", "unpack"]

Event = dict[str, Any]

ROW_TYPES: Final = {
    "text-chunks": ("text-delta", "texts", "text"),
    "reasoning-chunks": ("reasoning-delta", "texts", "text"),
    "tool-call-chunks": ("tool-call-delta", "args", "argumentsDelta"),
}
"""For each type of row, the type of its chunks, the key of the row's pieces and the key of a chunk's piece."""

_ROW_OF_CHUNK = {chunk: (row, pieces, piece) for row, (chunk, pieces, piece) in ROW_TYPES.items()}
_LEAST_PACKED = 3
_EVENT_KEYS = {"type", "seq", "time", "data"}
_CHUNK_DATA_KEYS = {"turn", "step", "chunk"}


def unpack(row: Event) -> list[Event] | None:
    """The events that a row stands for; None for a row that keeps not all of its rules."""
    chunk_type, pieces_key, piece_key = ROW_TYPES[row["type"]]
    data = row.get("data")
    if len(row) != 4 or not isinstance(data, dict) or "data" not in row:
        return None
    is_call = chunk_type == "tool-call-delta"
    pieces, steps = data.get(pieces_key), data.get("dt")
    named = is_call and "name" in data
    if len(data) != 5 + is_call + named or not isinstance(pieces, list) or not isinstance(steps, list):
        return None
    if not pieces or len(steps) != len(pieces) - 1 or not all(type(piece) is str for piece in pieces):
        return None
    turn, step, index = data.get("turn"), data.get("step"), data.get("index")
    if not (_is_number(turn) and _is_number(step) and _is_number(index)):
        return None
    if is_call and not (isinstance(data.get("id"), str) and (not named or isinstance(data["name"], str))):
        return None
    first, time = row.get("seq0"), row.get("time0")
    if not is_safe(first) or not is_safe(time, lowest=-MAX_SAFE) or first + len(pieces) - 1 > MAX_SAFE:
        return None
    if not all(type(each) is int for each in steps) and not all(is_safe(each, lowest=-MAX_SAFE) for each in steps):
        return None
    times = list(accumulate(steps, initial=time))
    if max(times) > MAX_SAFE or min(times) < -MAX_SAFE or max(map(abs, steps), default=0) > MAX_SAFE:
        return None
    common = {"type": chunk_type, "index": index}
    if is_call:
        common["id"] = data["id"]
        if named:
            common["name"] = data["name"]
    return [
        {
            "type": "assistant/chunk",
            "seq": seq,
            "time": time,
            "data": {"turn": turn, "step": step, "chunk": {**common, piece_key: piece}},
        }
        for seq, (time, piece) in enumerate(zip(times, pieces, strict=True), int(first))
    ]


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def pack(batch: Sequence[Event], *, longest: int | None = None) -> list[Event]:
    """One batch's events as its lines: every run of at least three like chunks as one row, of at most ``longest``."""
    lines: list[Event] = []
    position = 0
    while position < len(batch):
        like = _likeness(batch[position])
        end = position + 1
        if like is not None:
            last = len(batch) if longest is None else min(len(batch), position + longest)
            while end < last and _follows(batch[end - 1], batch[end]) and _likeness(batch[end]) == like:
                end += 1
        if end - position >= _LEAST_PACKED:
            lines.append(_row(batch[position:end]))
        else:
            lines.extend(batch[position:end])
        position = end
    return lines


def _likeness(event: Event) -> tuple[Any, ...] | None:
    """What chunks of one row have in common; None for an event that no row can hold."""
    if event["type"] != "assistant/chunk" or event.keys() != _EVENT_KEYS:
        return None
    data = event["data"]
    if not isinstance(data, dict) or data.keys() != _CHUNK_DATA_KEYS or not isinstance(data["chunk"], dict):
        return None
    chunk = data["chunk"]
    kind = _ROW_OF_CHUNK.get(chunk.get("type", ""))
    if kind is None:
        return None
    piece = kind[2]
    texts = {piece}
    if piece == "argumentsDelta":
        texts |= {"id", "name"} if "name" in chunk else {"id"}
    if chunk.keys() != {"type", "index"} | texts or not all(isinstance(chunk[key], str) for key in texts):
        return None
    if not (is_safe(data["turn"]) and is_safe(data["step"]) and is_safe(chunk["index"])):
        return None
    return chunk["type"], data["turn"], data["step"], chunk["index"], chunk.get("id"), chunk.get("name")


def _follows(earlier: Event, later: Event) -> bool:
    return bool(later["seq"] == earlier["seq"] + 1) and is_safe(later["time"] - earlier["time"], lowest=-MAX_SAFE)


def _row(events: Sequence[Event]) -> Event:
    first = events[0]
    data = first["data"]
    row_type, pieces_key, piece_key = _ROW_OF_CHUNK[data["chunk"]["type"]]
    packed = {"turn": data["turn"], "step": data["step"], "index": data["chunk"]["index"]}
    packed["dt"] = [later["time"] - earlier["time"] for earlier, later in pairwise(events)]
    for key in ("id", "name"):
        if key in data["chunk"]:
            packed[key] = data["chunk"][key]
    packed[pieces_key] = [event["data"]["chunk"][piece_key] for event in events]
    return {"type": row_type, "seq0": first["seq"], "time0": first["time"], "data": packed}
