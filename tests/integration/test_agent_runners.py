"""Every runner in every case, each with its real program: how it is judged, what it used, and that it is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import zstandard

from schemas.agent_record import RunEnd
from storage.local import LocalStore
from storage.objects import StoreSettings
from storage.usage_dataset import read_calls, read_runs
from storage.zone import Zone
from tasks.agents.resume import prior_of, put_back
from tasks.agents.run import run_agent
from tasks.agents.settle import Destinations, settle
from tasks.ingest.outcome import IngestOptions
from tasks.land.outcome import LandOptions
from tasks.usage.price_table import shipped_price_table
from tasks.usage.rates import RateCard
from tests.agent_runs import KEY, RUNNERS, TOOLS, Told, agent, context, installed, run, used
from tests.stub_llm import CUT, HANG, Answer, StubLlm, Tokens, ToolCall

USED = Tokens(input=30, cache_read=1000, cache_write=5, output=17, reasoning=4)


@dataclass(frozen=True)
class Case:
    """What the model does, what the specification says, and how it ends."""

    answers: Callable[[Told], tuple[Answer, ...]]
    status: str
    stop: str
    fields: dict[str, Any] = field(default_factory=dict)
    key: bool = True


def _tool(told: Told, command: str = "echo out") -> Answer:
    return Answer("I look.", (told.command(command),), USED)


CASES = {
    "success": Case(lambda told: (Answer("All done.", usage=USED),), "completed", "completed"),
    # The command prints the key, where the runner lets it have that.
    "tool-call": Case(lambda told: (_tool(told, "env"), Answer("All done.", usage=USED)), "completed", "completed"),
    "http-400": Case(lambda told: (Answer("no such thing", status=400),), "failed", "provider_refused"),
    "http-500": Case(lambda told: (Answer("broken", status=500),), "failed", "provider_unavailable"),
    "cut-stream": Case(lambda told: (CUT,), "failed", "provider_unavailable"),
    # The answers take a while, as real ones do: the run is stopped during the one after the last that is allowed.
    "turn-cap": Case(lambda told: (replace(_tool(told), pause=0.1),), "failed", "turn_limit", {"limits": {"turns": 3}}),
    "budget-cap": Case(
        lambda told: (replace(_tool(told), pause=0.1),), "failed", "budget_exceeded", {"limits": {"cost_microusd": 12}}
    ),
    # Long enough for the slowest of them to ask its model on a busy machine.
    "timeout": Case(lambda told: (HANG,), "failed", "timeout", {"limits": {"wall_seconds": 10}}),
    "unknown-tool": Case(
        lambda told: (Answer("", (ToolCall("frobnicate", {"x": 1}),), USED), Answer("All done.", usage=USED)),
        "completed",
        "completed",
    ),
    "missing-key": Case(lambda told: (Answer("never"),), "failed", "missing_key", key=False),
}


@pytest.fixture(params=RUNNERS)
def runner(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("name", CASES)
def test_run_is_judged_by_its_evidence(tmp_path: Path, stub_llm: StubLlm, runner: str, name: str) -> None:
    case = CASES[name]
    stub_llm.script(*case.answers(TOOLS[runner]))
    spec = agent(runner, stub_llm, key=case.key, **case.fields)
    end = run(tmp_path, spec, price=lambda call: 5)
    assert (end.status, end.stop) == (case.status, case.stop), end.reason
    assert used(end) == told(runner, stub_llm)
    assert processes(tmp_path) == []
    assert list((tmp_path / "work").rglob("*/*/*")) == []
    assert [path for path in end.transcripts if ".jsonl" in path], end.transcripts
    sessions, rows, projects = settled(tmp_path, end)
    assert end.session_id in sessions
    assert rows == told(runner, stub_llm)
    assert projects <= {spec.name}
    assert holding(tmp_path, KEY) == []


def test_denied_tool_is_no_success(tmp_path: Path, stub_llm: StubLlm, runner: str) -> None:
    tools = TOOLS[runner]
    stub_llm.script(_tool(tools), Answer("All done.", usage=USED))
    end = run(tmp_path, agent(runner, stub_llm, permissions={"mode": "workspace-write", "tools": tools.other_tools}))
    assert (end.exit_code, end.status, end.stop) == (0, "failed", "tool_denied"), end.reason
    assert [(tool.name, tool.outcome) for tool in end.tools or ()] == [(tools.command("").name, "denied")]
    assert used(end) == told(runner, stub_llm)
    assert stub_llm.total() == USED + USED
    assert tools.command("").name not in stub_llm.requests()[0].request.tools


def test_calls_in_a_copy_count_for_the_project_it_was_made_from(tmp_path: Path, stub_llm: StubLlm, runner: str) -> None:
    (tmp_path / "kite").mkdir()
    stub_llm.script(_tool(TOOLS[runner]), Answer("All done.", usage=USED))
    end = run(tmp_path, agent(runner, stub_llm, workspace={"kind": "copy", "path": str(tmp_path / "kite")}))
    assert end.status == "completed", end.reason
    _, rows, projects = settled(tmp_path, end)
    assert rows == told(runner, stub_llm)
    assert projects == {str(tmp_path / "kite")}


def settled(folder: Path, end: RunEnd) -> tuple[list[str], Tokens, set[str | None]]:
    """Land, verify and count the run: the sessions that are there then, what the rows of their calls add up to, and
    whose work they are."""
    (folder / "zone").mkdir()
    (folder / "usage").mkdir()
    zone, tables = Zone(LocalStore(str(folder / "zone"))), LocalStore(str(folder / "usage"))
    to = Destinations(
        runs=context(folder).runs,
        store=StoreSettings(),
        zone=zone,
        usage=tables,
        card=RateCard(shipped_price_table()),
        land=LandOptions(now=1),
        ingest=IngestOptions(now=1, max_round_bytes=1 << 20),
    )
    after = settle(end, None, to)
    assert after.problems == 0, (after.landings, after.sessions)
    assert read_runs(tables)["run_id"].to_pylist() == [end.run_id]
    calls = pl.DataFrame(read_calls(tables))
    written = sum(int(calls[name].sum()) for name in ("cache_write_5m", "cache_write_1h", "cache_write_unknown"))
    names = ("input_uncached", "cache_read", "output", "reasoning")
    uncached, read, output, reasoning = (int(calls[name].sum()) for name in names)
    return zone.sessions(), Tokens(uncached, read, written, output, reasoning), set(calls["project"])


def told(runner: str, stub: StubLlm) -> Tokens:
    """What the stub told this runner; the Harness takes no count of reasoning from this dialect."""
    return replace(stub.total(), reasoning=0) if runner == "dsh" else stub.total()


def processes(folder: Path) -> list[str]:
    """The processes that have this folder in their environment."""
    return list(_processes(str(folder).encode()))


def _processes(mark: bytes) -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes():
                yield (process / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue


def holding(folder: Path, secret: str) -> list[Path]:
    """The files below a folder that hold this text, packed or not."""
    return [path for path in folder.rglob("*") if path.is_file() and secret.encode() in _unpacked(path)]


def _unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix in (".zst", ".zstd"):
        return zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()
    if path.suffix == ".parquet":
        return pl.read_parquet(data).write_json().encode()
    return data


def test_harness_sends_neither_its_log_nor_its_plugins(tmp_path: Path, stub_llm: StubLlm) -> None:
    stub_llm.script(_tool(TOOLS["dsh"]), Answer("All done.", usage=USED))
    assert run(tmp_path, agent("dsh", stub_llm)).status == "completed"
    asked = [set(each.request.body) for each in stub_llm.served]
    sent = {"model", "stream", "messages", "max_tokens", "thinking", "output_config", "system", "tools"}
    assert [fields - sent for fields in asked] == [set(), set()]
    assert stub_llm.unexpected == []


def test_programs_ask_for_nothing_but_models(tmp_path: Path, stub_llm: StubLlm) -> None:
    stub_llm.script(Answer("All done."))
    for name in ("claude-code", "codex"):
        assert run(tmp_path / name, agent(name, stub_llm)).status == "completed"
    assert stub_llm.unexpected == []


def test_run_that_goes_on_with_a_session_counts_its_own_part(tmp_path: Path, stub_llm: StubLlm, runner: str) -> None:
    (tmp_path / "project").mkdir()
    workspace = {"kind": "folder", "path": str(tmp_path / "project")}
    spec = agent(runner, stub_llm, workspace=workspace)
    stub_llm.script(Answer("First.", usage=USED), Answer("Second.", usage=USED + USED))
    where = context(tmp_path)
    first = run(tmp_path, spec, price=lambda call: 5)
    going_on = put_back(replace(where, run_id="run-2"), spec, prior_of(where.runs, spec, "run-1"))
    second = asyncio.run(run_agent(spec, installed(runner), {"what": "more"}, going_on))
    assert (second.status, second.session_id) == ("completed", first.session_id), second.reason
    assert (first.final_text, second.final_text) == ("First.", "Second.")
    assert used(first) + used(second) == told(runner, stub_llm)
    assert len(second.calls or ()) == 1
    assert b"First." in stub_llm.requests()[1].request.raw
    if first.cost_reported_microusd is not None and second.cost_reported_microusd is not None:
        # Twice the tokens, twice the cost; the program says it in fractions of a micro-dollar.
        assert second.cost_reported_microusd == pytest.approx(2 * first.cost_reported_microusd, abs=1)
        assert second.session_cost_microusd == first.cost_reported_microusd + second.cost_reported_microusd
    again = prior_of(where.runs, spec, "run-2")
    assert [end.run_id for end in again] == ["run-2", "run-1"]
