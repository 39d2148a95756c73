"""The runner ``native``: the program of this package as a bounded child process, and what its lines are evidence of.

The session keeps the run's limits itself, before each request and before each tool round, so nothing has to be stopped
from outside but the time; what it ends with names the limit.
"""

from __future__ import annotations

import importlib.metadata
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from schemas._relavium_model import plain
from schemas.agent_run import ModelCall, StopReason, TokenCount, ToolOutcome, ToolUse
from schemas.errors import RunnerMissing, WrongUse
from tasks.agents.failures import failure_kind
from tasks.agents.native.conversation import MAYBE_BILLED, Usage
from tasks.agents.native.program import Access, Task
from tasks.agents.native.workspace_tools import TOOLS
from tasks.agents.process import Ended, Launch, run_program
from tasks.agents.program import JsonObject, objects, refuse_unsupported
from tasks.agents.runner import RunEvidence, RunRequest, Transcripts, TurnEnd
from tasks.agents.watch import Watch

__all__ = ["Native"]

_PACKAGE: Final = "pydantic-ai-slim"
_REMEDY: Final = "install sessionmill with its extra native: pip install -e '.[native]'"
_SUPPORTED: Final = frozenset({"temperature", "max_tokens", "memory", "fallback_chain"})
_OURS: Final = Path(__file__).parents[3]
"""Where our packages lie; the program finds them there, whatever it is started in."""

_STOPS: Final[dict[str, StopReason]] = {
    "turn_limit": "turn_limit",
    "tool_loop": "tool_round_limit",
    "context_overflow": "context_overflow",
    "max_tokens": "output_limit",
    "content_filter": "provider_refused",
    "not_stored": "runner_failed",
}
_CAPS: Final[dict[str, StopReason]] = {
    "tokens": "token_limit",
    "cost_microusd": "budget_exceeded",
    "wall_time": "timeout",
    "answers": "turn_limit",
    "tool_rounds": "tool_round_limit",
}
_FAILURES: Final[dict[str, StopReason]] = {
    "OVERLOADED": "provider_unavailable",
    "UNREACHABLE": "provider_unavailable",
    "STREAM_CLOSED": "provider_unavailable",
    "AUTH": "provider_refused",
    "QUOTA": "provider_refused",
    "CONTENT_FILTER": "provider_refused",
    "MALFORMED_RESPONSE": "runner_failed",
    "UNSUPPORTED_REQUEST": "runner_failed",
    "UNSUPPORTED_MODEL": "runner_failed",
}
_OUTCOMES: Final[dict[str, ToolOutcome]] = {
    "TOOL_DENIED": "denied",
    "UNKNOWN_TOOL": "unknown_tool",
    "ABORTED": "cancelled",
    "BUDGET_EXCEEDED": "cancelled",
}


class Native:
    """The runner ``native``. ``silence_seconds`` is how long a provider may say nothing before a request has failed."""

    name: Literal["native"] = "native"

    def __init__(self, *, silence_seconds: float = 300.0) -> None:
        self._silence_seconds = silence_seconds

    def version(self) -> str:
        try:
            return importlib.metadata.version(_PACKAGE)
        except importlib.metadata.PackageNotFoundError:
            raise RunnerMissing(self.name, f"the package {_PACKAGE} is not installed", _REMEDY) from None

    async def run(self, request: RunRequest, watch: Watch) -> RunEvidence:
        spec = request.spec
        refuse_unsupported(self.name, spec, _SUPPORTED)
        unknown = sorted(set(spec.tools or ()) - TOOLS.keys())
        if unknown:
            raise WrongUse(f"agent {spec.name}: native has no tool {unknown[0]} (it has: {', '.join(sorted(TOOLS))})")
        version = self.version()
        task = msgspec.json.encode(_task(request, self._silence_seconds))
        # -P: the workspace, where it starts, is no place for its modules.
        command = (sys.executable, "-P", "-m", "tasks.agents.native")
        environment = dict(request.environment) | {"PYTHONPATH": str(_OURS)}
        reading = _Reading(watch)
        ended = await run_program(Launch(command, request.workspace, environment, task), watch, reading.line)
        return _evidence(request, reading, ended, version)


def _task(request: RunRequest, silence_seconds: float) -> Task:
    spec, limits = request.spec, request.spec.limits
    addresses = {name: endpoint.base_url for name, endpoint in spec.endpoints.items()}
    return Task(
        agent=plain(spec.agent),
        prompt=request.prompt,
        workspace=str(request.workspace),
        sessions=str(_sessions(request)),
        temporary=request.environment.get("TMPDIR"),
        resume=request.prior.session_id if request.prior is not None else None,
        access={name: Access(key, addresses.get(name)) for name, key in request.keys.items()},  # type: ignore[call-overload]
        secrets=[*request.keys.values(), *_secret_variables(request)],
        mode=spec.permissions.mode,
        tools=spec.tools,
        tokens=limits.tokens,
        cost_microusd=limits.cost_microusd,
        wall_ms=limits.wall_seconds * 1000,
        answers=limits.turns,
        tool_rounds=limits.tool_rounds,
        silence_seconds=silence_seconds,
    )


