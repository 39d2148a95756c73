"""How a tool's call went, told from its output and from the events around it."""

from __future__ import annotations

import re

from schemas.lenient_json import UndecodableJSON, decode_value
from tasks.land.codex.rows import Members, Row, text, within

__all__ = ["event_outcome", "member_json", "output_outcome", "status_outcome"]

_EXIT = re.compile(r"(?:Process exited with code|Exit code:) (-?\d{1,9})")
_HEAD_LINES = 6
_ABORTED = "aborted by user"
_UNSUPPORTED = ("unsupported call: ", "unsupported custom tool call: ")
_STATUS = {"completed": False, "success": False, "failed": True, "declined": True}


def status_outcome(status: str) -> bool | None:
    return _STATUS.get(status)


def event_outcome(row: Row) -> tuple[str, bool | None]:
    """Which call an event is about, and whether it failed; None when the event does not tell."""
    item, payload = row.item, row.payload
    match text(item, "type") or row.name:
        case "CommandExecution" | "FileChange" | "McpToolCall" | "CollabAgentToolCall":
            return text(item, "id"), _exit(item)
        case "SubAgentActivity":
            return text(item, "id"), False if text(item, "kind") == "started" else None
        case "exec_command_end":
            return text(payload, "call_id"), _exit(payload)
        case "patch_apply_end":
            success = payload.get("success")
            return text(payload, "call_id"), None if not isinstance(success, bool) else not success
        case "mcp_tool_call_end":
            result = within(payload, "result")
            return text(payload, "call_id"), "Err" in result if result.keys() & {"Ok", "Err"} else None
        case "collab_agent_spawn_end":
            return text(payload, "call_id"), False if text(payload, "new_thread_id") else None
    return "", None


def output_outcome(output: object, words: str, known: bool | None) -> bool | None:
    """Whether a call failed. `words` is its output as text, `known` what events before it told."""
    if words.rstrip().endswith(_ABORTED):
        return True
    if known is not None:
        return known
    stated = output if isinstance(output, dict) else member_json(words)
    metadata = within(stated, "metadata").get("exit_code")
    if type(metadata) is int:
        return metadata != 0
    if isinstance(stated.get("success"), bool):
        return not stated["success"]
    for line in words.split("\n", _HEAD_LINES)[:_HEAD_LINES]:
        if found := _EXIT.match(line):
            return int(found[1]) != 0
    if words.startswith(_UNSUPPORTED):
        return True
    return False if text(stated, "agent_id") else None


def member_json(words: str) -> Members:
    """The JSON object that a text is, else an empty one."""
    if not words.lstrip().startswith("{"):
        return {}
    try:
        value = decode_value(words.encode())
    except UndecodableJSON:
        return {}
    return value if isinstance(value, dict) else {}


def _exit(members: Members) -> bool | None:
    code = members.get("exit_code")
    return code != 0 if type(code) is int else status_outcome(text(members, "status"))
