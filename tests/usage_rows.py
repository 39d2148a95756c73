"""Usage rows and data sets of them, made up and always the same, for tests of whoever reads them."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from typing import Any

import pyarrow as pa

from schemas.usage import CALL_FILE_SCHEMA, SCHEMA_VERSION
from schemas.usage_run import RunRow
from storage.objects import ObjectStore
from storage.usage_dataset import CallFile, Manifest, manifest_key, parquet_bytes

__all__ = ["Row", "call", "headless_run", "sample_calls", "write_calls"]

Row = dict[str, Any]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

# Micro-dollars for a thousand tokens: input, cache read, cache write, output.
_MODELS = {
    "claude-opus-4-5": ("anthropic", 5_000, 500, 6_250, 25_000),
    "claude-sonnet-4-5": ("anthropic", 3_000, 300, 3_750, 15_000),
    "claude-haiku-4-5": ("anthropic", 1_000, 100, 1_250, 5_000),
    "gpt-5.1-codex": ("openai", 1_250, 125, 0, 10_000),
    "deepseek-v4": ("deepseek", 280, 28, 0, 420),
}


def call(key: str = "call-1", **columns: Any) -> Row:
    """One row with every column: what is not given is plain. Without a time it says so and has no cost."""
    row: Row = {
        "source": "claude-code",
        "call_key": key,
        "request_id": None,
        "project": "/home/ada/kite",
        "session_id": "session-1",
        "stream_id": "main",
        "parent_session_id": None,
        "is_subagent": False,
        "call_time": NOON,
        "provider": "anthropic",
        "model": "claude-sonnet-4-5",
        "price_model": "claude-sonnet-4-5",
        "input_uncached": 100,
        "cache_read": 0,
        "cache_write_5m": 0,
        "cache_write_1h": 0,
        "cache_write_unknown": 0,
        "output": 10,
        "reasoning": None,
        "finished": True,
        "cost_microusd": 450,
        "cost_reported_microusd": None,
        "cost_status": "priced",
        "price_source": "genai-prices",
        "price_version": "genai-prices 0.2.3; overrides none",
        "evidence_seq": 1,
        "evidence_row": 1,
        "copies_seen": 1,
        "schema_version": SCHEMA_VERSION,
        **columns,
    }
    if row["cost_status"] in ("unknown_model", "no_time"):
        row |= {"cost_microusd": None, "price_source": None, "price_version": None, "price_model": None}
    kinds = ("input_uncached", "cache_read", "cache_write_5m", "cache_write_1h", "cache_write_unknown")
    row.setdefault("input_total", sum(row[kind] for kind in kinds))
    row.setdefault("conversation_id", row["session_id"])
    row.setdefault("evidence_key", f"{row['session_id']}/streams/main/000001.sd")
    row.setdefault("date", row["call_time"].date() if row["call_time"] else NOON.date())
    return row


def headless_run(run_id: str = "run-1", **fields: Any) -> RunRow:
    """The row of a run that completed; what is not given is plain."""
    plain: Row = {
        "agent": "nightly",
        "runner": "claude-code",
        "model": "claude-sonnet-4-5",
        "started": NOON,
        "ended": NOON + timedelta(minutes=5),
        "exit_status": "completed",
        "stop_reason": "completed",
        "turns": 2,
        "tool_calls": 1,
        "denied_tools": 0,
        "input_uncached": 100,
        "cache_read": 0,
        "cache_write": 0,
        "output": 10,
        "input_total": 100,
        "cost_microusd": 450,
    }
    return RunRow(run_id=run_id, **plain | fields)


def write_calls(
    store: ObjectStore, rows: Iterable[Row], generation: int = 1, schema: pa.Schema = CALL_FILE_SCHEMA
) -> Manifest:
    """A data set of these rows in `store`, as its writer lays it out, unless `schema` is another."""
    parts: dict[tuple[date, str], list[Row]] = {}
    for row in rows:
        parts.setdefault((row["date"], row["source"]), []).append(row)
    files = []
    for (day, source), part in sorted(parts.items()):
        data = parquet_bytes(pa.Table.from_pylist(sorted(part, key=lambda row: row["call_key"]), schema))
        digest = sha256(data).hexdigest()
        key = f"date={day}/source={source}/part-{digest[:16]}.parquet"
        store.create(key, data)
        files.append(CallFile(key=key, rows=len(part), size=len(data), digest=digest, date=day, source=source))
    manifest = Manifest(
        schema_version=SCHEMA_VERSION,
        generation=generation,
        rows=sum(file.rows for file in files),
        price_version="genai-prices 0.2.3; overrides none",
        files=tuple(files),
    )
    store.create(manifest_key(generation), manifest.to_bytes())
    return manifest


def sample_calls(days: int = 30, sessions_a_day: int = 6, seed: int = 7) -> list[Row]:
    """Some weeks of invented work: weekends are quiet, some sessions delegate, a few calls have no price."""
    dice = random.Random(seed)
    projects = ["/srv/atlas/api", "/srv/atlas/web", "/home/ada/kite", "/home/lin/thesis", None]
    rows: list[Row] = []
    for day in range(days):
        start = NOON + timedelta(days=day)
        sessions = 1 if start.weekday() >= 5 else dice.randint(sessions_a_day // 2, sessions_a_day)
        for number in range(sessions):
            session = f"{dice.getrandbits(32):08x}-{day:04d}-{number:04d}"
            rows += _session(dice, session, dice.choice(projects), start + timedelta(minutes=dice.randint(-300, 500)))
    return rows


def _session(dice: random.Random, session: str, project: str | None, start: datetime) -> list[Row]:
    model = dice.choices(list(_MODELS), weights=[3, 5, 2, 3, 2])[0]
    rows = []
    for number in range(dice.randint(4, 30)):
        delegated = number > 3 and dice.random() < 0.2
        used = "claude-haiku-4-5" if delegated and model.startswith("claude") else model
        provider, *rates = _MODELS[used]
        written = dice.randint(0, 9_000) if rates[2] else 0
        long = dice.random() < 0.2
        tokens = {
            "input_uncached": dice.randint(5, 4_000),
            "cache_read": dice.randint(4_000, 120_000) if number else 0,
            "cache_write_1h" if long else "cache_write_5m": written,
            "output": dice.randint(50, 2_500),
        }
        counts = (tokens["input_uncached"], tokens["cache_read"], written, tokens["output"])
        unknown = dice.random() < 0.015
        columns: Row = {
            "model": "my-local-1" if unknown else used,
            "price_model": used,
            "cost_status": "unknown_model" if unknown else "priced",
            "cost_microusd": sum(count * rate for count, rate in zip(counts, rates, strict=True)) // 1_000,
        }
        if dice.random() < 0.005:
            columns |= {"cost_status": "no_time", "call_time": None, "date": start.date()}
        elif not unknown and dice.random() < 0.01:
            columns |= {"cost_status": "partial"}
        columns = {
            "source": {"anthropic": "claude-code", "openai": "codex", "deepseek": "deepseek-harness"}[provider],
            "provider": provider,
            "project": project,
            "session_id": session,
            "is_subagent": delegated,
            "stream_id": f"agent-{number % 3}" if delegated else "main",
            "call_time": start + timedelta(seconds=40 * number + dice.randint(0, 30)),
            **tokens,
            **columns,
        }
        rows.append(call(f"{session}-{number:03d}", **columns))
    return rows
