"""From a log's text to its events: lines, dense numbers, and a tail that was cut short (DSH specification, section 7).

Only a line that ends counts. The first bad one ends the collection. Was a turn finished after it, the log is damaged
and refused, for then more than the tail is lost; else the tail was torn and what stands before it is the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from schemas._dsh_chunks import ROW_TYPES, unpack
from schemas._dsh_json import NestedTooDeep, UndecodableJSON, read_value
from schemas.errors import LogRejected

__all__ = ["Line", "Scan", "scan"]

Event = dict[str, Any]


class Line(NamedTuple):
    """Where a line lies in the (decompressed) text, its line feed included, and which events it holds."""

    start: int
    end: int
    first_seq: int
    events: int


@dataclass
class Scan:
    """What a log's text holds. ``end`` is where its last good line ends; ``not_finite`` are the numbers of the events
    that hold -0 or an infinite number; ``fault`` says what is wrong with the line at ``end``, if one stands there.
    """

    events: list[Event] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    not_finite: set[int] = field(default_factory=set)
    end: int = 0
    fault: str | None = None


def scan(text: bytes, start: int, *, packed: bool, name: str) -> Scan:
    """The events in ``text`` from ``start`` on, where the first line after the header begins; ``packed`` says whether
    chunk rows may stand among them. Raises LogRejected (``line``, ``too_deep``).
    """
    found = Scan(end=start)
    events = found.events
    position = start
    while (end := text.find(b"\n", position) + 1) > 0:
        expected = len(events)
        held: list[Event] | str
        finite = True
        try:
            value, finite = read_value(text[position : end - 1])
        except NestedTooDeep as error:
            raise LogRejected(name, len(found.lines) + 2, "too_deep", str(error)) from None
        except UndecodableJSON as error:
            value = None
            held = f"not JSON: {error}"
        else:
            held = _events_in(value, expected, packed)
        if isinstance(held, str):
            found.fault = held
            if _ends_turn(value) or _turn_ends_in(text, end):
                detail = f"{held}, and a turn ends after it"
                raise LogRejected(name, len(found.lines) + 2, "line", detail)
            break
        if not finite:
            found.not_finite.update(range(expected, expected + len(held)))
        events.extend(held)
        found.lines.append(Line(position, end, expected, len(held)))
        position = found.end = end
    return found


def _events_in(value: Any, expected: int, packed: bool) -> list[Event] | str:
    """The events of one line, the first numbered ``expected``; else what is wrong with the line."""
    if not isinstance(value, dict):
        return "no object"
    if packed and isinstance(kind := value.get("type"), str) and kind in ROW_TYPES:
        events = unpack(value)
        if events is None:
            return f"a malformed row of {kind}"
        seq = value["seq0"]
    else:
        events, seq = [value], value.get("seq")
    if type(seq) not in (int, float) or seq != expected:
        return f"the event's number is {seq!r:.40}, expected was {expected}"
    if type(seq) is float:
        events[0]["seq"] = expected
    return events


def _ends_turn(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") == "turn/end"


def _turn_ends_in(text: bytes, position: int) -> bool:
    """Whether a line that decodes, from ``position`` on, ends a turn."""
    while (end := text.find(b"\n", position) + 1) > 0:
        line = text[position : end - 1]
        position = end
        if b"turn" in line or b"\\u" in line:
            try:
                value, _ = read_value(line)
            except UndecodableJSON:
                continue
            if _ends_turn(value):
                return True
    return False
