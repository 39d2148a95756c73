"""`sessionmill agent …` and the flow of due agents, as a person and a scheduler start them."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from storage.agent_runs import AgentRuns
from storage.local import LocalStore
from storage.objects import open_store
from storage.usage_dataset import read_calls, read_runs
from storage.zone import Zone
from tests.agent_runs import KEY, agent
from tests.integration.test_agent_runners import holding, processes
from tests.node_programs import codex
from tests.prefect_server import ROOT
from tests.s3_server import S3Server
from tests.stub_llm import HANG, Answer, StubLlm


def write(path: Path, stub: StubLlm, **fields: Any) -> Path:
    """A file with an agent of Codex."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(json.loads(agent("codex", stub, **fields).model_dump_json(exclude_unset=True))))
    return path


def environment(folder: Path, **more: str) -> dict[str, str]:
    return {
        **os.environ,
        "TEAM_KEY": KEY,
        "SESSIONMILL_CODEX_PROGRAM": str(codex()),
        "SESSIONMILL_AGENTS_WORK": str(folder / "work"),
        **more,
    }


def command(folder: Path, *arguments: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "flows", "agent", *map(str, arguments)],
        env=environment(folder, **more),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_run_says_its_answer_and_lands_in_s3(tmp_path: Path, stub_llm: StubLlm, s3: S3Server) -> None:
    spec = write(tmp_path / "agents/a.yaml", stub_llm)
    stub_llm.script(Answer("All is \x1b[32mwell\x1b[0m."))
    place = f"s3://zone/{tmp_path.name}"
    where = ["--archive", f"{place}/archive", "--zone", f"{place}/zone", "--usage", f"{place}/usage"]
    done = command(tmp_path, "run", spec, "--var", "what=what is up", *where)
    assert (done.returncode, done.stdout) == (0, "All is \x1b[32mwell\x1b[0m.\n"), done.stderr
    assert "\x1b" not in done.stderr
    assert b"Say what is up." in stub_llm.requests()[0].request.raw
    assert KEY not in done.stderr
    (session,) = Zone(open_store(f"{place}/zone")).sessions()
    (run,) = AgentRuns(open_store(f"{place}/archive")).runs("test-codex")
    assert f"landed {session}, round 1" in done.stderr
    assert done.stderr.count("completed") == 2  # the verdict, once: completed: its turn is completed
    assert run in done.stderr
    tables = open_store(f"{place}/usage")
    assert len(tables.list("_runs/")) == 1
    assert read_calls(tables)["session_id"].to_pylist() == [session]


def test_run_that_did_not_complete_says_so_and_exits_with_1(tmp_path: Path, stub_llm: StubLlm) -> None:
    spec = write(tmp_path / "agents/a.yaml", stub_llm)
    stub_llm.script(Answer("no", status=400))
    done = command(tmp_path, "run", spec, "--archive", tmp_path / "archive", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["run"]["stop"] == "provider_refused"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--var", "other=1"), "no such variable: other"),
        (("--var", "what"), "NAME=VALUE"),
        (("--resume", "nothing"), "there is no run nothing"),
    ],
)
def test_wrong_use_runs_nothing(tmp_path: Path, stub_llm: StubLlm, arguments: tuple[str, str], said: str) -> None:
    spec = write(tmp_path / "agents/a.yaml", stub_llm)
    done = command(tmp_path, "run", spec, "--archive", tmp_path / "archive", *arguments)
    assert (done.returncode, stub_llm.served) == (2, [])
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_missing_program_is_wrong_use(tmp_path: Path, stub_llm: StubLlm) -> None:
    spec = write(tmp_path / "agents/a.yaml", stub_llm)
    done = command(tmp_path, "run", spec, "--archive", tmp_path / "archive", SESSIONMILL_CODEX_PROGRAM="no-such")
    assert done.returncode == 2
    assert "the program no-such is not there — install Codex, or name it in the setting codex_program" in done.stderr


