"""A run whose process was killed has the figures of what landed of it, and says so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from schemas.agent_record import RunEnd
from storage.agent_runs import AgentRuns
from storage.local import LocalStore
from storage.objects import StoreSettings
from storage.usage_dataset import read_calls, read_runs
from storage.zone import Zone
from tasks.agents.settle import Destinations, settle
from tasks.ingest.outcome import IngestOptions
from tasks.land.outcome import LandOptions
from tasks.usage.price_table import shipped_price_table
from tasks.usage.rates import RateCard
from tests.agent_runs import ended

SESSION = "6a4df0e2-1b7c-4f3e-9a5d-2c8e7b9f0a11"
PATH = f"transcripts/claude-code/-tmp/{SESSION}.jsonl"
FIGURES = (
    "turns",
    "input_uncached",
    "cache_read",
    "cache_write",
    "output",
    "reasoning",
    "input_total",
    "cost_microusd",
)


@pytest.fixture
def to(tmp_path: Path) -> Destinations:
    for folder in ("archive", "zone", "usage"):
        (tmp_path / folder).mkdir()
    return Destinations(
        AgentRuns(LocalStore(str(tmp_path / "archive"))),
        StoreSettings(),
        Zone(LocalStore(str(tmp_path / "zone"))),
        LocalStore(str(tmp_path / "usage")),
        RateCard(shipped_price_table()),
        LandOptions(now=1),
        IngestOptions(now=1, max_round_bytes=1 << 20),
    )


def message(name: str, time: str, model: str = "claude-sonnet-4-5", **usage: int) -> bytes:
    row: dict[str, Any] = {
        "type": "assistant",
        "uuid": f"{name}-{usage.get('output_tokens')}",
        "sessionId": SESSION,
        "timestamp": f"2026-03-01T{time}Z",
        "cwd": "/srv/kite",
        "message": {
            "id": name,
            "role": "assistant",
            "model": model,
            "content": [{"type": "text", "text": "So far."}],
            "usage": usage,
        },
    }
    return json.dumps(row).encode() + b"\n"


def killed(to: Destinations, *lines: bytes, run_id: str = "run-1", **fields: Any) -> RunEnd:
    """The end of a run from noon to ten past, as it is recorded when its process was killed."""
    to.runs.add("reviewer", run_id, [(PATH, b"".join(lines))])
    unknown = dict.fromkeys(("calls", "tools", "cost_microusd", "exit_code"))
    cut = {"status": "interrupted", "stop": "interrupted", "transcript_kind": "claude-code", "transcripts": (PATH,)}
    return ended(run_id, **unknown | cut | fields)


def row(to: Destinations, end: RunEnd) -> dict[str, Any]:
    settle(end, None, to)
    assert to.usage is not None
    found: list[dict[str, Any]] = [each for each in read_runs(to.usage).to_pylist() if each["run_id"] == end.run_id]
    (only,) = found
    return only


def test_killed_run_has_the_figures_of_its_landed_calls_each_counted_once(to: Destinations) -> None:
    lines = [
        message("m1", "12:00:01", input_tokens=100, output_tokens=1),
        message("m1", "12:00:01", input_tokens=100, output_tokens=40),
        message("m2", "12:05:00", input_tokens=10, cache_read_input_tokens=1000, cache_creation_input_tokens=200,
                output_tokens=7),
    ]  # fmt: skip
    end = killed(to, *lines)
    found = row(to, end)
    # Sonnet 4.5 in dollars a million: 3 in, 0.30 from the cache, 3.75 to it, 15 out.
    cost = round(110 * 3 + 1000 * 0.3 + 200 * 3.75 + 47 * 15)
    assert [found[name] for name in FIGURES] == [2, 110, 1000, 200, 47, 0, 1310, cost]
    assert (found["session_id"], found["figures_from"], found["exit_status"]) == (SESSION, "landed", "interrupted")
    assert (found["tool_calls"], found["denied_tools"], found["cost_reported_microusd"]) == (None, None, None)
    # They are those of its call rows, and settling again changes nothing.
    assert to.usage is not None
    calls = pl.DataFrame(read_calls(to.usage)).filter(pl.col("session_id") == SESSION)
    assert (calls.height, calls["output"].sum(), calls["input_total"].sum()) == (2, 47, 1310)
    assert row(to, end) == found


def test_calls_before_the_run_are_another_runs(to: Destinations) -> None:
    first = [message("m0", "11:59:59.999", input_tokens=5, output_tokens=5)]
    settle(
        killed(to, *first, run_id="run-0", started="2026-03-01T11:50:00Z", ended="2026-03-01T11:59:59.999Z"), None, to
    )
    found = row(to, killed(to, *first, message("m1", "12:00:00", input_tokens=100, output_tokens=40)))
    assert [found[name] for name in ("turns", "input_uncached", "output")] == [1, 100, 40]


def test_cost_is_not_known_where_one_call_has_no_price(to: Destinations) -> None:
    lines = [
        message("m1", "12:00:01", input_tokens=100, output_tokens=40),
        message("m2", "12:00:02", model="my-local-1", input_tokens=100, output_tokens=40),
    ]
    found = row(to, killed(to, *lines))
    assert (found["turns"], found["output"], found["cost_microusd"]) == (2, 80, None)


def test_figures_stay_unknown_where_nothing_with_usage_landed(to: Destinations) -> None:
    found = row(to, killed(to, b'{"type":"user","sessionId":"%s","message":{"content":"Hi"}}\n' % SESSION.encode()))
    assert [found[name] for name in FIGURES] == [None] * len(FIGURES)
    assert (found["session_id"], found["figures_from"]) == (None, None)


def test_figures_stay_unknown_where_a_part_of_them_cannot_be_read(to: Destinations) -> None:
    assert to.zone is not None
    end = killed(to, message("m1", "12:00:01", input_tokens=100, output_tokens=40))
    assert settle(end, None, replace(to, usage=None)).row is None
    (companion,) = to.zone.store.list("_calls/")
    to.zone.store.replace(companion.key, b"damaged")
    found = row(to, end)
    assert [found[name] for name in FIGURES] == [None] * len(FIGURES)


def test_runner_that_counted_is_believed(to: Destinations) -> None:
    found = row(
        to, killed(to, message("m1", "12:00:01", input_tokens=100, output_tokens=40), calls=(), cost_microusd=0)
    )
    assert (found["turns"], found["output"], found["figures_from"]) == (0, 0, "runner")
