"""What a line that tells a response's usage says about it that its record has no room for."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from schemas.call_facts import CallFacts
from schemas.session_data import Record
from tasks.land.codex.rows import Members, Row, text, within
from tasks.land.codex.usage import Tokens

__all__ = ["call_facts"]


def call_facts(row: Row, record: Record, used: Tokens, meta: Members) -> CallFacts:
    """The facts beside `record`. A client's record of one response has its usage as it stands; what a counter's line
    stands for is told in the counter's own words. `meta` is the thread's description of itself."""
    stated = within(row.payload, "usage") or {
        "input_tokens": used.input,
        "cached_input_tokens": used.cached,
        "cache_write_input_tokens": used.cache_write,
        "output_tokens": used.output,
        "reasoning_output_tokens": used.reasoning,
    }
    return CallFacts(
        ord=record.ord,
        id=record.id,
        call=record.call,
        time=record.time,
        model=record.model,
        request_id=text(row.payload, "response_id"),
        usage=Raw(msgspec.json.encode(stated)),
        session=text(meta, "session_id"),
        agent=text(meta, "id") if text(meta, "parent_thread_id") else "",
        forked_from="" if text(meta, "parent_thread_id") else text(meta, "forked_from_id"),
        cwd=text(meta, "cwd"),
        client_version=text(meta, "cli_version"),
    )
