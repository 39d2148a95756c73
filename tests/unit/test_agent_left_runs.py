"""Runs that were left open or unsettled, and runs that go on with others."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from schemas.agent_record import RunStart
from schemas.agent_run import StopReason
from schemas.errors import StoreUnavailable, WrongUse
from storage.local import LocalStore
from storage.usage_dataset import read_runs
from tasks.agents.attempts import run_with_retries
from tasks.agents.closing import answer_of
from tasks.agents.cut_runs import make_up_for
from tasks.agents.going_on import last_to_go_on, take_place
from tasks.agents.host import started_at, this_host
from tasks.agents.run import RunContext, run_agent
from tasks.agents.runner import Prior, RunEvidence, Transcripts
from tests.agent_runs import ended
from tests.scripted_agents import NOON, SECRET, Scripted, archive_alone, context, evidence, spec


def test_run_of_a_process_that_is_gone_is_closed_and_one_that_lives_is_not(tmp_path: Path) -> None:
    runs, here = context(tmp_path).runs, this_host()
    known = {
        "agent": "reviewer", "runner": "codex", "model": "gpt-5", "provider": "openai",
        "started": "2026-07-01T12:00:00Z", "host": here.name, "boot": here.boot, "process": os.getpid(),
    }  # fmt: skip
    runs.begin(RunStart(run_id="alive", process_started=started_at(os.getpid()), **known))
    runs.begin(RunStart(run_id="reused", process_started=1, **known))
    runs.begin(RunStart(run_id="rebooted", process_started=started_at(os.getpid()), **known | {"boot": "other"}))
    runs.begin(RunStart(run_id="elsewhere", process_started=1, **known | {"host": "other"}))
    left = tmp_path / "work/reviewer/reused/home/codex/sessions/2026/rollout-x.jsonl"
    left.parent.mkdir(parents=True)
    left.write_text(json.dumps({"k": SECRET}))
    now = int(NOON.timestamp()) * 1_000_000_000

    def close(now: int) -> list[str]:
        ends = make_up_for(spec(), tmp_path / "work", lambda reference: SECRET, archive_alone(runs), here, now)
        return [end.run_id for end in ends]

    assert close(now + 1) == ["rebooted", "reused"]
    assert close(now + 1) == []
    assert close(now + 601 * 1_000_000_000) == ["elsewhere"]
    end = runs.end("reviewer", "reused")
    assert end is not None
    assert (end.status, end.stop, end.calls) == ("interrupted", "interrupted", None)
    assert end.transcripts == ("transcripts/codex/sessions/2026/rollout-x.jsonl",)
    assert not any(b"secret" in path.read_bytes() for path in (tmp_path / "archive").rglob("*.jsonl"))
    assert not (tmp_path / "work/reviewer/reused").exists()


def test_run_that_was_closed_and_not_settled_is_settled_once_by_the_next_one(tmp_path: Path) -> None:
    """Killed while it settled, or in the pause before its next attempt: it had no row, and landed nowhere."""
    runs, here = context(tmp_path).runs, this_host()
    usage = LocalStore(str(tmp_path / "usage"))
    known = {"agent": "reviewer", "runner": "codex", "model": "gpt-5", "provider": "openai", "host": here.name}
    for name, started, told in (("alive", started_at(os.getpid()), True), ("earlier", 1, False), ("killed", 1, True)):
        begun: dict[str, Any] = {"started": "2026-07-01T12:00:00Z", "boot": here.boot, "process": os.getpid()}
        runs.begin(RunStart(run_id=name, process_started=started, **known | begun))
        runs.finish(ended(name, runner="codex", model="gpt-5", provider="openai", to_settle=told))
    said: list[str] = []

    def make_up() -> list[str]:
        to = archive_alone(runs, usage=usage)
        ends = make_up_for(spec(), tmp_path / "work", lambda ref: SECRET, to, here, time.time_ns(), said.append)
        return [end.run_id for end in ends]

    assert make_up() == ["killed"]
    assert said == ["killed: it was closed and not settled, which is done now"]
    assert read_runs(usage).column("run_id").to_pylist() == ["killed"]
    assert [
        name for name in runs.runs("reviewer") if (tmp_path / f"archive/runs/reviewer/{name}/settled.json").exists()
    ] == ["killed"]
    assert make_up() == []


@pytest.mark.parametrize("failure", [StoreUnavailable("k", "create", "no route"), ArithmeticError("a fault of ours")])
def test_run_that_cannot_be_settled_is_said_and_stands_in_no_other_s_way(tmp_path: Path, failure: Exception) -> None:
    class Away(LocalStore):
        """Comes back after its first use."""

        away = True

        def create(self, key: str, data: bytes) -> None:
            if self.away:
                self.away = False
                raise failure
            super().create(key, data)

    runs, here, said = context(tmp_path).runs, this_host(), list[str]()
    known = {"agent": "reviewer", "runner": "codex", "model": "gpt-5", "provider": "openai", "host": here.name}
    begun: dict[str, Any] = {"started": "2026-07-01T12:00:00Z", "boot": "other", "process": 1}
    for name in ("a", "b"):
        runs.begin(RunStart(run_id=name, **known | begun))
        runs.finish(ended(name, to_settle=True))
    to = archive_alone(runs, usage=Away(str(tmp_path / "usage")))
    made_up = make_up_for(spec(), tmp_path / "work", lambda ref: SECRET, to, here, time.time_ns(), said.append)
    assert [end.run_id for end in made_up] == ["b"]
    assert said[1].startswith("a: it was left, and could not be made up for: ")
    assert str(failure) in said[1]
    assert ("Traceback" in said[1]) == isinstance(failure, ArithmeticError)
    assert [run.run_id for run, _ in runs.unfinished("reviewer")] == ["a"]


def test_who_cannot_be_asked_why_a_run_was_to_end_is_said() -> None:
    async def away() -> StopReason:
        raise ConnectionError("nobody is there")

    async def told() -> StopReason:
        return "cancelled"

    said: list[str] = []
    assert asyncio.run(answer_of(told, said.append)) == "cancelled"
    assert said == []
    assert asyncio.run(answer_of(away, said.append)) == "interrupted"
    assert [("ConnectionError: nobody is there" in line) for line in said] == [True]


def going_on(tmp_path: Path, name: str, **fields: Any) -> RunContext:
    return context(tmp_path, run_id=name, continues="run-1", prior=Prior("s"), **fields)


def left_behind(name: str, tmp_path: Path) -> RunEvidence:
    (tmp_path / f"rollout-{name}.jsonl").write_text("{}\n")
    return evidence(session_id="s", transcripts=Transcripts("codex", tmp_path, (tmp_path / f"rollout-{name}.jsonl",)))


def test_only_one_run_goes_on_with_another(tmp_path: Path) -> None:
    """A second one would have a session of the same name, of which nothing landed."""
    folder = spec(workspace={"kind": "folder", "path": str(tmp_path)})
    scripted = Scripted(*(left_behind(name, tmp_path) for name in ("1", "2", "3")))
    asyncio.run(run_agent(folder, scripted, {}, context(tmp_path)))
    asyncio.run(run_agent(folder, scripted, {}, going_on(tmp_path, "run-2")))
    with pytest.raises(WrongUse, match="run run-2 goes on with run run-1 already — resume that one"):
        asyncio.run(run_agent(folder, scripted, {}, going_on(tmp_path, "run-3")))
    asyncio.run(run_agent(folder, scripted, {}, replace(going_on(tmp_path, "run-3"), continues="run-2")))
    with pytest.raises(WrongUse, match="run run-3 goes on with run run-1 already — resume that one"):
        asyncio.run(run_agent(folder, scripted, {}, going_on(tmp_path, "run-4")))
    runs = context(tmp_path).runs
    assert (runs.runs("reviewer"), len(scripted.found)) == (["run-1", "run-2", "run-3"], 0)


def test_run_that_left_nothing_has_gone_on_with_nothing(tmp_path: Path) -> None:
    folder = spec(workspace={"kind": "folder", "path": str(tmp_path)})
    scripted = Scripted(left_behind("1", tmp_path), evidence("none", stop="runner_failed"), left_behind("3", tmp_path))
    asyncio.run(run_agent(folder, scripted, {}, context(tmp_path)))
    asyncio.run(run_agent(folder, scripted, {}, going_on(tmp_path, "run-2")))
    assert asyncio.run(run_agent(folder, scripted, {}, going_on(tmp_path, "run-3"))).status == "completed"
    assert last_to_go_on(context(tmp_path).runs, "reviewer", "run-1") == "run-3"


def test_of_runs_that_go_on_with_one_at_once_the_first_does(tmp_path: Path) -> None:
    runs, now = context(tmp_path).runs, time.time_ns()
    refused: list[str] = []

    def take(name: str) -> None:
        try:
            take_place(runs, "reviewer", "run-1", name, now)
        except WrongUse as error:
            refused.append(str(error))

    takers = [threading.Thread(target=take, args=(f"run-{number}",)) for number in range(2, 10)]
    for each in takers:
        each.start()
    for each in takers:
        each.join()
    assert len(refused) == 7
    assert all("just began to go on with run run-1 — resume that one" in each for each in refused)
    # The one that took the place never began: it was killed in between.
    take_place(runs, "reviewer", "run-1", "run-99", now + 61 * 1_000_000_000)


def test_attempt_goes_on_with_what_the_one_before_it_left(tmp_path: Path) -> None:
    folder = spec(workspace={"kind": "folder", "path": str(tmp_path)}, retries={"max": 2, "backoff_seconds": 0})
    away = replace(left_behind("2", tmp_path), turn="failed", stop="provider_unavailable")
    scripted = Scripted(left_behind("1", tmp_path), away, left_behind("3", tmp_path))
    asyncio.run(run_agent(folder, scripted, {}, context(tmp_path)))
    ends = asyncio.run(run_with_retries(folder, scripted, {}, going_on(tmp_path, "run-2")))
    assert [(end.run_id, end.continues) for end in ends] == [("run-2", "run-1"), ("run-2-2", "run-2")]
