"""A Codex rollout read while it grows: what each response used, and what became of each call (Codex, sections 2, 5).

Only what this run wrote counts: of a resumed thread the lines that were there before are passed over.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from schemas.agent_run import ModelCall, ToolOutcome, ToolUse
from tasks.agents.program import JsonObject, objects, tokens
from tasks.agents.runner import RunRequest
from tasks.agents.watch import Watch

__all__ = ["OFFERED", "Rollout"]

_CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_OUTPUTS: Final = frozenset({"function_call_output", "custom_tool_call_output"})
_REFUSED_BY_SANDBOX: Final = re.compile(r"Read-only file system|sandbox denied|rejected by user|approval")
OFFERED: Final = frozenset(
    {"exec_command", "write_stdin", "view_image", "web_search", "multi_agent_v1"}
    | {"get_goal", "create_goal", "update_goal"}
)
"""The tools that the program offers by itself; one of these that it does not know was switched off."""

_USAGE: Final = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens")
_EXIT: Final = re.compile(r"(?:Process exited with code|Exit code:?) (-?\d+)")


class Rollout:
    """The rollouts below `folder`; `read` takes what is new in them."""

    def __init__(self, folder: Path, watch: Watch, request: RunRequest) -> None:
        self.version = ""
        self.final_text = ""
        self.calls: list[ModelCall] = []
        self._folder = folder
        self._watch = watch
        self._sandboxed = request.spec.permissions.mode != "full"
        self._allowed = request.spec.tools
        self._read = {path: path.stat().st_size for path in folder.rglob("rollout-*.jsonl")}
        self._model = request.spec.agent.model
        self._names: dict[str, str] = {}
        self._outcomes: dict[str, ToolOutcome] = {}
        self._calls_tools = False

    def read(self) -> None:
        """Take every whole line that was written since the last time."""
        for path in sorted(self._folder.rglob("rollout-*.jsonl")):
            start = self._read.get(path, 0)
            with path.open("rb") as rollout:
                rollout.seek(start)
                data = rollout.read()
            whole = data.rpartition(b"\n")[0]
            self._read[path] = start + len(whole) + bool(whole)
            for line in whole.split(b"\n") if whole else ():
                if (record := objects(line)) is not None and isinstance(record.get("payload"), dict):
                    self._take(str(record.get("type")), record["payload"])

    def tools(self) -> list[ToolUse]:
        return [ToolUse(name, self._outcomes.get(call, "open")) for call, name in self._names.items()]

    def _take(self, kind: str, payload: JsonObject) -> None:
        if kind == "session_meta":
            self.version = str(payload.get("cli_version") or "")
        elif kind == "turn_context":
            self._model = str(payload.get("model") or self._model)
        elif kind == "response_item":
            self._item(str(payload.get("type")), payload)
        elif kind == "token_usage_record":
            self._usage(payload)
        elif kind == "event_msg" and payload.get("type") == "task_complete":
            self.final_text = str(payload.get("last_agent_message") or "")

    def _item(self, kind: str, payload: JsonObject) -> None:
        call = str(payload.get("call_id"))
        if kind in _CALLS:
            self._names[call] = str(payload.get("name") or kind)
            self._calls_tools = True
        elif kind in _OUTPUTS and call in self._names:
            outcome = self._outcomes[call] = self._outcome(self._names[call], str(payload.get("output")))
            self._watch.tool(ToolUse(self._names[call], outcome))

    def _outcome(self, name: str, output: str) -> ToolOutcome:
        if output.startswith("unsupported call"):
            return "denied" if self._allowed is not None and name in OFFERED else "unknown_tool"
        code = _EXIT.search(output)
        failed = code is not None and code[1] != "0"
        if failed and self._sandboxed and _REFUSED_BY_SANDBOX.search(output):
            return "denied"
        return "error" if output.startswith(("failed to parse", "err:")) else "ok"

    def _usage(self, payload: JsonObject) -> None:
        usage = payload.get("usage") or {}
        count = tokens(usage, _USAGE, usage.get("reasoning_output_tokens"))
        if count is not None:
            # Its input is all of it, the cache's part too.
            count = replace(count, input=max(0, count.input - count.cache_read - count.cache_write))
        call = ModelCall(str(payload.get("response_id")), self._model, count)
        self.calls.append(call)
        self._watch.call(call)
        if self._calls_tools:
            self._calls_tools = False
            self._watch.tool_round()
            self._watch.one_more_turn()
