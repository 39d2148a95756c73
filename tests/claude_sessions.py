"""Small Claude Code sessions, written row by row as its adapter lands them, for tests of export."""

from __future__ import annotations

import json
from typing import Any

from msgspec import Raw

from schemas.session_data import Part, Record, SessionDataHeader, write_session_data
from schemas.times import format_time
from storage.zone import Zone
from tasks.assemble import AssembleOptions, assemble_session
from tasks.export.conversation import Conversation, read_conversation

__all__ = ["END", "HOUR", "START", "assemble", "calls", "conversation", "land", "note", "person", "result", "says"]

START = 1_786_000_000_000_000_000
HOUR = 3_600_000_000_000
_SECOND = 1_000_000_000
END: dict[str, Any] = {"from_": "runtime", "parts": (Part(k="data", data=Raw(b'{"type":"result","is_error":false}')),)}
"""What a headless run says when it is over."""

Row = dict[str, Any]


def person(text: str, **fields: Any) -> Row:
    """A user's row of an old client: no prompt id, no origin."""
    return {"from_": "external", "parts": (_text(text),), **fields}


def says(text: str, call: str = "", **fields: Any) -> Row:
    """The assistant's text."""
    return {"from_": "agent", "call": call or f"m-{text}", "model": "claude-x-1", "parts": (_text(text),), **fields}


def calls(*tools: tuple[str, str], call: str = "", **fields: Any) -> Row:
    """Tool uses as (id, name), in one provider call."""
    parts = tuple(Part(k="call", id=id, name=name, data=Raw(b'{"secret":"argument"}'), bytes=21) for id, name in tools)
    return {"from_": "agent", "call": call or f"m-{tools[0][0]}", "model": "claude-x-1", "parts": parts, **fields}


def result(tool: str, text: str = "secret result", failed: bool | None = None, **fields: Any) -> Row:
    """A tool's result."""
    part = Part(k="result", of=tool, text=_json(text), bytes=len(text.encode()), failed=failed)
    return {"from_": "external", "parts": (part,), **fields}


def note(*flags: str, **fields: Any) -> Row:
    """Something the runtime wrote."""
    return {"from_": "runtime", "flags": flags, **fields}


def land(
    zone: Zone,
    rows: list[Row],
    *,
    seq: int = 1,
    session: str = "s1",
    stream: str = "main",
    at: int = START,
    kind: str = "transcript",
    dialect: str = "claude-code/1",
) -> None:
    """Land one file of rows, a second apart from `at`; a row may bring its own `time`."""
    header = SessionDataHeader(
        h=1, schema="sd/1", seq=seq, at=format_time(at), kind=kind, adapter="test/1", dialect=dialect,
        src=f"{stream}.jsonl", session=session, stream=stream,
    )  # fmt: skip
    records = [
        Record(
            **{
                "ord": place,
                "off": place,
                "sha": "0" * 12,
                "bytes": 1,
                "id": f"{stream}-{seq}-{place}",
                "time": format_time(at + place * _SECOND),
                **row,
            }
        )
        for place, row in enumerate(rows, 1)
    ]
    key = f"{session}/streams/{stream}/{kind}-20260901T000000.000000000Z-{seq:06d}.sd"
    zone.store.create(key, write_session_data(header, records))


def assemble(zone: Zone, session: str = "s1") -> None:
    """Bring the session's chain up to what has landed."""
    assemble_session(zone, session, AssembleOptions(now=START))


def conversation(zone: Zone, *rows: Row, **where: Any) -> Conversation:
    """The session `s1` with these rows landed and assembled."""
    land(zone, list(rows), **where)
    assemble(zone)
    found = read_conversation(zone, "s1")
    assert found is not None
    return found


def _text(text: str) -> Part:
    return Part(k="text", text=_json(text), bytes=len(text.encode()))


def _json(text: str) -> Raw:
    return Raw(json.dumps(text).encode())
