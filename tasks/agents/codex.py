"""Codex without a terminal: ``codex exec --json`` (headless agent runs, "Codex").

Its records say how the turn ended; its rollout, which is read while it grows, says what every model response used and
what became of each call. ``turn.completed.usage`` is not used: of a resumed thread it is cumulative.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from schemas.agent_run import ModelCall, StopReason
from schemas.agent_spec import AgentSpec
from schemas.errors import WrongUse
from tasks.agents.archive import left_transcripts
from tasks.agents.codex_rollout import OFFERED, Rollout
from tasks.agents.failures import failure_kind
from tasks.agents.process import Ended, Launch, run_program
from tasks.agents.program import JsonObject, find_program, objects, program_version, refuse_unsupported
from tasks.agents.runner import RunEvidence, RunRequest, TurnEnd
from tasks.agents.watch import Watch

__all__ = ["Codex"]

_REMEDY: Final = "install Codex, or name it in the setting codex_program"
_KEY: Final = "MODEL_API_KEY"
"""The variable that holds the key; commands of the agent do not get it."""
_ADDRESSES: Final = {"openai": "https://api.openai.com/v1"}
_SANDBOX: Final = {"read-only": "read-only", "workspace-write": "workspace-write", "full": "danger-full-access"}
_EFFORT: Final = {"off": "none", "low": "low", "medium": "medium", "high": "high", "max": "xhigh"}
_POLL_SECONDS: Final = 0.1

_SWITCHES: Final[dict[str, tuple[str, ...]]] = {
    "features.shell_tool": ("exec_command", "write_stdin"),
    "features.multi_agent": ("multi_agent_v1",),
    "features.goals": ("get_goal", "create_goal", "update_goal"),
    "tools.view_image": ("view_image",),
    "web_search": ("web_search",),
}
"""What switches a tool off; some go together."""


class Codex:
    """The runner ``codex``; `program` is the name or the path of its executable."""

    name: Literal["codex"] = "codex"

    def __init__(self, program: str = "codex") -> None:
        self._program = program

    def version(self) -> str:
        return program_version(self.name, find_program(self.name, self._program, _REMEDY), _REMEDY)

    async def run(self, request: RunRequest, watch: Watch) -> RunEvidence:
        refuse_unsupported(self.name, request.spec, frozenset())
        path = find_program(self.name, self._program, _REMEDY)
        home = request.home / "codex"
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(_configuration(request), encoding="utf-8")
        own = {"CODEX_HOME": str(home)}
        if (key := request.keys.get(request.spec.agent.provider)) is not None:
            own[_KEY] = key
        command = _command(path, request)
        launch = Launch(command, request.workspace, dict(request.environment) | own, request.prompt.encode())
        reading = _Reading(watch)
        rollout = Rollout(home / "sessions", watch, request)
        following = asyncio.ensure_future(_follow(rollout))
        try:
            ended = await run_program(launch, watch, reading.line)
        finally:
            following.cancel()
        rollout.read()
        return _evidence(request, reading, rollout, ended)


async def _follow(rollout: Rollout) -> None:
    while True:
        await asyncio.sleep(_POLL_SECONDS)
        rollout.read()


def _command(path: str, request: RunRequest) -> tuple[str, ...]:
    sandbox = ["--sandbox", _SANDBOX[request.spec.permissions.mode]]
    options = ["--json", "--skip-git-repo-check", "--color", "never", "--ignore-rules"]
    if request.prior is None:
        return (path, "exec", *options, *sandbox, "-")
    return (path, "exec", *options, *sandbox, "resume", request.prior.session_id, "-")


def _configuration(request: RunRequest) -> str:
    """The program's configuration: one provider, no telemetry, no update, and the tools that are not allowed off."""
    spec = request.spec
    provider = spec.agent.provider
    address = spec.endpoint.base_url or _ADDRESSES.get(provider)
    if address is None:
        raise WrongUse(f"agent {spec.name}: endpoints.{provider}.base_url is needed: codex knows no address for it")
    values: dict[str, Any] = {
        "model": spec.agent.model,
        "model_provider": "endpoint",
        "developer_instructions": spec.agent.system_prompt,
        "check_for_update_on_startup": False,
        "approval_policy": "never",
        "analytics.enabled": False,
        "feedback.enabled": False,
        "shell_environment_policy.inherit": "all",
        "shell_environment_policy.exclude": [_KEY],
        "model_providers.endpoint.name": provider,
        "model_providers.endpoint.base_url": address if address.endswith("/v1") else f"{address}/v1",
        "model_providers.endpoint.env_key": _KEY,
        "model_providers.endpoint.wire_api": "responses",
    }
    if spec.agent.retry is not None:
        values["model_providers.endpoint.request_max_retries"] = int(spec.agent.retry.max) - 1
        values["model_providers.endpoint.stream_max_retries"] = int(spec.agent.retry.max) - 1
    if spec.agent.reasoning_effort is not None:
        values["model_reasoning_effort"] = _EFFORT[spec.agent.reasoning_effort]
    values |= _narrowing(spec)
    # A JSON string or list is TOML's too.
    return "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in values.items())


