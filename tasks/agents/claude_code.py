"""Claude Code in print mode: ``claude -p --output-format stream-json`` (headless agent runs, "Claude Code").

Its last record, `result`, is the evidence that the turn ended; without one the turn is open, whatever the exit code.
Usage is counted by message id from the stream and from the transcripts, which also hold what sub-agents used; figures
of a resumed session are cumulative, and what runs before this one used is taken out.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from schemas.agent_run import ModelCall, StopReason, TokenCount, ToolOutcome, ToolUse
from tasks.agents.archive import left_transcripts
from tasks.agents.failures import failure_kind
from tasks.agents.process import Ended, Launch, run_program
from tasks.agents.program import JsonObject, find_program, objects, program_version, refuse_unsupported, tokens
from tasks.agents.runner import RunEvidence, RunRequest, TurnEnd
from tasks.agents.watch import Watch

__all__ = ["ClaudeCode"]

_REMEDY: Final = "install Claude Code, or name it in the setting claude_program"
_SUPPORTED: Final = frozenset({"max_tokens"})
_MODES: Final = {"read-only": "dontAsk", "workspace-write": "acceptEdits", "full": "bypassPermissions"}
_WRITES: Final = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
"""Allowed by name these would write anywhere; the permission mode allows them in the workspace."""
_USAGE: Final = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
_LIMITS: Final[dict[str, StopReason]] = {"error_max_turns": "turn_limit", "error_max_budget_usd": "budget_exceeded"}


class ClaudeCode:
    """The runner ``claude-code``; `program` is the name or the path of its executable."""

    name: Literal["claude-code"] = "claude-code"

    def __init__(self, program: str = "claude") -> None:
        self._program = program

    def version(self) -> str:
        return program_version(self.name, find_program(self.name, self._program, _REMEDY), _REMEDY)

    async def run(self, request: RunRequest, watch: Watch) -> RunEvidence:
        refuse_unsupported(self.name, request.spec, _SUPPORTED)
        path = find_program(self.name, self._program, _REMEDY)
        session = request.prior.session_id if request.prior else str(uuid.uuid4())
        launch = Launch(_command(path, request, session), request.workspace, _environment(request), _given(request))
        reading = _Reading(watch)
        ended = await run_program(launch, watch, reading.line)
        return _evidence(request, reading, ended)


def _command(path: str, request: RunRequest, session: str) -> tuple[str, ...]:
    spec, limits = request.spec, request.spec.limits
    command = [path, "-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"]
    command += ["--model", spec.agent.model, "--append-system-prompt", spec.agent.system_prompt]
    command += ["--resume" if request.prior else "--session-id", session]
    command += ["--max-turns", str(limits.turns), "--permission-mode", _MODES[spec.permissions.mode]]
    # The workspace's own settings could allow what the specification does not.
    command += ["--setting-sources", "user", "--strict-mcp-config"]
    if limits.cost_microusd is not None:
        command += ["--max-budget-usd", f"{limits.cost_microusd / 1_000_000:.6f}"]
    if spec.agent.reasoning_effort not in (None, "off"):
        command += ["--effort", str(spec.agent.reasoning_effort)]
    if spec.tools is not None:
        command += ["--tools", ",".join(spec.tools)]
        allowed = [tool for tool in spec.tools if tool not in _WRITES]
        if allowed and spec.permissions.mode == "workspace-write":
            command += ["--allowedTools", ",".join(allowed)]
    return tuple(command)


def _given(request: RunRequest) -> bytes:
    return request.prompt.encode()


def _environment(request: RunRequest) -> dict[str, str]:
    spec = request.spec
    # Telemetry, error reports, updates and every request but those to the model are off.
    own = {
        "CLAUDE_CONFIG_DIR": str(request.home / "claude"),
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    if spec.permissions.mode == "full":
        # Without it the program refuses this mode to root, which it often is in a container.
        own["IS_SANDBOX"] = "1"
    if (key := request.keys.get(spec.agent.provider)) is not None:
        own["ANTHROPIC_API_KEY"] = key
    if spec.endpoint.base_url is not None:
        own["ANTHROPIC_BASE_URL"] = spec.endpoint.base_url
    if spec.agent.retry is not None:
        own["CLAUDE_CODE_MAX_RETRIES"] = str(int(spec.agent.retry.max) - 1)
    if spec.agent.reasoning_effort == "off":
        own["MAX_THINKING_TOKENS"] = "0"
    if spec.agent.max_tokens is not None:
        own["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] = str(int(spec.agent.max_tokens))
    return dict(request.environment) | own


@dataclass
class _Message:
    model: str
    tokens: TokenCount | None = None


@dataclass
class _Reading:
    """What the records of the stream have said so far."""

    watch: Watch
    session: str | None = None
    version: str = ""
    result: JsonObject | None = None
    retry: JsonObject | None = None
    messages: dict[str, _Message] = field(default_factory=dict)
    tools: dict[str, str] = field(default_factory=dict)
    outcomes: dict[str, ToolOutcome] = field(default_factory=dict)
    current: dict[object, str] = field(default_factory=dict)
    """The message that streams now, by the call of the sub-agent that streams it."""

    def line(self, line: bytes) -> None:
        record = objects(line)
        if record is None:
            return
        kind, subtype = record.get("type"), record.get("subtype")
        if kind == "system" and subtype == "init":
            self.session = record.get("session_id")
            self.version = str(record.get("claude_code_version") or "")
        elif kind == "system" and subtype == "api_retry":
            self.retry = record
            self.watch.log(f"asking the model again, attempt {record.get('attempt')}: {record.get('error')}")
        elif kind == "system" and subtype == "permission_denied":
            self.outcomes[str(record.get("tool_use_id"))] = "denied"
        elif kind == "stream_event":
            self._event(record.get("event") or {}, record.get("parent_tool_use_id"))
        elif kind == "assistant":
            self._assistant(record.get("message") or {})
        elif kind == "user":
            self._results(record.get("message") or {})
        elif kind == "result":
            self.result = record

    def _event(self, event: JsonObject, stream: object) -> None:
        if event.get("type") == "message_start":
            message = event.get("message") or {}
            self.current[stream] = str(message.get("id"))
            self.messages.setdefault(self.current[stream], _Message(str(message.get("model") or "")))
        elif event.get("type") == "message_delta" and isinstance(event.get("usage"), dict) and stream in self.current:
            key = self.current[stream]
            message = self.messages[key]
            message.tokens = _usage(event["usage"])
            self.watch.call(ModelCall(key, message.model, message.tokens))
            if (event.get("delta") or {}).get("stop_reason") == "tool_use":
                self.watch.tool_round()

    def _assistant(self, message: JsonObject) -> None:
        for block in _blocks(message):
            if block.get("type") == "tool_use":
                self.tools[str(block.get("id"))] = str(block.get("name"))
                self.watch.log(f"tool {block.get('name')}")
            elif block.get("type") == "text":
                self.watch.log(f"says {block.get('text')}")

    def _results(self, message: JsonObject) -> None:
        for block in _blocks(message):
            if block.get("type") == "tool_result" and (call := str(block.get("tool_use_id"))) in self.tools:
                outcome = self.outcomes.setdefault(call, _outcome(block))
                self.watch.tool(ToolUse(self.tools[call], outcome))


def _blocks(message: JsonObject) -> Iterator[JsonObject]:
    content = message.get("content")
    yield from (block for block in content if isinstance(block, dict)) if isinstance(content, list) else ()


def _outcome(block: JsonObject) -> ToolOutcome:
    if not block.get("is_error"):
        return "ok"
    text = str(block.get("content"))
    if "is disabled for this session" in text:
        return "denied"
    return "unknown_tool" if "No such tool available" in text else "error"


def _usage(usage: JsonObject) -> TokenCount | None:
    details = usage.get("output_tokens_details")
    thinking = details.get("thinking_tokens") if isinstance(details, dict) else None
    return tokens(usage, _USAGE, thinking)


def _evidence(request: RunRequest, reading: _Reading, ended: Ended) -> RunEvidence:
    result = reading.result
    turn, stop, detail = _ending(reading, ended)
    before = request.prior.cost_reported_microusd if request.prior else 0
    cost = result.get("total_cost_usd") if result else None
    denied = {str(each.get("tool_use_id")) for each in (result or {}).get("permission_denials") or []}
    return RunEvidence(
        version=reading.version,
        turn=turn,
        final_text=str(result.get("result") or "") if result and turn == "completed" else "",
        session_id=reading.session,
        exit_code=ended.exit_code,
        stop=stop,
        detail=detail,
        calls=_calls(request, reading),
        tools=tuple(
            ToolUse(name, "denied" if call in denied else reading.outcomes.get(call, "open"))
            for call, name in reading.tools.items()
        ),
        cost_reported_microusd=round(cost * 1_000_000) - before if isinstance(cost, int | float) else None,
        transcripts=left_transcripts("claude-code", request.home),
    )


def _ending(reading: _Reading, ended: Ended) -> tuple[TurnEnd, StopReason | None, str]:
    result = reading.result
    if result is None:
        if reading.session is None:
            return "none", "runner_failed", _last_line(ended.error) or ended.missing or "it ended before it began"
        status = reading.retry.get("error_status") if reading.retry else None
        waiting = f"; the provider answered {status}" if status else ""
        return "open", None, f"its stream ends without a result{waiting}"
    subtype = str(result.get("subtype"))
    said = str(result.get("result") or "; ".join(map(str, result.get("errors") or [])))
    if subtype in _LIMITS:
        return "aborted", _LIMITS[subtype], said or subtype
    if subtype == "success" and not result.get("is_error"):
        return "completed", None, ""
    if result.get("terminal_reason") == "aborted_streaming" or subtype == "error_during_execution":
        return "aborted", None, said or subtype
    status = result.get("api_error_status")
    return "failed", failure_kind(said, status=status if isinstance(status, int) else None), said


def _calls(request: RunRequest, reading: _Reading) -> tuple[ModelCall, ...]:
    """Each message once, with the greatest count of output: the transcripts repeat a message for each of its blocks."""
    found = {key: ModelCall(key, each.model, each.tokens) for key, each in reading.messages.items()}
    for file in sorted((request.home / "claude" / "projects").rglob("*.jsonl")):
        if file.is_file():
            for key, call in _written(file):
                # One that the stream left without a count was cut: what its transcript says is how it began.
                known = found.setdefault(key, call)
                if known.tokens and call.tokens and call.tokens.output > known.tokens.output:
                    found[key] = call
    before = {call.key for call in request.prior.calls} if request.prior else set()
    return tuple(call for key, call in found.items() if key not in before)


def _written(file: Path) -> Iterator[tuple[str, ModelCall]]:
    with file.open("rb") as lines:
        for line in lines:
            record = objects(line) if b'"assistant"' in line else None
            message: Any = (record or {}).get("message")
            if not isinstance(message, dict) or not isinstance(message.get("usage"), dict):
                continue
            key, model = str(message.get("id")), str(message.get("model") or "")
            if model != "<synthetic>":
                yield key, ModelCall(key, model, _usage(message["usage"]))


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
