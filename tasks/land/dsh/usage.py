"""What a model call used (DSH version 4, section 6): four disjoint counts, and the whole object beside the record."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from schemas._dsh_json import is_safe
from schemas._dsh_messages import field
from schemas.call_facts import CallFacts
from schemas.dsh import NATIVE_PRESET, LogHeader
from schemas.session_data import Record, Usage
from tasks.land.dsh.kinds import name_of
from tasks.land.dsh.parts import encoded, plain

__all__ = ["call_facts", "usage_of"]

NATIVE_DIALECT = "native/1"
"""Whose words the calls of our own agents are, though they stand in a log of DeepSeek Harness' format."""


def usage_of(tokens: Any) -> Usage | None:
    """The counts of a usage object; None without one, which is not zero. What counts nothing is left out."""
    if not isinstance(tokens, dict):
        return None
    return Usage(
        in_=_count(tokens, "inputTokens"),
        out=_count(tokens, "outputTokens"),
        cache_read=_count(tokens, "cacheReadTokens"),
        cache_write=_count(tokens, "cacheWriteTokens"),
    )


def call_facts(record: Record, tokens: object, header: LogHeader) -> CallFacts | None:
    """The facts beside `record`; None when its event reports no usage."""
    if record.usage is None:
        return None
    session = plain(header.id)
    return CallFacts(
        dialect=NATIVE_DIALECT if header.agent_preset == NATIVE_PRESET else "",
        ord=record.ord,
        id=record.id,
        call=record.call,
        time=record.time,
        model=record.model,
        usage=Raw(encoded(tokens)),
        session=session,
        agent=session if header.origin else "",
        forked_from=name_of(header.parent_session) if header.parent_session else "",
        cwd=plain(header.cwd or ""),
    )


def _count(tokens: Any, key: str) -> int:
    value = field(tokens, key)
    return int(value) if is_safe(value) else 0