def _narrowing(spec: AgentSpec) -> dict[str, Any]:
    if spec.tools is None:
        return {}
    unknown = sorted(set(spec.tools) - OFFERED)
    if unknown:
        raise WrongUse(f"agent {spec.name}: codex has no tool {unknown[0]} (it has: {', '.join(sorted(OFFERED))})")
    off = [switch for switch, tools in _SWITCHES.items() if not set(tools) & set(spec.tools)]
    return {switch: "disabled" if switch == "web_search" else False for switch in off}


@dataclass
class _Reading:
    """What the records of standard output have said so far."""

    watch: Watch
    thread: str | None = None
    turn: TurnEnd = "none"
    failure: str = ""
    warnings: list[str] = field(default_factory=list)

    def line(self, line: bytes) -> None:
        record = objects(line)
        if record is None:
            return
        kind = record.get("type")
        if kind == "thread.started":
            self.thread = str(record.get("thread_id"))
        elif kind == "turn.started":
            self.turn = "open"
        elif kind == "turn.completed":
            self.turn = "completed"
        elif kind == "turn.failed":
            self.turn = "failed"
            self.failure = _message(record.get("error"))
        elif kind == "error":
            self.warnings.append(str(record.get("message")))
            self.watch.log(f"says there is an error: {record.get('message')}")
        elif kind == "item.completed":
            self._item(record.get("item") or {})

    def _item(self, item: JsonObject) -> None:
        if item.get("type") == "agent_message":
            self.watch.log(f"says {item.get('text')}")
        elif item.get("type") == "command_execution":
            self.watch.log(f"ran {item.get('command')}: exit {item.get('exit_code')}")


def _message(error: object) -> str:
    """A failure's words; the provider's own stand in a document inside of them."""
    text = str(error.get("message")) if isinstance(error, dict) else str(error)
    inner = objects(text.encode())
    words = (inner or {}).get("error")
    return f"{words.get('type')}: {words.get('message')}" if isinstance(words, dict) else text


def _evidence(request: RunRequest, reading: _Reading, rollout: Rollout, ended: Ended) -> RunEvidence:
    stop: StopReason | None = None
    detail = ""
    if reading.turn == "failed":
        stop, detail = failure_kind(reading.failure), reading.failure
    elif reading.turn == "open":
        waiting = f"; it last said: {reading.warnings[-1]}" if reading.warnings else ""
        detail = f"its turn began and nothing closes it{waiting}"
    elif reading.turn == "none":
        words = [*ended.error.splitlines(), *reading.warnings, ended.missing]
        detail = next((word.strip() for word in reversed(words) if word.strip()), "it ended before a turn began")
        stop = "runner_failed"
    calls: tuple[ModelCall, ...] = tuple(rollout.calls)
    return RunEvidence(
        version=rollout.version,
        turn=reading.turn,
        final_text=rollout.final_text if reading.turn == "completed" else "",
        session_id=reading.thread,
        exit_code=ended.exit_code,
        stop=stop,
        detail=detail,
        calls=calls,
        tools=tuple(rollout.tools()),
        transcripts=left_transcripts("codex", request.home),
    )
