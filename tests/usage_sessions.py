"""Calls as sources report them, landed by hand beside landed files, for tests of usage."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

import zstandard
from msgspec import Raw

from schemas.call_facts import CallFacts, write_call_facts
from schemas.session_data import Record, SessionDataHeader, Usage, write_session_data
from storage.landings import Claim, Promise, calls_key
from storage.objects import ObjectStore
from storage.usage_dataset import read_calls
from storage.zone import Zone
from tasks.usage import RateCard, UsageOptions, UsageOutcome, count_usage, shipped_price_table

__all__ = ["CARD", "claude", "codex", "count", "dsh", "land", "land_bare", "rows", "sd_name"]

CARD = RateCard(shipped_price_table())
AT = "2026-03-01T12:00:00Z"


def claude(
    call: str, output: int, /, time: str = AT, model: str = "claude-sonnet-4-5", **fields: Any
) -> dict[str, Any]:
    """A row of Claude Code with usage; `usage` holds more of its members."""
    usage = {"input_tokens": 10, "output_tokens": output, **fields.pop("usage", {})}
    return {"call": call, "time": time, "model": model, "usage": usage, **fields}


def codex(call: str, /, input: int, cached: int, output: int, reasoning: int = 0, **fields: Any) -> dict[str, Any]:
    """A response of Codex; its input includes what was cached, its output the reasoning."""
    usage = {"input_tokens": input, "cached_input_tokens": cached, "output_tokens": output}
    usage["reasoning_output_tokens"] = reasoning
    return {"call": call, "time": AT, "model": "gpt-5.2-codex", "usage": usage, **fields}


def dsh(call: str, /, input: int, output: int, read: int = 0, write: int = 0, **fields: Any) -> dict[str, Any]:
    """A message of a DeepSeek Harness log; its input is what no cache had."""
    usage = {"inputTokens": input, "outputTokens": output, "cacheReadTokens": read, "cacheWriteTokens": write}
    usage |= fields.pop("usage", {})
    return {"call": call, "time": AT, "model": "deepseek-v4-flash", "usage": usage, **fields}


def land(
    store: ObjectStore,
    session: str,
    calls: Iterable[Mapping[str, Any]],
    *,
    seq: int = 1,
    stream: str = "main",
    dialect: str = "claude-code/1",
) -> None:
    """A landed file and its companion, as landing leaves them."""
    facts = [
        CallFacts(
            dialect=dialect,
            ord=row,
            row=row,
            **{**call, "usage": Raw(json.dumps(call["usage"]).encode())},
        )
        for row, call in enumerate(calls, 1)
    ]
    records = [
        Record(
            ord=each.ord,
            off=2 * (each.ord - 1),
            sha="0" * 12,
            bytes=1,
            call=each.call,
            time=each.time,
            model=each.model,
            usage=_usage(json.loads(bytes(each.usage))),
        )
        for each in facts
    ]
    _write(store, session, seq, stream, dialect, records)
    told = write_call_facts(facts)
    if told:
        store.create(calls_key(session, seq), zstandard.compress(told))
    key, target = sd_name(session, seq, stream), f"{session}/streams/{stream}/transcript"
    data = store.read(key)
    digest = sha256(data).hexdigest()
    promise = Promise(
        session=session,
        seq=seq,
        key=key,
        digest=digest,
        size=len(data),
        calls_size=len(told),
        target=target,
        cursor={},
    )
    store.create(f"_landing/{session}/{seq:06d}.claim", Claim(promise, None).to_bytes())


def land_bare(
    store: ObjectStore,
    session: str,
    calls: Iterable[tuple[str, str, Usage]],
    *,
    seq: int = 1,
    stream: str = "main",
    dialect: str = "claude-code/1",
) -> None:
    """A landed file that somebody else landed: nothing stands beside it. Calls are (id, time, usage)."""
    records = [
        Record(ord=row, off=0, sha="0" * 12, bytes=1, call=call, time=time, usage=usage, model="claude-sonnet-4-5")
        for row, (call, time, usage) in enumerate(calls, 1)
    ]
    _write(store, session, seq, stream, dialect, records)


def sd_name(session: str, seq: int, stream: str = "main") -> str:
    """The key of a landed file."""
    return f"{session}/streams/{stream}/transcript-20260301T120000.000000000Z-{seq:06d}.sd"


def count(zone: ObjectStore, usage: ObjectStore, card: RateCard = CARD, now: int = 0, **options: Any) -> UsageOutcome:
    """One run."""
    return count_usage(Zone(zone), usage, card, UsageOptions(now=now, **options))


def rows(usage: ObjectStore, *columns: str) -> list[Any]:
    """Every row of the data set by key: the named columns as tuples (one as it is), or whole rows as dictionaries."""
    found = sorted(read_calls(usage).to_pylist(), key=lambda row: str(row["call_key"]))
    if not columns:
        return found
    return [row[columns[0]] if len(columns) == 1 else tuple(row[name] for name in columns) for row in found]


def _usage(said: Mapping[str, Any]) -> Usage:
    """What Session Data has of numbers that Claude Code or DeepSeek Harness reported."""

    def of(*names: str) -> int:
        found = [said[name] for name in names if type(said.get(name)) is int]
        return max(0, found[0]) if found else 0

    return Usage(
        in_=of("input_tokens", "inputTokens"),
        out=of("output_tokens", "outputTokens"),
        cache_read=of("cache_read_input_tokens", "cacheReadTokens"),
        cache_write=of("cache_creation_input_tokens", "cacheWriteTokens"),
    )


def _write(store: ObjectStore, session: str, seq: int, stream: str, dialect: str, records: list[Record]) -> None:
    header = SessionDataHeader(
        h=1,
        schema="sd/1",
        seq=seq,
        at=AT,
        kind="transcript",
        adapter="test/1",
        dialect=dialect,
        src="x.jsonl",
        session=session,
        stream=stream,
    )
    store.create(sd_name(session, seq, stream), write_session_data(header, records))
