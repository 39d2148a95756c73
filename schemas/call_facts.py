"""What a source says about a provider's call beyond what Session Data has room for: one JSON line a record with usage.

Usage tables need it: which request it was, and the whole usage object, with its cache tiers, service tier and nested
parts, as the provider reported it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Raw

from schemas import lenient_json
from schemas.errors import SessionDataRejected

__all__ = ["CallFacts", "read_call_facts", "write_call_facts"]


class CallFacts(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One record's call. `ord`, `id`, `call` and `time` are the record's own; `usage` is the object as it stands in the
    source; `session`, `agent` and `side_chain` are what the row says of itself, wherever its file lies.
    """

    ord: int
    id: str = ""
    call: str = ""
    time: str = ""
    model: str = ""
    request_id: str = ""
    usage: Raw
    side_chain: bool | None = None
    session: str = ""
    agent: str = ""
    cwd: str = ""
    client_version: str = ""


def write_call_facts(facts: Iterable[CallFacts]) -> bytes:
    """One line each; nothing for none."""
    lines = [
        msgspec.json.encode(msgspec.structs.replace(each, usage=Raw(lenient_json.compact(bytes(each.usage)))))
        for each in facts
    ]
    return b"".join(line + b"\n" for line in lines)


def read_call_facts(data: bytes, *, name: str) -> list[CallFacts]:
    """The lines of `data`; raises `SessionDataRejected` (rule ``undecodable``) for one that is none of these."""
    found = []
    for row, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            found.append(msgspec.json.decode(line, type=CallFacts))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise SessionDataRejected(name, row, "undecodable", str(error)) from None
    return found
