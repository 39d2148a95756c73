"""A runner without a program, and what a run of its agent takes, for tests of what becomes of a run."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from schemas.agent_spec import AgentSpec, read_agent_spec
from storage.agent_runs import AgentRuns
from storage.local import LocalStore
from storage.objects import StoreSettings
from tasks.agents.run import RunContext
from tasks.agents.runner import RunEvidence, RunRequest, TurnEnd
from tasks.agents.settle import Destinations
from tasks.agents.watch import Watch
from tasks.ingest.outcome import IngestOptions
from tasks.land.outcome import LandOptions

__all__ = ["NOON", "SECRET", "Scripted", "archive_alone", "context", "evidence", "spec"]

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
SECRET = 'sk-"very"/secret-0123'


def spec(**fields: Any) -> AgentSpec:
    document = {
        "name": "reviewer",
        "runner": "codex",
        "agent": {"id": "reviewer", "model": "gpt-5", "provider": "openai", "system_prompt": "Review."},
        "task": {"prompt": "Look."},
        "endpoints": {"openai": {"key": {"env": "KEY"}}},
    } | fields
    return read_agent_spec(json.dumps(document).encode(), name="a.yaml")


def evidence(turn: TurnEnd = "completed", **fields: Any) -> RunEvidence:
    return RunEvidence(**{"version": "1", "turn": turn, "final_text": "Done.", "exit_code": 0} | fields)


class Scripted:
    """A runner without a program, which gives prepared evidence."""

    name: Literal["codex"] = "codex"

    def __init__(self, *found: RunEvidence) -> None:
        self.found = list(found)
        self.requests: list[RunRequest] = []

    def version(self) -> str:
        return "9"

    async def run(self, request: RunRequest, watch: Watch) -> RunEvidence:
        self.requests.append(request)
        watch.log(f"the key is {request.keys['openai']}")
        return self.found.pop(0)


def context(folder: Path, **fields: Any) -> RunContext:
    (folder / "archive").mkdir(exist_ok=True)
    known = RunContext(
        "run-1", AgentRuns(LocalStore(str(folder / "archive"))), folder / "work", lambda reference: SECRET
    )
    return replace(known, **fields)


def archive_alone(runs: AgentRuns, **fields: Any) -> Destinations:
    """Where nothing lands unless ``fields`` say so."""
    options = {"land": LandOptions(now=1), "ingest": IngestOptions(now=1, max_round_bytes=1 << 20)}
    known: dict[str, Any] = {"runs": runs, "store": StoreSettings(), "zone": None, "usage": None, "card": None}
    return Destinations(**known | options | fields)
