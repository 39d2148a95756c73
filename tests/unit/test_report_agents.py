"""Headless runs in a report: how many completed, why the others did not, and what they used as far as it is known."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from schemas.errors import UsageRejected
from schemas.usage import RUN_FILE_SCHEMA
from schemas.usage_run import RunRow
from storage.local import LocalStore
from storage.objects import StoreSettings
from storage.usage_dataset import parquet_bytes, write_run
from tasks.report import AgentLine, UsageReport, json_of, read_report, scope_of
from tasks.report.page import page_of
from tests.command import Command
from tests.usage_rows import NOON, call, headless_run, sample_calls, write_calls

CUT: dict[str, Any] = {
    "exit_status": "interrupted",
    "stop_reason": "interrupted",
    "error_class": "interrupted",
    **dict.fromkeys(
        ("turns", "tool_calls", "denied_tools", "input_uncached", "cache_read", "cache_write", "output", "input_total")
    ),
    "cost_microusd": None,
}
"""A run that was cut, of which nobody knows what it used."""


def store(folder: Path, *runs: RunRow) -> LocalStore:
    found = LocalStore(str(folder / "usage"), StoreSettings())
    for run in runs:
        write_run(found, run)
    return found


def report(folder: Path, *runs: RunRow, **options: Any) -> UsageReport:
    found = read_report(store(folder, *runs), scope_of(**options))
    assert found is not None
    return found


def failed(run_id: str, stop: str, **fields: Any) -> RunRow:
    return headless_run(run_id, exit_status="failed", stop_reason=stop, error_class=stop, **fields)


def test_runs_of_an_agent_add_up_and_those_that_nobody_counted_are_named(tmp_path: Path) -> None:
    (line,) = report(
        tmp_path,
        headless_run("a", turns=3, tool_calls=2, denied_tools=1, input_uncached=10, cache_read=20, cache_write=5,
                     output=7, cost_microusd=100),
        failed("b", "timeout", turns=1, cost_microusd=None, started=NOON + timedelta(hours=1)),
        headless_run("c", **CUT, started=NOON - timedelta(hours=1)),
    ).agents  # fmt: skip
    assert line == AgentLine(
        agent="nightly",
        runs=3,
        completed=1,
        uncounted=1,
        turns=4,
        tool_calls=3,
        denied_tools=1,
        input=110,
        cache_write=5,
        cache_read=20,
        output=17,
        known_microusd=100,
        without_cost=2,
        stops=(("interrupted", 1), ("timeout", 1)),
        first=NOON - timedelta(hours=1),
        last=NOON + timedelta(hours=1),
    )
    assert (line.not_completed, line.total, line.cost_microusd) == (2, 152, 100)


def test_agents_are_in_order_of_cost_and_come_to_all_runs(tmp_path: Path) -> None:
    found = report(
        tmp_path,
        headless_run("1", agent="cheap", cost_microusd=5),
        headless_run("2", agent="dear", cost_microusd=50),
        failed("3", "timeout", agent="dear", cost_microusd=0),
        failed("4", "budget_exceeded", agent="cheap"),
        failed("5", "timeout", agent="cheap"),
        headless_run("6", **CUT, agent="unknown"),
    )
    assert [line.agent for line in found.agents] == ["cheap", "dear", "unknown"]
    assert [line.cost_microusd for line in found.agents] == [905, 50, None]
    assert (found.runs.agent, found.runs.runs, found.runs.completed, found.runs.cost_microusd) == (None, 6, 2, 955)
    assert found.runs.stops == (("timeout", 2), ("budget_exceeded", 1), ("interrupted", 1))
    assert found.runs.without_cost == found.runs.uncounted == 1


def test_run_counts_on_the_day_of_the_zone_on_which_it_started(tmp_path: Path) -> None:
    late = datetime(2026, 3, 2, 6, 30, tzinfo=UTC)  # the evening of the first in California
    options = {"since": "2026-03-01", "until": "2026-03-01"}
    assert report(tmp_path, headless_run("a", started=late), zone="America/Los_Angeles", **options).runs.runs == 1
    assert report(tmp_path, **options).agents == ()


@pytest.mark.parametrize(
    ("options", "runs"),
    [
        ({"projects": ["*/kite"]}, ["a"]),
        ({"projects": [""]}, ["b"]),
        ({"projects": ["*"]}, ["a", "b"]),
        ({"models": ["claude-*"]}, ["a"]),
        ({"models": ["gpt-5"], "projects": ["*/kite"]}, []),
        ({"until": "2026-02-28"}, []),
    ],
)
def test_run_is_in_scope_with_the_project_of_its_session_and_its_model(
    tmp_path: Path, options: dict[str, Any], runs: list[str]
) -> None:
    # The session's calls are of a day before: whose it is does not depend on the days asked for.
    write_calls(store(tmp_path), [call(session_id="s-a", call_time=NOON - timedelta(days=3))])
    found = report(
        tmp_path,
        headless_run("1", agent="a", session_id="s-a"),
        headless_run("2", agent="b", session_id="s-b", model="gpt-5"),
        **options,
    )
    assert [line.agent for line in found.agents] == runs


def test_data_set_of_runs_alone_is_one(tmp_path: Path) -> None:
    found = report(tmp_path, headless_run(), since="2026-03-01")
    assert (found.totals.all.calls, found.runs.runs) == (0, 1)
    assert report(tmp_path, since="2027-01-01").runs.runs == 0
    assert read_report(store(tmp_path / "other"), scope_of()) is None


def test_file_that_is_no_run_is_named(tmp_path: Path) -> None:
    found = store(tmp_path, headless_run())
    other = pa.table({name: ["many"] for name in RUN_FILE_SCHEMA.names})
    for bad in (b"PAR1", parquet_bytes(other), parquet_bytes(other.select(["agent"]))):
        found.replace("_runs/date=2026-03-01/run-bad.parquet", bad)
        with pytest.raises(UsageRejected, match=r"run-bad\.parquet: columns: it is no file of run rows"):
            read_report(found, scope_of())
    found.create("_runs/date=2026-99-01/run-none.parquet", b"")
    assert read_report(found, scope_of(since="2026-06-01")) is not None


def test_json_has_exact_figures_and_the_reasons(tmp_path: Path) -> None:
    found = report(tmp_path, headless_run("a", cost_microusd=1_250_000), failed("b", "timeout", cost_microusd=None))
    assert json_of(found, ["agents"])["agents"] == [
        {
            "agent": "nightly",
            "runs": 2,
            "completedRuns": 1,
            "notCompletedRuns": 1,
            "stopReasons": {"timeout": 1},
            "turns": 4,
            "toolCalls": 2,
            "deniedToolCalls": 0,
            "inputTokens": 200,
            "outputTokens": 20,
            "cacheCreationTokens": 0,
            "cacheReadTokens": 0,
            "totalTokens": 220,
            "totalCost": 1.25,
            "totalCostMicroUsd": 1_250_000,
            "unpricedRuns": 1,
            "uncountedRuns": 0,
            "firstActivity": "2026-03-01T12:00:00.000Z",
            "lastActivity": "2026-03-01T12:00:00.000Z",
        }
    ]
    assert "agents" not in json_of(found, ["daily"])


def test_page_has_the_runs_and_none_where_there_are_none(tmp_path: Path) -> None:
    write_calls(store(tmp_path), [call()])
    assert b"runs-by-agent" not in page_of(report(tmp_path))
    page = page_of(report(tmp_path, headless_run("a"), failed("b", "budget_exceeded", agent="<i>x"))).decode()
    assert page.index('id="runs-by-agent"') < page.index('id="coverage"')
    assert "2 runs of 2 agents: 1 completed; 1 budget exceeded." in page
    assert "<i>x" not in page
    alone = page_of(report(tmp_path / "alone", headless_run())).decode()
    assert ('id="runs-by-agent"' in alone, 'id="coverage"' in alone) == (True, False)


def test_table_by_agent_on_the_command_line(sessionmill: Command) -> None:
    here = store(Path())
    for number in range(3):
        write_run(here, headless_run(str(number), agent=f"agent-{number}", cost_microusd=450 * (3 - number)))
    write_run(here, headless_run("cut", **CUT, agent="agent-0"))
    lines = [
        line.split() for line in sessionmill("report", "usage", "--table", "agents", "--limit", "1").out.split("\n")
    ]
    assert ["agent-0", "2", "1", "1", "2", "100", "0", "0", "10", "110", "$0.0014", "1"] in lines
    assert ["2", "more", "2", "2", "4", "200", "0", "0", "20", "220", "$0.0014"] in lines
    assert ["All", "4", "3", "1", "6", "300", "0", "0", "30", "330", "$0.0027", "1"] in lines
    said = sessionmill("report", "usage", "--table", "daily").out
    assert said == (
        "No calls in scope (time zone UTC). "
        "4 runs of 3 agents: 3 completed; 1 interrupted; what 1 of them used is not known.\n"
    )


def test_example_of_the_table_by_agent_is_what_the_command_prints(sessionmill: Command) -> None:
    text = (Path(__file__).parents[2] / "docs/usage.md").read_text("utf-8")
    block = re.search(r"```\n\$ sessionmill (report usage --table agents)\n(.*?)\n```", text, re.DOTALL)
    assert block
    here = store(Path())
    write_calls(here, sample_calls(days=5, sessions_a_day=3))
    tokens = {"input_uncached": 20_600, "cache_write": 6_000, "cache_read": 155_200, "output": 4_575}
    for number, turns in ((1, 9), (2, 8)):
        fields = {"agent": "nightly-check", "turns": turns, "cost_microusd": 687_500, **tokens}
        write_run(here, headless_run(f"n{number}", **fields))
    write_run(here, headless_run("n3", **CUT, agent="nightly-check"))
    few = {"agent": "triage", "turns": 3, "input_uncached": 4_000, "output": 450, "cost_microusd": 18_750}
    for number in (1, 2):
        write_run(here, headless_run(f"t{number}", **few))
    printed = sessionmill(*block[1].split()).out
    assert "\n".join(line.rstrip() for line in printed.splitlines()).strip("\n") == block[2]
