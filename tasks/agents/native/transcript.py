"""A native session as a Relavium session: its record and messages, from its log (agent-session specification, "Session
messages" and "Export to workflow").

Only completed turns have messages, and of their tool rounds only the structure: no argument and no result of a tool is
in it. Every turn that was ever completed is there, those too that later requests no longer carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from schemas.dsh import LogHeader
from schemas.relavium_agent import Agent
from schemas.relavium_session import AgentSessionRecord, SessionMessage
from tasks.agents.native.budget import Price
from tasks.agents.native.conversation import Usage
from tasks.agents.native.protocol import Event
from tasks.agents.native.restore import restored
from tasks.agents.native.titles import title_of
from tasks.export.scaffold import Scaffold, scaffold

__all__ = ["RelaviumSession", "exported", "relavium_session"]

_OUTCOMES: Final = {"TOOL_DENIED": "denied", "ABORTED": "cancelled", "BUDGET_EXCEEDED": "cancelled"}


@dataclass(frozen=True)
class RelaviumSession:
    """A session in Relavium's terms."""

    record: AgentSessionRecord
    messages: list[SessionMessage]


def exported(header: LogHeader, events: Sequence[Event], agent: Agent, *, price: Price) -> Scaffold:
    """The session's `.relavium.yaml`; the same log gives the same bytes."""
    session = relavium_session(header, events, agent, price=price)
    return scaffold(session.record, session.messages)


def relavium_session(header: LogHeader, events: Sequence[Event], agent: Agent, *, price: Price) -> RelaviumSession:
    """The record and the messages. Raises LogEventRejected for a log that is not of a native session."""
    end = int(events[-1]["time"]) if events else header.created_at
    used = restored(header.id, events, price=price, now_ms=end).before
    rows = _Rows(header.id)
    for event in events:
        rows.take(event)
    record: dict[str, Any] = {
        "id": header.id,
        "agentSlug": agent.id,
        "agentSnapshot": agent,
        "context": {"workingDir": header.cwd or "/", "fsScopeTier": "sandboxed"},
        "status": "idle",
        "totalInputTokens": rows.input_tokens,
        "totalOutputTokens": rows.output_tokens,
        "totalCostMicrocents": used.microusd * 100,
        "createdAt": _timestamp(header.created_at),
        "updatedAt": _timestamp(end),
    }
    if rows.title:
        record["title"] = rows.title
    if rows.model is not None:
        record["modelId"] = rows.model
    return RelaviumSession(AgentSessionRecord.model_validate(record), rows.messages)


@dataclass
class _Rows:
    """One pass over the log. A turn's rows are drafts until it is completed."""

    session: str
    messages: list[SessionMessage] = field(default_factory=list)
    title: str = ""
    model: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    _draft: list[dict[str, Any]] = field(default_factory=list)
    _used: list[Usage] = field(default_factory=list)
    _slots: dict[str, str] = field(default_factory=dict)
    _last_of_turn: dict[int, int] = field(default_factory=dict)
    _turn_of: dict[int, int] = field(default_factory=dict)
    _turn: int = 0

    def take(self, event: Event) -> None:
        kind, data = event["type"], event["data"]
        if kind == "turn/start":
            self._turn, self._draft, self._used, self._slots = data["turn"], [], [], {}
        elif kind == "user/message" and event["surfaceOp"] != "append":
            self._boundary(event)
        elif kind == "user/message":
            self._turn_of[event["seq"]] = self._turn
            self._draft.append(self._row(event, data["id"], "user", _text_parts(data["content"])))
        elif kind == "assistant/message":
            self._turn_of[event["seq"]] = self._turn
            self._answer(event, data)
        elif kind == "tool/result":
            self._turn_of[event["seq"]] = self._turn
            self._result(event, data)
        elif kind == "turn/end" and data["reason"]["kind"] == "completed":
            self._complete()
        elif kind == "compaction/summary":
            self._count(Usage.of_event(data.get("usage")))

    def _answer(self, event: Event, data: Any) -> None:
        message = data["message"]
        calls = [block for block in message["content"] if block["type"] == "tool-call"]
        parts = _text_parts(message["content"])
        for call in calls:
            self._slots[call["id"]] = f"session-tool:{self._turn}:{len(self._slots)}"
            size = len(call["arguments"].encode("utf-8", "surrogatepass"))
            parts.append({"type": "tool_call", "id": self._slots[call["id"]], "name": call["name"], "argsBytes": size})
        self._draft.append(
            self._row(event, message["id"], "assistant", parts) | {"modelId": message["source"]["model"]}
        )
        usage = Usage.of_event(data.get("usage"))
        if usage is not None:
            self._used.append(usage)

    def _result(self, event: Event, data: Any) -> None:
        message = data["message"]
        block = message["content"][0]
        code = data.get("error", {}).get("code")
        text = "".join(part["text"] for part in block["content"])
        identity = self._slots[block["toolCallId"]]
        part = {
            "type": "tool_result",
            "toolCallId": identity,
            "resultBytes": len(text.encode("utf-8", "surrogatepass")),
            "outcome": _OUTCOMES.get(code, "error") if block["isError"] else "ok",
        }
        self._draft.append(self._row(event, message["id"], "tool", [part]))
        if code == "UNKNOWN_TOOL":
            self._unresolve(identity)

    def _unresolve(self, identity: str) -> None:
        """A name that the model made up is no tool's, and must not become a grant."""
        for row in self._draft:
            for part in row["content"]:
                if part["type"] == "tool_call" and part["id"] == identity:
                    part["name"] = "unknown_tool"

    def _complete(self) -> None:
        if not self.title:
            self.title = title_of(self._draft[0]["content"][0]["text"])
        for row in self._draft:
            self._add(row)
            self.model = row.get("modelId", self.model)
        self._last_of_turn[self._turn] = len(self.messages) - 1
        for usage in self._used:
            self._count(usage)

    def _boundary(self, event: Event) -> None:
        data = event["data"]
        dropped = max((self._turn_of.get(seq, 0) for seq in event["sourceEventSeqs"]), default=0)
        through = [last for turn, last in self._last_of_turn.items() if turn <= dropped]
        trimmed = data["source"].get("form") == "notice"
        parts = [] if trimmed else _text_parts(data["content"])
        row = self._row(event, data["id"], "system", parts)
        self._add(row | {"compaction": {"droppedThroughSequence": max(through, default=0)}})

    def _row(self, event: Event, identity: str, role: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": identity, "role": role, "content": parts, "timestamp": _timestamp(event["time"])}

    def _add(self, row: dict[str, Any]) -> None:
        row = row | {"sessionId": self.session, "sequenceNumber": len(self.messages)}
        self.messages.append(SessionMessage.model_validate(row))

    def _count(self, usage: Usage | None) -> None:
        if usage is not None:
            self.input_tokens += usage.total - usage.output
            self.output_tokens += usage.output


def _text_parts(content: list[Any]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": block["text"]} for block in content if block["type"] == "text"]


def _timestamp(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
