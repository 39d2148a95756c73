"""Golden sources, landed and counted: each provider call once, and the totals that are expected."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from storage.objects import ObjectStore, open_store
from storage.zone import Zone
from tasks.land.archive import land_archive
from tasks.land.codex import Codex
from tasks.land.dsh import DeepSeekHarness
from tasks.land.outcome import LandOptions
from tests.golden import golden_cases
from tests.usage_sessions import count, rows

NOW = 1_800_000_000_000_000_000
COUNTS = ("input_uncached", "cache_read", "cache_write_unknown", "output")
DSH_COUNTS = ("inputTokens", "cacheReadTokens", "cacheWriteTokens", "outputTokens")


def counted(dialect: Any, tmp_path: Path, deltas: tuple[int, ...] = (2_097_152,)) -> ObjectStore:
    """The data set of a source, landed in one go or in small pieces, and counted after each."""
    zone, usage = open_store(tmp_path / "zone"), open_store(tmp_path / "usage")
    for delta in deltas:
        options = LandOptions(now=NOW, max_delta_bytes=delta)
        for _ in land_archive(Zone(zone), dialect.source, dialect, dialect.discover(dialect.source), options):
            pass
        assert count(zone, usage).problem_count == 0
    return usage


def log_of(row: dict[str, Any]) -> str:
    """The thread or log that made a call: a sub-agent's is the name of its stream."""
    log: str = row["session_id"] if row["stream_id"] == "main" else row["stream_id"]
    return log


@pytest.mark.parametrize("case", golden_cases("codex"), ids=lambda case: case.name)
def test_codex_rows_are_the_expected_ones(case: Path, tmp_path: Path) -> None:
    expected = json.loads((case / "expected.json").read_text())
    usage = counted(Codex(open_store(case)), tmp_path)
    found = rows(usage)
    threads = Counter(log_of(row) for row in found)
    assert threads == Counter({each["thread"]: each["calls"] for each in expected["threads"] if each["calls"]})
    names = ("input_uncached", "cache_read", "cache_write", "output", "reasoning")
    want = [
        (each["thread"], row["key"], row["model"], *(row[name] for name in names))
        for each in expected["threads"]
        for turn in each["turns"]
        for row in turn["usage"]
    ]
    have = [
        (log_of(row), row["request_id"], row["model"], *(row[name] for name in (*COUNTS, "reasoning"))) for row in found
    ]
    assert sorted(have, key=str) == sorted(want, key=str)
    assert sum(row["output"] for row in found) == expected["totals"]["output"]
    lineage = {each["thread"]: each for each in expected["threads"]}
    for row in found:
        thread = lineage[log_of(row)]
        assert row["is_subagent"] is (thread["kind"] in ("subagent", "review"))
        parent = thread["session"] if row["is_subagent"] else thread["lineage"]["forked_from"]
        assert (row["parent_session_id"], row["project"]) == (parent, thread["cwd"])


@pytest.mark.parametrize("case", golden_cases("codex"), ids=lambda case: case.name)
def test_codex_landed_piece_by_piece_counts_the_same(case: Path, tmp_path: Path) -> None:
    whole = counted(Codex(open_store(case)), tmp_path / "whole")
    pieces = counted(Codex(open_store(case)), tmp_path / "pieces", (256, 256, 2_097_152))
    facts = ("call_key", "session_id", "stream_id", "call_time", "model", *COUNTS, "reasoning", "cost_microusd")
    assert rows(pieces, *facts) == rows(whole, *facts)


@pytest.mark.parametrize("case", golden_cases("dsh-v4"), ids=lambda case: case.name)
def test_deepseek_harness_rows_are_the_expected_ones(case: Path, tmp_path: Path) -> None:
    expected = json.loads((case / "expected.json").read_text())
    found = rows(counted(DeepSeekHarness(open_store(case / "root")), tmp_path))
    totals: dict[str, Counter[str]] = {}
    calls: Counter[str] = Counter()
    for row in found:
        log = log_of(row)
        calls[log] += 1
        totals.setdefault(log, Counter()).update({name: row[name] for name in COUNTS})
        assert (row["source"], row["project"], row["is_subagent"]) == (
            "deepseek-harness",
            "/srv/proj",
            row["stream_id"] != "main",
        )
    for session, facts in expected["sessions"].items():
        whole = facts.get("usage_total_with_compaction") or facts["usage_total"]
        assert [totals[session][name] for name in COUNTS] == [whole[name] for name in DSH_COUNTS]
        answers = sum(1 for step in facts["steps"] if step["usage"])
        assert calls[session] == answers + sum(1 for each in facts["compactions"] if each["usage"])
        parent = facts["header"].get("parentSession")
        assert {row["parent_session_id"] for row in found if session in (row["session_id"], row["stream_id"])} <= {
            parent,
            session,
        }
    every = {name: sum(row[name] for row in found) for name in COUNTS}
    assert list(every.values()) == [expected["usage_total_all_sessions"][name] for name in DSH_COUNTS]
