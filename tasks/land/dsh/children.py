"""What is made of two logs: the description of a sub-agent, and the note of a call that is inferred to be its own
(DSH version 4, sections 9 and 12).

Where the call's result names the sub-agent, the description names the call. Where the call is only inferred, because
it alone was under way or asked in the very words, a journal joins the two, which assembly takes for an inference.
"""

from __future__ import annotations

from typing import Any

from schemas._dsh_json import read_value
from schemas.dsh import StoredLog
from schemas.dsh_facts import inherited_count
from schemas.dsh_lineage import ChildsWord, Delegation
from tasks.land.dsh.clock import Clock
from tasks.land.dsh.draft import Draft
from tasks.land.dsh.kinds import JOURNAL, SIDECAR
from tasks.land.dsh.parts import encoded, line_part, plain
from tasks.land.dsh.state import LogState

__all__ = ["described", "document", "tools_by_result"]


def tools_by_result(log: StoredLog) -> dict[int, str]:
    """The tool id of each result in a log, by the number of its event."""
    state = LogState(log.header, inherited_count(log.header, log.events), is_main=False)
    found: dict[int, str] = {}
    for event in log.events:
        if event["seq"] < state.cut:
            state.pass_over(event)
        elif event["type"] == "assistant/message":
            state.advertise_all(event)
        elif event["type"] == "tool/result":
            found[event["seq"]] = state.answers(event["data"]["message"]["source"]["callId"]).tool
    return found


def document(kind: str, child: ChildsWord, joined: Delegation, *, tool: str, started_by: str) -> bytes:
    """What the source has of a sub-agent as one JSON document; nothing where there is nothing to say. `tool` is the id
    of the call that `joined` names, `started_by` its parent's stream."""
    certain = joined.evidence == "result"
    if kind == JOURNAL and (certain or not tool or joined.result_seq is None):
        return b""
    said: dict[str, Any] = {
        "type": "sub-agent" if kind == SIDECAR else "call of a sub-agent",
        "session": child.header.id,
        "parent": joined.parent,
        "createdAt": child.header.created_at,
        "startedBy": started_by,
        "label": joined.label,
        "seeded": joined.seeded,
        "evidence": joined.evidence,
        "callId": joined.call_id,
        "tool": tool or None,
        "resultSeq": joined.result_seq,
        "catalogSeq": joined.catalog_seq,
    }
    return encoded({key: value for key, value in said.items() if value is not None})


def described(kind: str, stream: str, body: bytes) -> Draft:
    """The record of a document."""
    said = read_value(body)[0]
    tool = said.get("tool", "")
    draft = Draft(child=stream, time=Clock().text(said["createdAt"]), parts=[line_part(body)])
    if kind == JOURNAL:
        draft.batch = tool
    else:
        draft.started_by, draft.label = said["startedBy"], plain(said.get("label", ""))
        draft.tool = tool if said["evidence"] == "result" else ""
    return draft
