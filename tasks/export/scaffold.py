"""A session as a workflow that its author reviews before running it (Relavium notes, section 3).

The file holds one node per completed turn in a straight chain, the agent the session ran with, and the whole
transcript as metadata. It depends on the record and the messages alone, and not on their order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from schemas._relavium_model import plain
from schemas._utf16 import unit_count
from schemas.relavium_agent import authored_problems
from schemas.relavium_session import AgentSessionRecord, SessionMessage
from schemas.relavium_workflow import MAX_SOURCE_UNITS, SCHEMA_VERSION
from schemas.relavium_yaml import write_yaml
from tasks.export.turns import Turn, completed_turns, in_sequence
from tasks.export.workflow_id import workflow_id

__all__ = ["MAX_TURNS", "Scaffold", "scaffold", "workflow_of"]

MAX_TURNS: Final = 498
"""The engine runs at most 500 nodes; input and output are two of them."""

_OPENER = re.compile(r"\{(?=\{)")


@dataclass(frozen=True, slots=True)
class Scaffold:
    """An exported session. ``warnings`` say, one sentence each, why the workflow will not run or parse as it is."""

    data: bytes
    workflow_id: str
    turns: int
    warnings: tuple[str, ...]


def scaffold(record: AgentSessionRecord, messages: Iterable[SessionMessage]) -> Scaffold:
    """The session's `.relavium.yaml`, byte for byte what Relavium's own exporter writes."""
    document = workflow_of(record, messages)
    workflow = document["workflow"]
    data = write_yaml(document)
    turns = len(workflow["nodes"]) - 2
    return Scaffold(data, workflow["id"], turns, tuple(_warnings(record, data, turns)))


def workflow_of(record: AgentSessionRecord, messages: Iterable[SessionMessage]) -> dict[str, Any]:
    """The session as a workflow document, a plain value."""
    rows = in_sequence(messages)
    steps = [_node(place, turn, record.agentSlug) for place, turn in enumerate(completed_turns(rows), 1)]
    nodes = [{"id": "input", "type": "input"}, *steps, {"id": "output", "type": "output"}]
    ids = [node["id"] for node in nodes]
    export = {
        "source": "session",
        "sessionId": record.id,
        "agentSlug": record.agentSlug,
        "createdAt": record.createdAt,
        "updatedAt": record.updatedAt,
        "messages": [plain(message) for message in rows],
    }
    workflow: dict[str, Any] = {
        "id": workflow_id(record.title, record.id),
        "nodes": nodes,
        "edges": [{"from": source, "to": target} for source, target in pairwise(ids)],
        "metadata": {"relaviumExport": export},
    }
    if record.title is not None:
        workflow["name"] = export["title"] = record.title
    if record.agentSnapshot is not None:
        workflow["agents"] = [plain(record.agentSnapshot)]
    return {"schema_version": SCHEMA_VERSION, "workflow": workflow}


def _node(place: int, turn: Turn, agent: str) -> dict[str, Any]:
    node: dict[str, Any] = {"id": f"turn-{place}", "type": "agent", "agent_ref": agent}
    if prompt := turn.prompt:
        # What a person wrote must not be read as a reference: no brace is left directly before another.
        node["prompt_template"] = _OPENER.sub("{ ", prompt)
    if tools := turn.tools:
        node["tools"] = tools
    return node


def _warnings(record: AgentSessionRecord, data: bytes, turns: int) -> list[str]:
    warnings = []
    if turns > MAX_TURNS:
        warnings.append(f"{turns} turns: the workflow engine runs at most {MAX_TURNS}")
    if len(data) > MAX_SOURCE_UNITS and (units := unit_count(data.decode())) > MAX_SOURCE_UNITS:
        warnings.append(f"{units} UTF-16 units: the workflow parser takes at most {MAX_SOURCE_UNITS}")
    if record.agentSnapshot is not None:
        problems = authored_problems(record.agentSnapshot)
        warnings += [f"agent {record.agentSnapshot.id}: {problem}; repair it before it runs" for problem in problems]
    return warnings
