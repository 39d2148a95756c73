"""Rows of Relavium's history.db as sessions (Relavium notes, section 5; newest known migration 0017).

A row of `session_messages` says some things twice: beside the canonical `content_parts` it has columns that were made
from them. Both are checked, so that the copies never become a second way for tool content to get in. Refusals have the
store's two fixed rules, `message_invalid` and `metadata_invalid`, and never show what they refuse.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pydantic import ValidationError

from schemas._relavium_model import plain
from schemas._relavium_refusals import first_refusal
from schemas.errors import AgentSessionRejected
from schemas.relavium_json import read_json
from schemas.relavium_session import AgentSessionRecord, SessionMessage, TextPart, ToolCallPart, ToolResultPart

__all__ = ["message_of_row", "record_of_row"]

FINISH_REASONS: Final = frozenset({"stop", "length", "tool_use", "content_filter", "error"})

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COUNTS = {
    "totalInputTokens": "total_input_tokens",
    "totalOutputTokens": "total_output_tokens",
    "totalCostMicrocents": "total_cost_microcents",
    "totalConservativeMicrocents": "total_conservative_microcents",
}
_TEXTS = {
    "agentId": "agent_id",
    "title": "title",
    "modelId": "model_id",
    "exportedWorkflowPath": "exported_workflow_path",
}


def record_of_row(row: Mapping[str, Any], *, name: str) -> AgentSessionRecord:
    """A row of `agent_sessions` as a record; ``name`` is what errors call the store. `context_json` is authoritative,
    the columns beside it are copies.

    Raises AgentSessionRejected: ``deleted`` for a session that was deleted, else ``message_invalid``.
    """
    if row["deleted_at"] is not None:
        raise AgentSessionRejected(name, None, "deleted", "deleted_at", "the session was deleted")
    value = {
        "id": row["id"],
        "agentSlug": row["agent_slug"],
        "status": row["status"],
        "context": _json(row["context_json"], name, "context_json"),
        "createdAt": _time(row["created_at"], name, "created_at"),
        "updatedAt": _time(row["updated_at"], name, "updated_at"),
        **{field: row[column] for field, column in _COUNTS.items()},
        **{field: row[column] for field, column in _TEXTS.items() if row[column] is not None},
    }
    if row["agent_snapshot"] is not None:
        value["agentSnapshot"] = _json(row["agent_snapshot"], name, "agent_snapshot")
    try:
        return AgentSessionRecord.model_validate(value)
    except ValidationError as error:
        raise _invalid(name, first_refusal(error)[1]) from None


def message_of_row(row: Mapping[str, Any], *, name: str, place: int | None = None) -> SessionMessage:
    """A row of `session_messages` as a message, its copies checked; ``place`` counts the session's rows from 1.

    Raises AgentSessionRejected: ``message_invalid`` or ``metadata_invalid``.
    """
    value = {
        "id": row["id"],
        "sessionId": row["session_id"],
        "sequenceNumber": row["sequence_number"],
        "role": row["role"],
        "content": [] if row["content_parts"] is None else _json(row["content_parts"], name, "content_parts", place),
        "timestamp": _time(row["created_at"], name, "created_at", place),
    }
    if row["model_id"] is not None:
        value["modelId"] = row["model_id"]
    if row["compaction_dropped_through_sequence"] is not None:
        value["compaction"] = {"droppedThroughSequence": row["compaction_dropped_through_sequence"]}
    try:
        message = SessionMessage.model_validate(value)
    except ValidationError as error:
        raise _invalid(name, first_refusal(error)[1], place) from None
    field = _inconsistent(row, message)
    if field is not None:
        raise AgentSessionRejected(name, place, "metadata_invalid", field, "disagrees with content_parts")
    return message


def _inconsistent(row: Mapping[str, Any], message: SessionMessage) -> str | None:
    """The first column that does not say what the message's parts say; a column without a value says nothing."""
    calls = [part for part in message.content if isinstance(part, ToolCallPart)]
    results = [part for part in message.content if isinstance(part, ToolResultPart)]
    text = "\n\n".join(part.text for part in message.content if isinstance(part, TextPart))
    if row["content"] is not None and row["content"] != text:
        return "content"
    if row["tool_calls"] is not None and not _says(row["tool_calls"], [plain(call) for call in calls]):
        return "tool_calls"
    if row["name"] is not None and [call.name for call in calls] != [row["name"]]:
        return "name"
    if row["tool_call_id"] is not None and [result.toolCallId for result in results] != [row["tool_call_id"]]:
        return "tool_call_id"
    if row["finish_reason"] is not None and not (
        message.role == "assistant" and row["finish_reason"] in FINISH_REASONS
    ):
        return "finish_reason"
    return None


def _says(stored: Any, expected: list[Any]) -> bool:
    """Whether a JSON column holds ``expected``, whatever the order of its keys."""
    try:
        return _canonical(read_json(str(stored).encode("utf-8", "surrogatepass"), name="")) == _canonical(expected)
    except AgentSessionRejected:
        return False


def _canonical(value: Any) -> str:
    # As text, because True equals 1 in Python; byte counts as floats, because 1.0 and 1 are one number in JSON.
    return json.dumps(_doubles(value), sort_keys=True)


def _doubles(value: Any) -> Any:
    if isinstance(value, list):
        return [_doubles(item) for item in value]
    if isinstance(value, dict):
        return {key: _doubles(item) for key, item in value.items()}
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _json(stored: Any, name: str, column: str, place: int | None = None) -> Any:
    try:
        return read_json(str(stored).encode("utf-8", "surrogatepass"), name=name)
    except AgentSessionRejected:
        raise _invalid(name, column, place) from None


def _time(milliseconds: Any, name: str, column: str, place: int | None = None) -> str:
    """A count of milliseconds since 1970 as ``YYYY-MM-DDTHH:MM:SS.mmmZ``."""
    if not isinstance(milliseconds, int) or isinstance(milliseconds, bool):
        raise _invalid(name, column, place)
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        raise _invalid(name, column, place) from None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _invalid(name: str, field: str, place: int | None = None) -> AgentSessionRejected:
    return AgentSessionRejected(name, place, "message_invalid", field, "breaks the schema's rules")
