"""What a row with usage says about its call that its record has no room for."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Raw

from schemas.call_facts import CallFacts
from schemas.lenient_json import decode_string, members
from schemas.session_data import Record

__all__ = ["call_facts"]

_FLAGS = {b"true": True, b"false": False}


def call_facts(body: bytes, record: Record) -> CallFacts | None:
    """The facts beside `record`, made from `body`; None when the row reports no usage. A member of another type than
    is expected here is left out, but for usage, which is kept as it stands."""
    if record.usage is None:
        return None
    listed = list(members(body))
    row = dict(listed)
    # Repeated messages are merged, so the last usage object counts, in whichever of them it is.
    messages = [value for key, value in listed if key == "message" and value.startswith(b"{")]
    usage = [value for message in messages for key, value in members(message) if key == "usage"][-1]
    return CallFacts(
        ord=record.ord,
        id=record.id,
        call=record.call,
        time=record.time,
        model=record.model,
        request_id=_text(row, "requestid"),
        usage=Raw(usage),
        side_chain=_FLAGS.get(row.get("issidechain", b"")),
        session=_text(row, "sessionid"),
        agent=_text(row, "agentid"),
        cwd=_text(row, "cwd"),
        client_version=_text(row, "version"),
    )


def _text(row: Mapping[str, bytes], key: str) -> str:
    value = row.get(key, b"")
    return decode_string(value) if value.startswith(b'"') else ""
