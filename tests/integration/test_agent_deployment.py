"""Agents on a real worker of a real server: by schedule, cancelled, with their process killed, and many at once.

One server and one worker for all of it. The agent with a schedule runs every minute while the other tests go on.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import polars as pl
import pytest
import yaml

from schemas.agent_record import RunEnd, RunStart
from storage.agent_runs import AgentRuns
from storage.local import LocalStore
from storage.objects import open_store
from storage.usage_dataset import read_calls
from storage.zone import Zone
from tasks.verify import verify_session
from tests import prefect_server
from tests.agent_runs import KEY, RUNNERS, TOOLS, agent, used
from tests.integration.test_agent_runners import holding, processes
from tests.node_programs import claude, codex
from tests.prefect_server import ROOT, Prefect
from tests.stub_llm import HANG, Answer, StubLlm, Tokens, running

POOL: Final = "agents"
USED: Final = Tokens(input=30, cache_read=1000, cache_write=5, output=17, reasoning=4)
SCHEDULED: Final = "every-minute"
WAIT_SECONDS: Final = 180.0
GATE: Final = threading.Event()
"""Set, it lets the crowd's model answer."""
PEERS: Final = tuple(f"peer-{number}" for number in range(5))
PEERS_GATE: Final = threading.Event()
"""Set, it lets the peers' model answer."""


@dataclass(frozen=True)
class Site:
    """Where the agents of these tests work: a server with a worker, a model, and the folders it all goes to."""

    prefect: Prefect
    stub: StubLlm
    folder: Path

    @property
    def runs(self) -> AgentRuns:
        return AgentRuns(LocalStore(str(self.folder / "archive")))

    def declare(self, name: str, runner: str, script: str, *answers: Answer, **fields: Any) -> Path:
        """Write an agent whose prompt names its script."""
        self.stub.script(*answers, name=script, by="round")
        spec = agent(runner, self.stub, name=name, task={"prompt": f"Do it, script:{script}"}, **fields)
        path = self.folder / "agents" / f"{name}.yaml"
        path.write_text(yaml.safe_dump(json.loads(spec.model_dump_json(exclude_unset=True))))
        return path

    def sessionmill(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "flows", *arguments],
            env=self.environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
            check=False,
        )

    @property
    def environment(self) -> dict[str, str]:
        return self.prefect.environment | environment(self.folder)

    def start(self, name: str) -> UUID:
        """Start the deployment of an agent; its flow run."""
        found = self.prefect.ask("GET", f"deployments/name/run-agent/{name}")
        made = self.prefect.ask("POST", f"deployments/{found['id']}/create_flow_run", {"state": {"type": "SCHEDULED"}})
        return UUID(made["id"])

    def state(self, flow_run: UUID) -> str:
        return str(self.prefect.ask("GET", f"flow_runs/{flow_run}")["state"]["type"])

    def ends(self, name: str) -> list[RunEnd]:
        found = [self.runs.end(name, run) for run in self.runs.runs(name)]
        return [end for end in found if end is not None]

    def asked(self, script: str) -> int:
        return len(self.stub.requests(script))


def environment(folder: Path) -> dict[str, str]:
    return {
        "TEAM_KEY": KEY,
        "SESSIONMILL_ZONE": str(folder / "zone"),
        "SESSIONMILL_AGENTS": str(folder / "agents"),
        "SESSIONMILL_AGENTS_ARCHIVE": str(folder / "archive"),
        "SESSIONMILL_AGENTS_WORK": str(folder / "work"),
        "SESSIONMILL_USAGE": str(folder / "usage"),
        "SESSIONMILL_CLAUDE_PROGRAM": str(claude()),
        "SESSIONMILL_CODEX_PROGRAM": str(codex()),
    }


