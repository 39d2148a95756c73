"""Relavium's data: sessions, agents and workflows, read, checked and written.

The modules behind it: `relavium_session`, `relavium_agent` and `relavium_workflow` are the models,
`relavium_json` and `relavium_store` read sessions, `relavium_yaml` writes workflows, and `relavium_verdict` reads them.
"""

from __future__ import annotations

from schemas.relavium_agent import Agent, authored_problems
from schemas.relavium_json import parse_messages, parse_record, read_messages, read_record
from schemas.relavium_session import AgentSessionRecord, SessionContentPart, SessionContext, SessionMessage
from schemas.relavium_store import message_of_row, record_of_row
from schemas.relavium_verdict import describe_workflow, read_workflow
from schemas.relavium_workflow import WorkflowDefinition
from schemas.relavium_yaml import write_yaml

__all__ = [
    "Agent",
    "AgentSessionRecord",
    "SessionContentPart",
    "SessionContext",
    "SessionMessage",
    "WorkflowDefinition",
    "authored_problems",
    "describe_workflow",
    "message_of_row",
    "parse_messages",
    "parse_record",
    "read_messages",
    "read_record",
    "read_workflow",
    "record_of_row",
    "write_yaml",
]
