"""Agents that run against the stub model server, for tests of what becomes of a run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import yaml

from schemas.agent_record import RunEnd
from schemas.agent_spec import AgentSpec, SecretRef, read_agent_spec
from storage.agent_runs import AgentRuns
from storage.local import LocalStore
from tasks.agents.run import RunContext, run_agent
from tasks.agents.runner import Runner
from tasks.agents.runners import Programs, runner
from tests.node_programs import claude, codex
from tests.stub_llm import StubLlm, Tokens, ToolCall

__all__ = ["KEY", "RUNNERS", "TOOLS", "Told", "agent", "context", "ended", "installed", "run", "used"]

KEY: Final = "sk-stub-0123456789abcdef"
RUNNERS: Final = ("dsh", "claude-code", "codex", "native")
_PROVIDERS: Final = {"dsh": "deepseek", "claude-code": "anthropic", "codex": "openai", "native": "anthropic"}
_MODELS: Final = {
    "dsh": "deepseek-v4-flash",
    "claude-code": "claude-sonnet-4-5",
    "codex": "gpt-5",
    "native": "claude-sonnet-4-5",
}


@dataclass(frozen=True)
class Told:
    """What a model may ask of a runner's tools: a command, by the names that this runner has for it."""

    runner: str

    def command(self, text: str) -> ToolCall:
        if self.runner == "codex":
            return ToolCall("exec_command", {"cmd": text})
        if self.runner == "claude-code":
            return ToolCall("Bash", {"command": text, "description": "a command"})
        if self.runner == "native":
            return ToolCall("run_command", {"command": "sh", "args": ["-c", text]})
        return ToolCall("bash", {"command": text, "description": "a command"})

    @property
    def other_tools(self) -> list[str]:
        """An allow-list without the tool for commands."""
        return {"codex": ["view_image"], "claude-code": ["Read"], "native": ["read_file"]}.get(self.runner, ["read"])


TOOLS: Final = {name: Told(name) for name in RUNNERS}


def agent(kind: str, stub: StubLlm, *, key: bool = True, **fields: Any) -> AgentSpec:
    """An agent of this runner that asks the stub; it tries each request twice, and may do everything."""
    provider = _PROVIDERS[kind]
    endpoint = {"base_url": stub.url} | ({"key": {"env": "TEAM_KEY"}} if key else {})
    retry = {"max": 2, "backoff": "linear"}
    document = {
        "name": f"test-{kind}",
        "runner": kind,
        "agent": {
            "id": "tester",
            "model": _MODELS[kind],
            "provider": provider,
            "system_prompt": "Test {{this}}.",
            "retry": retry,
        },
        "task": {"prompt": "Say {{what}}.", "variables": {"what": {"default": "hello"}}},
        "endpoints": {provider: endpoint},
        "permissions": {"mode": "full"},
        "limits": {"wall_seconds": 60, "grace_seconds": 3},
    }
    for field, value in fields.items():
        known = document.get(field)
        document[field] = known | value if isinstance(known, dict) and isinstance(value, dict) else value
    return read_agent_spec(yaml.safe_dump(document).encode(), name="agents/test.yaml")


def installed(name: str) -> Runner:
    """The runner of this name, with its real program."""
    programs = Programs(
        claude=str(claude()) if name == "claude-code" else "claude", codex=str(codex()) if name == "codex" else "codex"
    )
    return runner(name, programs)  # type: ignore[arg-type]


def context(folder: Path, **fields: Any) -> RunContext:
    """Where a run of a test works and is archived."""
    archive = folder / "archive"
    archive.mkdir(parents=True, exist_ok=True)
    known = RunContext(
        run_id="run-1", runs=AgentRuns(LocalStore(str(archive))), work=folder / "work", find=lambda ref: _find(ref)
    )
    return replace(known, **fields)


def _find(reference: SecretRef) -> str | None:
    return KEY if reference.env == "TEAM_KEY" else None


def run(folder: Path, spec: AgentSpec, given: Mapping[str, str] | None = None, **fields: Any) -> RunEnd:
    """One run to its end."""
    return asyncio.run(run_agent(spec, installed(spec.runner), given or {}, context(folder, **fields)))


def ended(run_id: str, **fields: Any) -> RunEnd:
    """The end of a run that nobody ran: it completed and did nothing, unless ``fields`` say otherwise."""
    plain: dict[str, Any] = {
        "agent": "reviewer", "runner": "claude-code", "runner_version": "1", "model": "claude-sonnet-4-5",
        "provider": "anthropic", "started": "2026-03-01T12:00:00Z", "ended": "2026-03-01T12:10:00Z",
        "scheduled_for": None, "attempt": 1, "status": "completed", "stop": "completed", "reason": "done",
        "exit_code": 0, "session_id": None, "continues": None, "final_text": "", "calls": (), "tools": (),
        "cost_microusd": 0, "cost_reported_microusd": None, "session_cost_microusd": None, "budget_microusd": None,
        "transcript_kind": None, "transcripts": (),
    }  # fmt: skip
    return RunEnd(run_id=run_id, **plain | fields)


def used(end: RunEnd) -> Tokens:
    """What the run says it used, in the stub's own words."""
    total = end.tokens()
    return Tokens(total.input, total.cache_read, total.cache_write, total.output, total.reasoning)