def until(condition: Callable[[], Any], what: str, seconds: float = WAIT_SECONDS) -> Any:
    """Wait until the condition gives something, and return it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.2)
    raise AssertionError(f"{what}: not within {seconds:g} s")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("agents")
    for name in ("agents", "archive", "usage", "prefect", "zone"):
        (folder / name).mkdir()
    with running() as stub, prefect_server.running(folder / "prefect") as prefect:
        place = Site(prefect, stub, folder)
        prefect.start_worker(POOL, environment(folder))
        place.declare(
            SCHEDULED,
            "claude-code",
            "minute",
            Answer("", (TOOLS["claude-code"].command("env"),), USED),
            Answer("Done again.", usage=USED),
            schedule={"cron": "* * * * *", "timezone": "Europe/Berlin"},
        )
        for how in CUTS:
            for runner in RUNNERS:
                name = f"{how}-{runner}"
                place.declare(name, runner, name, Answer("", (TOOLS[runner].command("sleep 0"),), USED), HANG)
        place.declare("killed", "codex", "killed", HANG)
        for runner in RUNNERS:
            name = f"orphaned-{runner}"
            place.declare(name, runner, name, Answer("", (TOOLS[runner].command("sleep 0"),), USED), HANG)
        place.declare("crowd", "codex", "crowd", Answer("Done.", usage=USED, gate=GATE), concurrency=3)
        for name in PEERS:
            place.declare(name, "codex", name, Answer("Done.", usage=USED, gate=PEERS_GATE))
        files = [str(path) for path in sorted((folder / "agents").iterdir())]
        deployed = place.sessionmill("agent", "deploy", *files, "--pool", POOL)
        assert deployed.returncode == 0, deployed.stderr
        yield place


@pytest.fixture(scope="module")
def cut(site: Site) -> dict[str, RunEnd]:
    """Every runner's run twice, cut while its second model request hangs: once cancelled, and once told to end."""
    flow_runs = {f"{how}-{runner}": site.start(f"{how}-{runner}") for how in CUTS for runner in RUNNERS}
    for name in flow_runs:
        until(partial(_asked_twice, site, name), f"{name} asks its model twice")
        assert processes(site.folder / "work" / name)
    for name, flow_run in flow_runs.items():
        CUTS[name.partition("-")[0]](site, name, flow_run)
    ends = {}
    for name, flow_run in flow_runs.items():
        (ends[name],) = until(partial(site.ends, name), f"{name} is closed")
        until(partial(_is_over, site, flow_run), f"the flow run of {name} ends")
    return ends


def _asked_twice(site: Site, name: str) -> bool:
    return site.asked(name) >= 2


def _is_over(site: Site, flow_run: UUID) -> bool:
    return site.state(flow_run) in ("CANCELLED", "CRASHED", "FAILED")


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize(("how", "stop"), [("cancel", "cancelled"), ("term", "interrupted")])
def test_run_that_is_cut_is_closed_and_landed(
    site: Site, cut: dict[str, RunEnd], how: str, stop: str, runner: str
) -> None:
    end = cut[f"{how}-{runner}"]
    assert (end.status, end.stop) == ("interrupted", stop), end.reason
    assert processes(site.folder / "work" / end.agent) == []
    assert [path for path in end.transcripts if ".jsonl" in path]
    # One answer was given in full; of the one that hangs nobody knows what it used.
    assert replace(used(end), reasoning=0) == replace(USED, reasoning=0)
    zone = Zone(open_store(site.folder / "zone"))
    assert end.session_id is not None
    assert end.session_id in zone.sessions()
    assert verify_session(zone, end.session_id).problems == []


def _cancel(site: Site, name: str, flow_run: UUID) -> None:
    site.prefect.ask("POST", f"flow_runs/{flow_run}/set_state", {"state": {"type": "CANCELLING"}, "force": True})


def _end(site: Site, name: str, flow_run: UUID) -> None:
    os.kill(_process(site, name), signal.SIGTERM)


CUTS: Final[dict[str, Callable[[Site, str, UUID], None]]] = {"cancel": _cancel, "term": _end}


