"""A session read back from its log, as the machine has it (agent-session specification, "resume").

Only completed turns are carried on; what was interrupted, failed or aborted is left out of later requests, and what it
used is not. A request that nothing answers is a call whose usage nobody knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from schemas.errors import LogEventRejected
from tasks.agents.native.budget import NOTHING_USED, Ledger, Pending, Price, engage, release, resolve
from tasks.agents.native.conversation import MAYBE_BILLED, NEVER_SENT, Exchange, Route, Usage
from tasks.agents.native.protocol import Event
from tasks.agents.native.session import Node, Session

__all__ = ["bound_agent", "restored"]


def restored(session: str, events: Sequence[Event], *, price: Price, now_ms: int) -> Session:
    """The session after these events, ready to be started again. Raises LogEventRejected for what no session of ours
    writes.
    """
    reading = _Reading(session, price)
    for event in events:
        try:
            reading.take(event)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            detail = f"{event['type']} is not as this runner writes it ({type(error).__name__}: {error})"
            raise LogEventRejected(session, event["seq"] + 2, "not_native", detail) from None
    return reading.session(now_ms)


def bound_agent(events: Sequence[Event]) -> str | None:
    """The id of the agent that the session is bound to for good."""
    for event in events:
        if event["type"] == "agent-preset/selected":
            return str(event["data"]["agentPreset"])
    return None


class _Reading:
    """One pass over the events; what is open is what nothing has answered yet."""

    def __init__(self, session: str, price: Price) -> None:
        self._id = session
        self._price = price
        self._ledger: Ledger = NOTHING_USED
        self._exchanges: list[Exchange] = []
        self._summary: str | None = None
        self._surface: list[Node] = []
        self._turn = 0
        self._turns = 0
        self._engaged: set[int] = set()
        self._was_engaged = False
        self._boundaries: dict[str, None] = {}
        self._calls: set[str] = set()
        self._user = self._answer = ""
        self._route = Route("", "")
        self._next = 0

    def take(self, event: Event) -> None:
        self._next = event["seq"] + 1
        take = getattr(self, f"_{event['type'].replace('/', '_').replace('-', '_')}", None)
        if take is not None:
            take(event, event["data"])

    def session(self, now_ms: int) -> Session:
        self._unanswered(now_ms)
        return Session(
            id=self._id,
            started_ms=now_ms,
            exchanges=tuple(self._exchanges),
            summary=self._summary,
            surface=tuple(self._surface),
            next_seq=self._next,
            turns=self._turns,
            engaged_turns=len(self._engaged),
            compactions=len(self._boundaries),
            call_ids=frozenset(self._calls),
            before=self._ledger,
        )

    def _turn_start(self, event: Event, data: Any) -> None:
        self._turn = self._turns = data["turn"]
        self._user = self._answer = ""

    def _turn_end(self, event: Event, data: Any) -> None:
        if data["reason"]["kind"] == "completed":
            self._exchanges.append(Exchange(data["turn"], self._user, self._answer))
        self._unanswered(event["time"])
        self._turn = 0

    def _request_context(self, event: Event, data: Any) -> None:
        self._route = Route(data["provider"], data["model"])

    def _step_start(self, event: Event, data: Any) -> None:
        self._unanswered(event["time"])
        self._begin()
        self._was_engaged = data["turn"] in self._engaged
        self._engaged.add(data["turn"])

    def _step_end(self, event: Event, data: Any) -> None:
        self._unanswered(event["time"])

    def _assistant_message(self, event: Event, data: Any) -> None:
        self._surface.append(Node(event["seq"], data["turn"]))
        content = data["message"]["content"]
        self._answer = "".join(block["text"] for block in content if block["type"] == "text")
        self._calls.update(block["id"] for block in content if block["type"] == "tool-call")
        source = data["message"]["source"]
        self._end(Usage.of_event(data.get("usage")), event["time"], Route(source["provider"], source["model"]))

    def _assistant_chunk(self, event: Event, data: Any) -> None:
        chunk = data["chunk"]
        if chunk["type"] == "usage":
            self._end(Usage.of_event(chunk["usage"]), event["time"], self._route)
        elif chunk["type"] == "finish" and chunk["reason"]["kind"] in ("error", "aborted"):
            self._failed(chunk["reason"]["failure"]["code"], event["time"])
            if chunk["reason"]["failure"]["code"] in NEVER_SENT and not self._was_engaged:
                self._engaged.discard(data["turn"])

    def _tool_result(self, event: Event, data: Any) -> None:
        self._surface.append(Node(event["seq"], data["turn"]))

    def _user_message(self, event: Event, data: Any) -> None:
        operation = event["surfaceOp"]
        if operation == "append":
            self._user = "".join(block["text"] for block in data["content"])
            self._surface.append(Node(event["seq"], self._turn))
            return
        places = {node.seq: place for place, node in enumerate(self._surface)}
        first, last = places[operation["start"]], places[operation["end"]]
        dropped = max(node.turn for node in self._surface[first : last + 1])
        self._surface[first : last + 1] = [Node(event["seq"], 0)]
        self._exchanges = [each for each in self._exchanges if each.turn > dropped]
        trimmed = data["source"].get("form") == "notice"
        self._summary = None if trimmed else "".join(block["text"] for block in data["content"])
        self._boundaries[data["source"]["compactionId"]] = None

    def _compaction_start(self, event: Event, data: Any) -> None:
        self._boundaries[data["compactionId"]] = None
        self._begin()

    def _compaction_summary(self, event: Event, data: Any) -> None:
        route = Route(data["provider"], data["model"])
        self._end(Usage.of_event(data.get("usage")), event["time"], route)
        # Without what it replaces it is a pass with another after it.
        if not data["shadowedSeqs"]:
            self._begin()

    def _compaction_end(self, event: Event, data: Any) -> None:
        if "error" in data:
            self._failed(data["error"]["code"], event["time"])

    def _begin(self) -> None:
        self._ledger = engage(self._ledger, Pending(self._route, 0, None))

    def _end(self, usage: Usage | None, time: int, route: Route) -> None:
        if self._ledger.pending is not None:
            self._ledger = replace(self._ledger, pending=Pending(route, 0, None))
            self._ledger = resolve(self._ledger, usage, price=self._price, now_ms=time)

    def _failed(self, code: str, time: int) -> None:
        if code in MAYBE_BILLED:
            self._unanswered(time)
        else:
            self._ledger = release(self._ledger)

    def _unanswered(self, time: int) -> None:
        if self._ledger.pending is not None:
            self._ledger = resolve(self._ledger, None, price=self._price, now_ms=time)
