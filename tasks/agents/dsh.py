"""DeepSeek Harness through its Python SDK, in a process of ours that can be killed (headless agent runs, "DSH").

The SDK runs in `tasks.agents.dsh_program`, which prints the session's events as they come. The last `turn/end` is the
evidence of how the run ended. Telemetry is off, and so is what the program would add to each model request by default:
the session's log and the list of its plugins.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from schemas.agent_run import ModelCall, StopReason, ToolOutcome, ToolUse
from schemas.errors import RunnerMissing
from tasks.agents.archive import left_transcripts
from tasks.agents.failures import failure_kind
from tasks.agents.process import Ended, Launch, run_program
from tasks.agents.program import JsonObject, objects, refuse_unsupported, tokens
from tasks.agents.runner import RunEvidence, RunRequest, TurnEnd
from tasks.agents.watch import Watch

__all__ = ["Dsh"]

_PACKAGE: Final = "deepseek-harness-sdk"
_REMEDY: Final = "install sessionmill with its extra dsh: pip install -e '.[dsh]'"
_SUPPORTED: Final = frozenset({"max_tokens"})
_MODES: Final = {"read-only": "read-only", "workspace-write": "workspace-write", "full": "danger-full-access"}
_USAGE: Final = ("inputTokens", "cacheReadTokens", "cacheWriteTokens", "outputTokens")
_PROGRAM: Final = Path(__file__).with_name("dsh_program.py")
_NARROW: Final = Path(__file__).with_name("dsh_narrow.mjs")
_SENT_BY_DEFAULT: Final = (
    "session-log-deepseek",
    "plugin-package-inventory-deepseek",
    "session-telemetry-otel",
    "otel",
)
"""Plugins that would send a session, or what is installed, to somebody."""


class Dsh:
    """The runner ``dsh``."""

    name: Literal["dsh"] = "dsh"

    def version(self) -> str:
        try:
            return importlib.metadata.version(_PACKAGE)
        except importlib.metadata.PackageNotFoundError:
            raise RunnerMissing(self.name, f"the package {_PACKAGE} is not installed", _REMEDY) from None

    async def run(self, request: RunRequest, watch: Watch) -> RunEvidence:
        refuse_unsupported(self.name, request.spec, _SUPPORTED)
        version = self.version()
        patch = request.home / "dsh-patch.yml"
        patch.write_text(json.dumps(_patches(request)), encoding="utf-8")
        # -P: the workspace, where it starts, is no place for its modules.
        command = (sys.executable, "-P", str(_PROGRAM))
        launch = Launch(command, request.workspace, _environment(request), _task(request, patch))
        reading = _Reading(watch, request.spec.tools)
        ended = await run_program(launch, watch, reading.line)
        return _evidence(request, reading, ended, version)


def _task(request: RunRequest, patch: Path) -> bytes:
    agent = request.spec.agent
    options = {
        "dsh_home": str(request.home / "dsh"),
        "cwd": str(request.workspace),
        "model": agent.model,
        "patches": [str(patch)],
        "reasoning_effort": agent.reasoning_effort,
        "max_tokens": None if agent.max_tokens is None else int(agent.max_tokens),
    }
    resume = request.prior.session_id if request.prior else None
    return json.dumps({"options": options, "prompt": request.prompt, "resume": resume}).encode()


def _patches(request: RunRequest) -> list[JsonObject]:
    """Changes to the program's composition, as JSON, which is YAML too."""
    spec = request.spec
    patches: list[JsonObject] = [{"id": name, "disabled": True} for name in _SENT_BY_DEFAULT]
    # `{{name}}` would be filled in by the program; an author's text is not its template.
    persona = spec.agent.system_prompt.replace("{{", "{ {")
    patches.append({"id": "system-prompt", "config": {"personaPrefix": persona}})
    if spec.agent.retry is not None:
        policy = {"mode": "normal", "maxRetries": int(spec.agent.retry.max) - 1}
        patches.append({"id": "llm-deepseek", "config": {"retryPolicy": policy}})
    if spec.tools is not None:
        narrow = {"id": "sessionmill-narrow", "name": str(_NARROW), "config": {"allow": spec.tools}}
        patches.append({"insert": [narrow]})
    return patches


def _environment(request: RunRequest) -> dict[str, str]:
    spec = request.spec
    own = {
        "DSH_TELEMETRY_MODE": "DISABLED",
        "DSH_PERMISSION_MODE": _MODES[spec.permissions.mode],
        "DSH_MAX_TOKENS_AS_SUCCESS": "false",
        "DO_NOT_TRACK": "1",
    }
    if (key := request.keys.get(spec.agent.provider)) is not None:
        own["DEEPSEEK_API_KEY"] = key
    if spec.endpoint.base_url is not None:
        own["DEEPSEEK_BASE_URL"] = spec.endpoint.base_url
    return dict(request.environment) | own


