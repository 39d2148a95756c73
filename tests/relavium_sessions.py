"""Small Relavium sessions, written in a few words."""

from __future__ import annotations

from typing import Any

from schemas.relavium import AgentSessionRecord, SessionMessage, parse_messages, parse_record

__all__ = ["AGENT", "CONTEXT", "call", "message", "messages", "record", "record_value", "result", "said"]

AGENT: dict[str, Any] = {"id": "pilot", "model": "m-1", "provider": "anthropic", "system_prompt": "Keep the log."}
CONTEXT: dict[str, Any] = {"workingDir": "/harbour", "fsScopeTier": "project"}


def record_value(**fields: Any) -> dict[str, Any]:
    return {
        "id": "session-1",
        "agentSlug": "pilot",
        "context": CONTEXT,
        "status": "idle",
        "totalInputTokens": 1,
        "totalOutputTokens": 2,
        "totalCostMicrocents": 3,
        "createdAt": "2026-07-01T09:00:00.000Z",
        "updatedAt": "2026-07-01T09:01:00.000Z",
    } | fields


def record(**fields: Any) -> AgentSessionRecord:
    return parse_record(record_value(**fields), name="record.json")


def said(*texts: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text} for text in texts]


def call(name: str, slot: int = 0) -> dict[str, Any]:
    return {"type": "tool_call", "id": f"session-tool:1:{slot}", "name": name, "argsBytes": 2}


def result(slot: int = 0) -> dict[str, Any]:
    return {"type": "tool_result", "toolCallId": f"session-tool:1:{slot}", "resultBytes": 4, "outcome": "ok"}


def message(sequence: int, role: str, content: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    return {
        "id": f"m{sequence}",
        "sessionId": "session-1",
        "sequenceNumber": sequence,
        "role": role,
        "content": content,
        "timestamp": "2026-07-01T09:00:00Z",
    } | fields


def messages(*rows: tuple[str, list[dict[str, Any]]]) -> list[SessionMessage]:
    """Messages numbered from 0, each a role and its parts."""
    values = [message(sequence, role, content) for sequence, (role, content) in enumerate(rows)]
    return parse_messages(values, name="messages.json")
