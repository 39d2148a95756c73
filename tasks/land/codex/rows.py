"""A rollout's line as the dialect reads it: what kind of line, and its payload.

Clients have written three shapes: an envelope with a number, an envelope without, and bare payloads. Members of other
types than expected count as absent; nothing is refused for what it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from schemas.lenient_json import UndecodableJSON, decode_value, is_deeper_than
from tasks.land.source import Line

__all__ = [
    "DEEPEST",
    "Members",
    "Row",
    "number",
    "objects",
    "read_line",
    "read_row",
    "strings",
    "text",
    "unmarked",
    "within",
]

Members: TypeAlias = dict[str, Any]

DEEPEST = 250
"""No client nests as deep; parts of a line are decoded and encoded again, which cannot be done at any depth."""

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Row:
    """`kind` is the line's type, `name` its payload's."""

    kind: str
    name: str
    payload: Members
    time: str
    ordinal: int | None

    @property
    def item(self) -> Members:
        """What an `item_completed` is about."""
        return within(self.payload, "item")


def unmarked(body: bytes, *, first: bool) -> bytes:
    """A line without the byte order mark that a file may begin with."""
    return body.removeprefix(_BOM) if first else body


def read_row(body: bytes, *, first: bool) -> Row | None:
    """The line's row; None when it is no JSON object."""
    try:
        value = decode_value(body)
    except UndecodableJSON:
        return None
    if not isinstance(value, dict):
        return None
    payload = value.get("payload")
    if isinstance(payload, dict):
        kind = text(value, "type")
    elif "record_type" in value:
        payload, kind = value, text(value, "record_type")
    else:
        payload, kind = value, "session_meta" if first and "id" in value else "response_item"
    ordinal = value.get("ordinal")
    return Row(
        kind=kind,
        name=text(payload, "type"),
        payload=payload,
        time=text(value, "timestamp"),
        ordinal=ordinal if type(ordinal) is int and ordinal >= 0 else None,
    )


def read_line(line: Line) -> Row | None:
    """The row of a line that is read as a row of its thread; None for one that lands as it is."""
    is_first = line.ord == 1
    body = unmarked(line.body, first=is_first)
    return None if is_deeper_than(DEEPEST, body) else read_row(body, first=is_first)


def text(members: Members, key: str) -> str:
    value = members.get(key)
    return value if isinstance(value, str) else ""


def number(members: Members, key: str) -> float:
    value = members.get(key)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0


def within(members: Members, key: str) -> Members:
    value = members.get(key)
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[Members]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def strings(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