def _process(site: Site, name: str) -> int:
    """The process of the flow run in which the newest run of this agent works."""
    start = site.runs.start(name, site.runs.runs(name)[-1])
    assert isinstance(start, RunStart)
    return start.process


def test_run_whose_process_was_killed_is_closed_by_its_guard(site: Site) -> None:
    name = "killed"
    site.start(name)
    until(lambda: site.asked(name), f"{name} asks its model")
    os.kill(_process(site, name), signal.SIGKILL)
    _closed_by_its_guard(site, name, None)


def _closed_by_its_guard(site: Site, name: str, told: Tokens | None) -> None:
    """Closed, landed, and with a row that has what the model told of its whole answers; None where it gave none."""
    (end,) = until(lambda: site.ends(name), f"{name} is closed")
    assert (end.status, end.stop, end.reason) == ("interrupted", "interrupted", "its process is gone and left no end")
    assert [path for path in end.transcripts if ".jsonl" in path]
    assert processes(site.folder / "work" / name) == []
    until(lambda: not (site.folder / "work" / name / end.run_id).exists(), "its folder goes")
    zone = Zone(open_store(site.folder / "zone"))

    def landed() -> list[str]:
        return [session for session in zone.sessions() if any(session in path for path in end.transcripts)]

    (session,) = until(landed, "what it left lands")
    assert verify_session(zone, session).problems == []
    rows = site.folder / "usage/_runs"
    (row,) = until(lambda: list(rows.glob(f"*/run-*{end.run_id}*")), "its row is written")
    (figures,) = pl.read_parquet(row).to_dicts()
    counted = [figures[name] for name in ("input_uncached", "cache_read", "cache_write", "output")]
    if told is None:
        assert (figures["turns"], figures["figures_from"], counted) == (None, None, [None] * 4)
        return
    assert (figures["turns"], figures["figures_from"], figures["session_id"]) == (1, "landed", session)
    assert counted == [told.input, told.cache_read, told.cache_write, told.output]
    assert figures["cost_microusd"] > 0


def test_ten_runs_at_once_keep_to_a_limit_of_three(site: Site) -> None:
    name = "crowd"
    flow_runs = [site.start(name) for _ in range(10)]
    until(lambda: site.asked(name) == 3, "three runs ask their model")
    until(lambda: {site.state(each) for each in flow_runs} == {"RUNNING"}, "all ten flow runs have begun")
    assert (site.asked(name), len(list(site.runs.open_runs(name)))) == (3, 3)
    GATE.set()
    most = 0

    def all_ended() -> bool:
        nonlocal most
        most = max(most, sum(1 for _ in site.runs.open_runs(name)))
        return len(site.ends(name)) == 10

    until(all_ended, "ten runs end")
    assert most <= 3
    assert {end.status for end in site.ends(name)} == {"completed"}
    until(lambda: {site.state(each) for each in flow_runs} == {"COMPLETED"}, "their flow runs end")
    rows = pl.scan_parquet(site.folder / "usage/_runs/**/*.parquet", hive_partitioning=True)
    of_crowd = rows.filter(pl.col("agent") == name).collect()
    assert of_crowd["run_id"].n_unique() == 10
    assert of_crowd["output"].sum() == site.stub.total(name).output == 170


def test_agents_that_share_a_provider_keep_to_its_limit_of_four(site: Site) -> None:
    flow_runs = [site.start(name) for name in PEERS]

    def at_work() -> int:
        return sum(1 for name in PEERS for _ in site.runs.open_runs(name))

    until(lambda: sum(map(site.asked, PEERS)) == 4, "four runs ask their model")
    until(lambda: {site.state(each) for each in flow_runs} == {"RUNNING"}, "all five flow runs have begun")
    assert (sum(map(site.asked, PEERS)), at_work()) == (4, 4)
    PEERS_GATE.set()
    until(lambda: all(site.ends(name) for name in PEERS), "five runs end")
    assert {end.status for name in PEERS for end in site.ends(name)} == {"completed"}


