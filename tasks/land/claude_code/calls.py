"""What a row with usage says about its call that its record has no room for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Raw

from schemas import lenient_json
from schemas.call_facts import CallFacts
from schemas.lenient_json import decode_string, split_object
from schemas.session_data import Record

__all__ = ["Members", "call_facts"]

Members: TypeAlias = Mapping[str, Raw]

_FLAGS = {b"true": True, b"false": False}
_SPELLING = {key.lower(): key for key in ("requestId", "isSidechain", "sessionId", "agentId")}


def call_facts(body: bytes, record: Record, members: Members | None) -> CallFacts | None:
    """The facts beside `record`, made from `body`; None when the row reports no usage. A member of another type than
    is expected here is left out, but for usage, which is kept as it stands. `members` are the row's where each stands
    in it once and under the name of its field."""
    if record.usage is None:
        return None
    row, usage = _folded(body) if members is None else _plain(members)
    return CallFacts(
        ord=record.ord,
        id=record.id,
        call=record.call,
        time=record.time,
        model=record.model,
        request_id=_text(row, "requestId"),
        usage=usage,
        side_chain=_FLAGS.get(bytes(row.get("isSidechain", b""))),
        session=_text(row, "sessionId"),
        agent=_text(row, "agentId"),
        cwd=_text(row, "cwd"),
        client_version=_text(row, "version"),
    )


def _plain(members: Members) -> tuple[Mapping[str, bytes | Raw], Raw]:
    message = split_object(members["message"])
    assert message is not None
    return members, message["usage"]


def _folded(body: bytes) -> tuple[Mapping[str, bytes | Raw], Raw]:
    """The row's members, in whatever case they are written, and its usage."""
    listed = list(lenient_json.members(body))
    row = {_SPELLING.get(key, key): value for key, value in listed}
    # Repeated messages are merged, so the last usage object counts, in whichever of them it is.
    messages = [value for key, value in listed if key == "message" and value.startswith(b"{")]
    usage = [value for message in messages for key, value in lenient_json.members(message) if key == "usage"][-1]
    return row, Raw(usage)


def _text(row: Mapping[str, bytes | Raw], key: str) -> str:
    value = bytes(row.get(key, b""))
    return decode_string(value) if value.startswith(b'"') else ""