def test_run_that_is_told_to_end_is_closed_and_landed_first(tmp_path: Path, stub_llm: StubLlm) -> None:
    spec = write(tmp_path / "agents/a.yaml", stub_llm)
    stub_llm.script(HANG)
    where = ["--archive", tmp_path / "archive", "--zone", tmp_path / "zone"]
    process = subprocess.Popen(
        [sys.executable, "-m", "flows", "agent", "run", *map(str, [spec, *where])],
        env=environment(tmp_path),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 60
    while not stub_llm.served and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 143
    runs = AgentRuns(LocalStore(str(tmp_path / "archive")))
    (run,) = runs.runs("test-codex")
    end = runs.end("test-codex", run)
    assert end is not None
    assert (end.status, end.stop) == ("interrupted", "cancelled"), error
    assert Zone(LocalStore(str(tmp_path / "zone"))).sessions() == [end.session_id]
    assert processes(tmp_path / "work") == []
    assert holding(tmp_path, KEY) == []


def native(path: Path, stub: StubLlm, **fields: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(json.loads(agent("native", stub, **fields).model_dump_json(exclude_unset=True))))
    return path


def begun(folder: Path, spec: Path, stub: StubLlm, *, asked: int) -> tuple[subprocess.Popen[bytes], list[str]]:
    """A run that has asked its model so often, and where its results go."""
    where = [word for each in ("archive", "zone", "usage") for word in (f"--{each}", str(folder / each))]
    process = subprocess.Popen(
        [sys.executable, "-m", "flows", "agent", "run", str(spec), *where],
        env=environment(folder),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    before, deadline = len(stub.served), time.monotonic() + 60
    while len(stub.served) < before + asked and time.monotonic() < deadline:
        time.sleep(0.05)
    return process, where


def outcome(folder: Path) -> tuple[list[tuple[str, str]], int, int, int]:
    """How runs ended; how many are settled, have a row and landed."""
    runs = AgentRuns(LocalStore(str(folder / "archive")))
    names = runs.runs("test-native")
    ends = [end for name in names if (end := runs.end("test-native", name)) is not None]
    rows = read_runs(LocalStore(str(folder / "usage"))).num_rows
    landed = Zone(LocalStore(str(folder / "zone"))).sessions()
    settled = len(list((folder / "archive").rglob("settled.json")))
    return [(end.status, end.stop) for end in ends], settled, rows, len(landed)


def test_attempt_before_the_one_that_is_told_to_end_lands_as_well(tmp_path: Path, stub_llm: StubLlm) -> None:
    retries = {"max": 3, "backoff_seconds": 0, "on": ["provider_unavailable"]}
    once = {"retry": {"max": 1, "backoff": "linear"}}
    spec = native(tmp_path / "agents/a.yaml", stub_llm, retries=retries, agent=once)
    stub_llm.script(Answer("x", status=503), HANG)
    process, _ = begun(tmp_path, spec, stub_llm, asked=2)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert outcome(tmp_path) == ([("failed", "provider_unavailable"), ("interrupted", "cancelled")], 2, 2, 2)


def test_run_that_was_killed_with_its_guard_is_closed_and_landed_by_the_next_one(
    tmp_path: Path, stub_llm: StubLlm
) -> None:
    spec = native(tmp_path / "agents/a.yaml", stub_llm)
    stub_llm.script(HANG)
    process, where = begun(tmp_path, spec, stub_llm, asked=1)
    children = Path(f"/proc/{process.pid}/task").glob("*/children")
    for child in [int(word) for each in children for word in each.read_text().split()]:
        if b"guard" in Path(f"/proc/{child}/cmdline").read_bytes():
            os.kill(child, signal.SIGKILL)
    process.kill()
    process.wait(60)
    deadline = time.monotonic() + 20
    while processes(tmp_path / "work") and time.monotonic() < deadline:
        time.sleep(0.05)
    stub_llm.script(Answer("Well."))
    done = command(tmp_path, "run", spec, *where)
    assert (done.returncode, done.stdout) == (0, "Well.\n")
    assert "its process is gone and left no end" in done.stderr
    assert outcome(tmp_path) == ([("interrupted", "interrupted"), ("completed", "completed")], 2, 2, 2)


def test_run_is_gone_on_with_once_and_the_run_to_resume_is_named(tmp_path: Path, stub_llm: StubLlm) -> None:
    (tmp_path / "project").mkdir()
    folder = {"kind": "folder", "path": str(tmp_path / "project")}
    spec = native(tmp_path / "agents/a.yaml", stub_llm, workspace=folder)
    where = [word for each in ("archive", "zone", "usage") for word in (f"--{each}", str(tmp_path / each))]
    assert command(tmp_path, "run", spec, *where).returncode == 0
    runs = AgentRuns(LocalStore(str(tmp_path / "archive")))
    (first,) = runs.runs("test-native")
    assert command(tmp_path, "run", spec, *where, "--resume", first).returncode == 0
    _, second = runs.runs("test-native")
    done = command(tmp_path, "run", spec, *where, "--resume", first)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"run {second} goes on with run {first} already — resume that one" in done.stderr
    assert command(tmp_path, "run", spec, *where, "--resume", second).returncode == 0
    assert read_calls(LocalStore(str(tmp_path / "usage"))).num_rows == 3


def test_what_is_wrong_with_what_landed_is_said(tmp_path: Path, stub_llm: StubLlm) -> None:
    """The session was there and said something else: exit 1 had no sentence."""
    (tmp_path / "project").mkdir()
    folder = {"kind": "folder", "path": str(tmp_path / "project")}
    spec = native(tmp_path / "agents/a.yaml", stub_llm, workspace=folder)
    where = ["--archive", str(tmp_path / "archive"), "--zone", str(tmp_path / "zone")]
    assert command(tmp_path, "run", spec, *where).returncode == 0
    runs = AgentRuns(LocalStore(str(tmp_path / "archive")))
    (first,) = runs.runs("test-native")
    stub_llm.script(Answer("Another answer."))
    assert command(tmp_path, "run", spec, *where, "--resume", first).returncode == 0
    _, second = runs.runs("test-native")
    # As an archive of an earlier release may be, in which two runs went on with one.
    shutil.rmtree(tmp_path / "archive/runs/test-native" / second)
    (tmp_path / "archive/runs/test-native" / first / "continued-1.json").unlink()
    stub_llm.script(Answer("Something else."))
    done = command(tmp_path, "run", spec, *where, "--resume", first)
    assert done.returncode == 1
    end = runs.end("test-native", runs.runs("test-native")[-1])
    assert end is not None
    assert end.status == "completed"
    assert any(line.startswith(f"{end.session_id}: ") for line in done.stderr.splitlines()), done.stderr


def test_list_shows_what_is_there_and_what_is_wrong(tmp_path: Path, stub_llm: StubLlm) -> None:
    write(tmp_path / "agents/a.yaml", stub_llm, schedule={"cron": "5 4 * * *", "timezone": "Europe/Berlin"})
    (tmp_path / "agents/b.yaml").write_text("name: Bad Name\n")
    done = command(tmp_path, "list", tmp_path / "agents", "--json")
    assert done.returncode == 1
    good, bad = json.loads(done.stdout)["agents"]
    assert (good["agent"], good["version"], good["schedule"]) == ("test-codex", "0.171.0", "5 4 * * * Europe/Berlin")
    assert "b.yaml: name" in bad["problem"]


# Prefect does not close the connection over which it renewed the lease of a slot.
@pytest.mark.filterwarnings("ignore:.*unclosed:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")
def test_due_agents_run_once_each_and_a_bad_file_stops_none(
    tmp_path: Path, stub_llm: StubLlm, prefect_api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prefect.blocks.system import Secret

    from flows.agent_parameters import DueParameters
    from flows.agent_summary import DueSummary
    from flows.agents import run_due_agents

    asyncio.run(Secret(value=KEY).asave("team-key", overwrite=True))
    schedule = {"cron": "* * * * *"}
    key = {"openai": {"base_url": stub_llm.url, "key": {"block": "team-key"}}}
    write(tmp_path / "agents/a.yaml", stub_llm, name="one", schedule=schedule, endpoints=key)
    write(tmp_path / "agents/b.yaml", stub_llm, name="two", schedule=schedule, key=False)
    write(tmp_path / "agents/c.yaml", stub_llm, name="three")
    (tmp_path / "agents/d.yaml").write_text("name: Bad Name\n")
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    stub_llm.script(Answer("Done."))
    parameters = DueParameters(
        agents=str(tmp_path / "agents"), archive=str(tmp_path / "archive"), usage=str(tmp_path / "usage"), zone=None
    )

    async def run() -> DueSummary:
        state = await run_due_agents(parameters, return_state=True)
        summary = await state.aresult(raise_on_failure=False)
        assert isinstance(summary, DueSummary)
        return summary

    _at_the_beginning_of_a_minute()
    first = asyncio.run(run())
    assert [(each.agent, each.good) for each in first.runs] == [("one", True), ("two", False)]
    assert "missing_key" in first.runs[1].said
    assert (first.agents, len(first.refused), first.exit_code) == (3, 1, 1)
    runs = AgentRuns(LocalStore(str(tmp_path / "archive")))
    assert [len(runs.runs(name)) for name in ("one", "two", "three")] == [1, 1, 0]
    end = runs.end("one", runs.runs("one")[0])
    assert end is not None
    assert end.scheduled_for is not None
    assert end.scheduled_for.endswith(":00Z")
    assert holding(tmp_path, KEY) == []
    gc.collect()  # what is left open is noticed here, and not in another test


# Prefect's own client leaves sockets to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_runs_that_begin_at_once_set_the_same_limits(prefect_api: str) -> None:
    from prefect import get_client

    from flows.agent_limits import set_limits

    names = [f"at-once-{number}" for number in range(8)]

    async def set_all() -> None:
        async with get_client() as client:
            await set_limits(client, dict.fromkeys(names, 3))

    async def at_once() -> list[int]:
        await asyncio.gather(*(set_all() for _ in range(6)))
        async with get_client() as client:
            return [(await client.read_global_concurrency_limit_by_name(name)).limit for name in names]

    assert asyncio.run(at_once()) == [3] * len(names)
    gc.collect()


@pytest.mark.parametrize(
    ("archive", "spec", "said"),
    [
        (None, "agents/a.yaml", "no archive for runs — set agents_archive"),
        ("archive", "agents/z.yaml", "z.yaml: no such specification"),
    ],
)
# Prefect's own client leaves sockets to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_flow_run_with_a_bad_configuration_ends_failed_with_one_sentence(
    tmp_path: Path,
    stub_llm: StubLlm,
    prefect_api: str,
    caplog: pytest.LogCaptureFixture,
    archive: str | None,
    spec: str,
    said: str,
) -> None:
    from flows.agent_parameters import AgentParameters
    from flows.agents import run_agent

    write(tmp_path / "agents/a.yaml", stub_llm)
    place = None if archive is None else str(tmp_path / archive)
    parameters = AgentParameters(spec=str(tmp_path / spec), archive=place, zone=None, usage=None)

    async def run() -> Any:
        return await run_agent(parameters, return_state=True)

    state = asyncio.run(run())
    assert state.is_failed()
    assert said in (state.message or "")
    assert "Traceback" not in caplog.text
    assert [record for record in caplog.records if record.exc_info] == []
    gc.collect()


def _at_the_beginning_of_a_minute() -> None:
    """Not at the end of one, when a second due time may come up."""
    second = datetime.now(UTC).second
    if second > 45:
        time.sleep(61 - second)