def test_agent_with_a_schedule_runs_by_itself_every_minute(site: Site) -> None:
    until(lambda: len(site.ends(SCHEDULED)) >= 3, "three runs by the schedule", 240)
    deployment = site.prefect.ask("GET", f"deployments/name/run-agent/{SCHEDULED}")["id"]
    site.prefect.ask("PATCH", f"deployments/{deployment}", {"paused": True})
    begun = {"deployment_id": {"any_": [deployment]}, "state": {"type": {"any_": ["PENDING", "RUNNING"]}}}
    until(
        lambda: not site.prefect.ask("POST", "flow_runs/filter", {"flow_runs": begun}), "the runs that have begun end"
    )
    ends = site.ends(SCHEDULED)
    assert [end.status for end in ends] == ["completed"] * len(ends)
    times = [end.scheduled_for for end in ends]
    assert len(set(times)) == len(ends)
    assert {str(each)[17:] for each in times} == {"00Z"}
    zone = Zone(open_store(site.folder / "zone"))
    sessions = {str(end.session_id) for end in ends}
    until(lambda: sessions <= set(zone.sessions()), "all of them land", 30)
    for session in sessions:
        assert verify_session(zone, session).problems == []
    exported = site.sessionmill(
        "export", str(site.folder / "zone"), "--to", str(site.folder / "exports"), "--as-of", "now",
        "--completed-after", "0", "--json",
    )  # fmt: skip
    assert exported.returncode == 0, exported.stderr
    scaffolds = {
        path.name.removesuffix(".relavium.yaml") for path in (site.folder / "exports").rglob("*.relavium.yaml")
    }
    assert sessions <= scaffolds
    rows = pl.scan_parquet(site.folder / "usage/_runs/**/*.parquet", hive_partitioning=True)
    ours = rows.filter(pl.col("agent") == SCHEDULED).collect()
    told = site.stub.total("minute")
    names = ("input_uncached", "cache_read", "cache_write", "output", "reasoning")
    assert Tokens(*(int(ours[name].sum()) for name in names)) == told
    assert ours["turns"].sum() == site.asked("minute") == 2 * len(ends)
    calls = pl.DataFrame(read_calls(open_store(site.folder / "usage"))).filter(pl.col("session_id").is_in(sessions))
    written = ("cache_write_5m", "cache_write_1h", "cache_write_unknown")
    assert calls.height == 2 * len(ends)
    assert (
        Tokens(
            int(calls["input_uncached"].sum()),
            int(calls["cache_read"].sum()),
            sum(int(calls[name].sum()) for name in written),
            int(calls["output"].sum()),
            int(calls["reasoning"].sum()),
        )
        == told
    )


@pytest.fixture(scope="module")
def orphaned(site: Site) -> list[str]:
    """Every runner's run while its second model request hangs, and their worker told to end."""
    names = [f"orphaned-{runner}" for runner in RUNNERS]
    for name in names:
        site.start(name)
    for name in names:
        until(partial(_asked_twice, site, name), f"{name} asks its model twice")
    site.prefect.stop_worker(signal.SIGTERM)
    return names


@pytest.mark.parametrize("runner", RUNNERS)
def test_run_whose_worker_is_told_to_end_is_closed_by_its_guard(site: Site, orphaned: list[str], runner: str) -> None:
    """Prefect's worker does not wait for its flow runs: it kills them."""
    _closed_by_its_guard(site, f"orphaned-{runner}", USED)


def test_key_is_in_no_file_log_artifact_or_row_of_the_server(site: Site) -> None:
    assert site.ends(SCHEDULED)
    assert holding(site.folder, KEY) == []
    artifacts = site.prefect.ask("POST", "artifacts/filter", {})
    assert f"agent-{SCHEDULED}" in {each["key"] for each in artifacts}
    assert KEY not in json.dumps(artifacts)
