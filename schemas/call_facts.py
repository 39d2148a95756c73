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

_MOST_BRACKETS = 500


class CallFacts(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One record's call. `ord`, `id`, `call`, `run` and `time` are the record's own, `finished` is its flag; `usage` is
    the object as it stands in the source; `session`, `agent` and `side_chain` are what the row says of itself, wherever
    its file lies; `forked_from` names, as the zone does, the session that its session was forked from, or that
    delegated to it. `dialect` says whose words these are, the landed file's unless a source knows better; `row` where
    in the landed file the record stands, from 1. `cwd` is where the program worked, or what that folder was made from
    where it was made for one run.
    """

    dialect: str = ""
    ord: int
    row: int = 0
    id: str = ""
    call: str = ""
    run: str = ""
    time: str = ""
    model: str = ""
    request_id: str = ""
    usage: Raw
    finished: bool = False
    side_chain: bool | None = None
    session: str = ""
    agent: str = ""
    forked_from: str = ""
    cwd: str = ""
    client_version: str = ""


def write_call_facts(facts: Iterable[CallFacts]) -> bytes:
    """One line each; nothing for none."""
    lines = [msgspec.json.encode(msgspec.structs.replace(each, usage=Raw(_kept(bytes(each.usage))))) for each in facts]
    return b"".join(line + b"\n" for line in lines)


def _kept(usage: bytes) -> bytes:
    """A usage object on one line. Of one that is nested so deep that not every reader takes it, which no provider's is,
    only the members without depth."""
    if len(usage) > _MOST_BRACKETS < usage.count(b"[") + usage.count(b"{"):
        flat = [(key, value) for key, value in lenient_json.members(usage) if not value.startswith((b"[", b"{"))]
        usage = b"{" + b",".join(msgspec.json.encode(key) + b":" + value for key, value in flat) + b"}"
    return lenient_json.compact(usage)


def read_call_facts(data: bytes, *, name: str) -> list[CallFacts]:
    """The lines of `data`; raises `SessionDataRejected` (rule ``undecodable``) for one that is none of these."""
    found = []
    for row, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            found.append(msgspec.json.decode(line, type=CallFacts))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SessionDataRejected(name, row, "undecodable", str(error)) from None
    return found