def _secret_variables(request: RunRequest) -> list[str]:
    return [request.environment[name] for name, each in request.spec.environment.items() if each.value is None]


def _sessions(request: RunRequest) -> Path:
    return request.home / "native" / "sessions"


@dataclass
class _Reading:
    """What the program's lines have said so far."""

    watch: Watch
    session: str | None = None
    turn: TurnEnd = "none"
    model: str = ""
    result: JsonObject = field(default_factory=dict)
    error: str = ""
    calls: list[ModelCall] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    tools: list[ToolUse] = field(default_factory=list)

    def line(self, line: bytes) -> None:
        record = objects(line)
        if record is None:
            return
        if "session" in record:
            self.session = str(record["session"])
        elif "error" in record:
            self.error = str(record["error"])
        elif "result" in record:
            self.result = record["result"]
        elif isinstance(event := record.get("event"), dict):
            self._event(event)

    def _event(self, event: JsonObject) -> None:
        kind, data = event["type"], event["data"]
        if kind == "turn/start":
            self.turn = "open"
        elif kind == "turn/end":
            ended = data["reason"]["kind"]
            self.turn = {"completed": "completed", "aborted": "aborted"}.get(ended, "failed")  # type: ignore[assignment]
        elif kind == "request/context":
            self.model = data["model"]
        elif kind == "assistant/message":
            self._answer(event, data)
        elif kind == "assistant/chunk":
            self._attempt(event, data)
        elif kind == "compaction/summary":
            key = f"{self.session}:c:{data['compactionId']}"
            self._call(key, data["model"], Usage.of_event(data.get("usage")), event["time"])
        elif kind == "tool/result":
            self._result(data)
        elif kind == "llm/retry":
            self.watch.log(f"asking again, attempt {data['retry'] + 1}: {data['failure']['message']}")

    def _answer(self, event: JsonObject, data: JsonObject) -> None:
        content = data["message"]["content"]
        for block in content:
            if block["type"] == "text" and block["text"]:
                self.watch.log(f"says {block['text']}")
            elif block["type"] == "tool-call":
                self.names[block["id"]] = block["name"]
                self.watch.log(f"calls {block['name']}")
        model = data["message"]["source"]["model"]
        self._call(f"{self._step(data)}", model, Usage.of_event(data.get("usage")), event["time"])

    def _attempt(self, event: JsonObject, data: JsonObject) -> None:
        """A request that got no answer is a call whose tokens nobody knows, unless it was refused."""
        reason = data["chunk"].get("reason", {})
        code = reason.get("failure", {}).get("code")
        if data["chunk"]["type"] == "finish" and code in MAYBE_BILLED:
            self._call(f"{self._step(data)}.a1", self.model, None, event["time"])

    def _step(self, data: JsonObject) -> str:
        return f"{self.session}:t{data['turn']}.s{data['step']}"

    def _call(self, key: str, model: str, usage: Usage | None, time: int) -> None:
        tokens = None
        if usage is not None:
            tokens = TokenCount(
                usage.input_uncached, usage.cache_read, usage.cache_write, usage.output, usage.reasoning or 0
            )
        call = ModelCall(key, model, tokens, time * 1000)
        self.calls.append(call)
        self.watch.call(call)

    def _result(self, data: JsonObject) -> None:
        block = data["message"]["content"][0]
        code = data.get("error", {}).get("code", "")
        outcome = _OUTCOMES.get(code, "error") if block["isError"] else "ok"
        use = ToolUse(self.names.pop(block["toolCallId"], ""), outcome)
        self.tools.append(use)
        self.watch.tool(use)


def _evidence(request: RunRequest, reading: _Reading, ended: Ended, version: str) -> RunEvidence:
    stop, detail = _stop(reading, ended)
    root = _sessions(request)
    return RunEvidence(
        version=version,
        turn=reading.turn,
        final_text=str(reading.result.get("text", "")) if reading.turn == "completed" else "",
        session_id=reading.session,
        exit_code=ended.exit_code,
        stop=stop,
        detail=detail,
        calls=tuple(reading.calls),
        tools=(*reading.tools, *(ToolUse(name, "open") for name in reading.names.values())),
        transcripts=Transcripts("dsh", root, tuple(sorted(root.rglob("session*.jsonl*")))),
    )


def _stop(reading: _Reading, ended: Ended) -> tuple[StopReason | None, str]:
    """Why there is no answer, and the sentence for it."""
    result: dict[str, Any] = reading.result
    detail = str(result.get("message") or "")
    if reading.turn == "completed":
        return None, ""
    if not result:
        words = [*ended.error.splitlines(), ended.missing, reading.error]
        said = next((word.strip() for word in reversed(words) if word.strip()), "it ended before its turn did")
        return (None if reading.turn == "open" else "runner_failed"), said
    if result["stop"] == "budget_exceeded":
        return _CAPS[result["cap"]], detail
    if result["stop"] == "provider_error":
        failure = result["failure"]
        code = failure["code"]
        return _FAILURES.get(code) or failure_kind(detail, code=code, status=failure["status"]), detail
    return _STOPS.get(result["stop"]), detail
