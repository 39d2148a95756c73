"""Rows of history.db: canonical parts, and the columns that repeat them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from schemas.errors import AgentSessionRejected
from schemas.relavium import message_of_row, record_of_row
from tests.relavium_sessions import AGENT, CONTEXT, call, result, said

NOON = 1_782_907_200_000


def message_row(role: str, parts: list[dict[str, Any]] | None, **columns: Any) -> dict[str, Any]:
    return {
        "id": "m1",
        "session_id": "s1",
        "sequence_number": 3,
        "role": role,
        "content": None,
        "content_parts": None if parts is None else json.dumps(parts),
        "tool_calls": None,
        "tool_call_id": None,
        "name": None,
        "finish_reason": None,
        "model_id": None,
        "compaction_dropped_through_sequence": None,
        "created_at": NOON,
    } | columns


def session_row(**columns: Any) -> dict[str, Any]:
    return {
        "id": "s1",
        "agent_id": None,
        "agent_slug": "pilot",
        "agent_snapshot": json.dumps(AGENT),
        "title": "Tides",
        "model_id": None,
        "working_dir": "/elsewhere",
        "git_ref": None,
        "fs_scope_tier": "full",
        "status": "idle",
        "context_json": json.dumps(CONTEXT),
        "total_input_tokens": 1,
        "total_output_tokens": 2,
        "total_cost_microcents": 3,
        "total_conservative_microcents": 4,
        "effect_turn_high_water": 1,
        "exported_workflow_path": None,
        "deleted_at": None,
        "created_at": NOON,
        "updated_at": NOON + 1,
    } | columns


def test_a_row_is_a_message_whose_empty_columns_are_absent() -> None:
    message = message_of_row(message_row("user", said("a")), name="history.db")
    assert message.timestamp == "2026-07-01T12:00:00.000Z"
    assert message.model_fields_set == {"id", "sessionId", "sequenceNumber", "role", "content", "timestamp"}


def test_no_parts_are_an_empty_list() -> None:
    assert message_of_row(message_row("user", None), name="history.db").content == []


def test_the_boundary_column_is_the_messages_compaction() -> None:
    row = message_row("system", said("summary"), compaction_dropped_through_sequence=7)
    message = message_of_row(row, name="history.db")
    assert message.compaction is not None
    assert message.compaction.droppedThroughSequence == 7


CALL = call("read_file")
TWO = [call("a"), call("b", 1)]
SHUFFLED = json.dumps([dict(reversed(CALL.items()))])


@pytest.mark.parametrize(
    "row",
    [
        message_row("user", said("a", "", "b"), content="a\n\n\n\nb"),
        message_row("tool", [result()], content="", tool_call_id="session-tool:1:0"),
        message_row("assistant", [*said("x"), CALL], tool_calls=SHUFFLED, name="read_file", finish_reason="tool_use"),
        message_row("assistant", [CALL], tool_calls=SHUFFLED.replace(": 2", ": 2.0")),
        message_row("user", said("a"), tool_calls="[]"),
    ],
)
def test_columns_that_repeat_the_parts_are_consistent(row: dict[str, Any]) -> None:
    message_of_row(row, name="history.db")


@pytest.mark.parametrize(
    ("row", "column"),
    [
        (message_row("user", said("a"), content="a "), "content"),
        (message_row("assistant", [CALL], tool_calls="[]"), "tool_calls"),
        (message_row("assistant", [CALL], tool_calls="{"), "tool_calls"),
        (message_row("assistant", [CALL], tool_calls=json.dumps([CALL | {"args": 1}])), "tool_calls"),
        (
            message_row("assistant", [CALL | {"argsBytes": 1}], tool_calls=json.dumps([CALL | {"argsBytes": True}])),
            None,
        ),
        (message_row("assistant", [CALL], name="write_file"), "name"),
        (message_row("assistant", TWO, name="a"), "name"),
        (message_row("user", said("a"), name="a"), "name"),
        (message_row("tool", [result(), result(1)], tool_call_id="session-tool:1:0"), "tool_call_id"),
        (message_row("assistant", said("a"), finish_reason="done"), "finish_reason"),
        (message_row("user", said("a"), finish_reason="stop"), "finish_reason"),
    ],
)
def test_a_column_that_says_something_else_is_refused_without_showing_it(
    row: dict[str, Any], column: str | None
) -> None:
    with pytest.raises(AgentSessionRejected) as refused:
        message_of_row(row, name="history.db", place=2)
    assert (refused.value.rule, refused.value.row) == ("metadata_invalid", 2)
    assert refused.value.field == (column or "tool_calls")
    assert refused.value.detail == f"{refused.value.field}: disagrees with content_parts"


@pytest.mark.parametrize(
    "row",
    [
        message_row("user", None, content_parts="{secret"),
        message_row("user", [CALL]),
        message_row("robot", said("a")),
        message_row("user", said("a"), created_at=10**18),
        message_row("user", said("a"), created_at="yesterday"),
        message_row("user", said("a"), compaction_dropped_through_sequence=1),
    ],
)
def test_a_row_that_is_no_message_is_refused_without_showing_it(row: dict[str, Any]) -> None:
    with pytest.raises(AgentSessionRejected, match=r"message_invalid: .*breaks the schema's rules") as refused:
        message_of_row(row, name="history.db")
    assert "secret" not in str(refused.value)


def test_the_context_column_decides_over_its_copies() -> None:
    record = record_of_row(session_row(), name="history.db")
    assert (record.context.workingDir, record.context.fsScopeTier) == ("/harbour", "project")
    assert (record.createdAt, record.updatedAt) == ("2026-07-01T12:00:00.000Z", "2026-07-01T12:00:00.001Z")
    assert (record.title, record.agentId, record.totalConservativeMicrocents) == ("Tides", None, 4)


def test_a_deleted_session_does_not_load() -> None:
    with pytest.raises(AgentSessionRejected, match="deleted: deleted_at"):
        record_of_row(session_row(deleted_at=NOON), name="history.db")


@pytest.mark.parametrize("columns", [{"context_json": "{}"}, {"agent_snapshot": "null"}, {"agent_slug": "Not Kebab"}])
def test_a_row_that_is_no_record_is_refused(columns: dict[str, Any]) -> None:
    with pytest.raises(AgentSessionRejected, match="message_invalid"):
        record_of_row(session_row(**columns), name="history.db")