@dataclass
class _Reading:
    """What the events of the session and its children have said so far."""

    watch: Watch
    allowed: list[str] | None
    session: str | None = None
    turn: TurnEnd = "none"
    reason: JsonObject = field(default_factory=dict)
    error: str = ""
    text: str = ""
    calls: list[ModelCall] = field(default_factory=list)
    tools: dict[str, str] = field(default_factory=dict)
    outcomes: dict[str, ToolOutcome] = field(default_factory=dict)

    def line(self, line: bytes) -> None:
        record = objects(line)
        if record is None:
            return
        if "session" in record:
            self.session = str(record["session"])
        elif "error" in record:
            self.error = str(record["error"])
        elif isinstance(event := record.get("event"), dict):
            self._event(event, str(record.get("of")))

    def _event(self, event: JsonObject, session: str) -> None:
        kind, data = event.get("type"), event.get("data") or {}
        ours = session == self.session
        if kind == "turn/start" and ours:
            self.turn = "open"
        elif kind == "turn/end" and ours:
            self._turn_end(data.get("reason") or {})
        elif kind == "assistant/message":
            self._answer(f"{session}:t{data.get('turn')}.s{data.get('step')}", data, ours, event.get("time"))
        elif kind == "compaction/summary" and isinstance(data.get("usage"), dict):
            self._call(f"{session}:c:{data.get('compactionId')}", str(data.get("model")), data["usage"], None)
        elif kind == "tool/call":
            self.tools[f"{session}:{data.get('callId')}"] = str(data.get("name"))
            self.watch.log(f"tool {data.get('name')}")
        elif kind == "tool/result":
            self._result(session, data)
        elif kind == "llm/retry":
            failure = data.get("failure") or {}
            self.watch.log(f"asking the model again, attempt {data.get('retry')}: {failure.get('message')}")

    def _turn_end(self, reason: JsonObject) -> None:
        kind = reason.get("kind")
        self.reason = reason
        if kind == "completed":
            self.turn = "completed"
        else:
            self.turn = "aborted" if kind in ("aborted", "interrupted", "forked") else "failed"

    def _answer(self, key: str, data: JsonObject, ours: bool, time: object) -> None:
        message = data.get("message") or {}
        content = message.get("content") or []
        if ours:
            self.text = "".join(str(block.get("text")) for block in content if block.get("type") == "text")
            self.watch.log(f"says {self.text}") if self.text else None
        model = str((message.get("source") or {}).get("model") or "")
        self._call(key, model, data.get("usage"), time)
        if any(block.get("type") == "tool-call" for block in content):
            self.watch.tool_round()
            self.watch.one_more_turn()

    def _call(self, key: str, model: str, usage: Any, time: object) -> None:
        counted = None
        if isinstance(usage, dict):
            counted = tokens(usage, _USAGE, usage.get("reasoningTokens"))
        call = ModelCall(key, model, counted, time * 1000 if isinstance(time, int) else None)
        self.calls.append(call)
        self.watch.call(call)

    def _result(self, session: str, data: JsonObject) -> None:
        message = data.get("message") or {}
        call = f"{session}:{message.get('toolCallId')}"
        if call in self.tools and call not in self.outcomes:
            self.outcomes[call] = self._outcome(self.tools[call], message, str((data.get("error") or {}).get("code")))
            self.watch.tool(ToolUse(self.tools[call], self.outcomes[call]))

    def _outcome(self, name: str, message: JsonObject, code: str) -> ToolOutcome:
        if not message.get("isError"):
            return "ok"
        text = " ".join(str(block.get("text")) for block in message.get("content") or [])
        if code == "UNKNOWN_TOOL":
            return (
                "denied"
                if self.allowed is not None and name in OFFERED and name not in self.allowed
                else "unknown_tool"
            )
        if "[sandbox: " in text or "no sandbox backend is usable" in text or "denied" in text:
            return "denied"
        return "cancelled" if code.startswith("ABORTED") else "error"


OFFERED: Final = frozenset(
    {"bash", "create_goal", "edit", "exit_plan_mode", "get_goal", "glob", "grep", "interrupt_agent", "job_kill"}
    | {"job_list", "job_output", "list_agents", "read", "read_image", "send_message", "skill", "subagent"}
    | {
        "subagent_fork",
        "todo_write",
        "update_goal",
        "web_fetch",
        "web_search",
        "workflow",
        "working_directory",
        "write",
    }
)
"""The tools that the program offers by itself; one of these that it does not know was taken away."""


def _evidence(request: RunRequest, reading: _Reading, ended: Ended, version: str) -> RunEvidence:
    stop: StopReason | None = None
    error = reading.reason.get("error") or {}
    detail = str(error.get("message") or "")
    if reading.turn == "failed":
        kind = str(reading.reason.get("kind"))
        detail = detail or f"its turn ended with {kind}"
        stop = "output_limit" if kind == "max-tokens" else failure_kind(detail, code=str(error.get("code") or ""))
    elif reading.turn == "open":
        detail = "its turn began and nothing closes it"
    elif reading.turn == "none":
        words = [*ended.error.splitlines(), reading.error, ended.missing]
        detail = next((word.strip() for word in reversed(words) if word.strip()), "it ended before a turn began")
        stop = "runner_failed"
    return RunEvidence(
        version=version,
        turn=reading.turn,
        final_text=reading.text if reading.turn == "completed" else "",
        session_id=reading.session,
        exit_code=ended.exit_code,
        stop=stop,
        detail=detail,
        calls=tuple(reading.calls),
        tools=tuple(ToolUse(name, reading.outcomes.get(call, "open")) for call, name in reading.tools.items()),
        transcripts=left_transcripts("dsh", request.home),
    )
