"""What is known of a log from the events read so far."""

from __future__ import annotations

from typing import Any, NamedTuple

from schemas._dsh_json import is_safe
from schemas._dsh_messages import blocks_of, field, message_of
from schemas.dsh import LogHeader
from tasks.land.dsh.parts import plain
from tasks.land.dsh.turns import Inbox, Turns, numbered

__all__ = ["Advertised", "LogState"]

Event = dict[str, Any]


class Advertised(NamedTuple):
    """A call that an answer asked for: its tool id and the answer's record, both empty when they are another
    session's."""

    tool: str
    answer: str
    name: str


class LogState:
    """`cut` is how many of the first events are another session's. `model` is that of the requests being made."""

    def __init__(self, header: LogHeader, cut: int, *, is_main: bool) -> None:
        self.header = header
        self.cut = cut
        self.is_main = is_main
        self.session = plain(header.id)
        self.turns = Turns(self.session)
        self.inbox = Inbox()
        self.model = ""
        self.advertised: dict[str, Advertised] = {}
        self.launched: dict[str, str] = {}
        self.is_delegated = header.origin == "subagent"
        """Whether the next prompt is the delegating agent's."""
        self.chunks: list[Any] = []
        """What the open model call has streamed, of generations before 2."""
        self.under_way: dict[str, None] = {}
        """The calls of tools whose execution has begun and that have no result yet."""
        self.batches: set[str] = set()
        """Of those, the ones that a sub-agent was begun in while no other was under way."""
        self._tools: set[str] = set()

    def id_of(self, seq: Any) -> str:
        """The id of the record of an event of this session; empty for what is another's, or is no event."""
        return f"{self.session}:{int(seq)}" if is_safe(seq) and seq >= self.cut else ""

    def pass_over(self, event: Event) -> None:
        """Take in an event that this session has a copy of."""
        kind, data = event["type"], event["data"]
        match kind:
            case "turn/start":
                self.turns.begin(event, own=False)
            case "turn/end":
                self.turns.end()
            case "agent/inbox/spliced":
                self.inbox.take(data, entering=False)
            case "request/header":
                self.requests(data)
            case "assistant/message":
                for block in blocks_of(message_of(event)):
                    if block["type"] == "tool-call":
                        self.advertised[str(block.get("id"))] = Advertised("", "", "")

    def requests(self, data: Any) -> None:
        """Take in what requests are made with."""
        model = field(field(field(data, "header"), "config"), "model")
        self.model = plain(model) if isinstance(model, str) else self.model

    def advertise(self, block: Any, event: Event, answer: str) -> str:
        """The tool id of a call that an answer asks for. Providers may number calls from zero, again and again."""
        call = str(block.get("id"))
        tool = f"{self.session}:{plain(call)}"
        if tool in self._tools:
            turn, step = (numbered(field(event["data"], key)) for key in ("turn", "step"))
            tool = f"{tool}@t{turn}.s{step}"
        if tool in self._tools:
            tool = f"{tool}@{event['seq']}.{len(self._tools)}"
        self._tools.add(tool)
        name = block.get("name")
        self.advertised[call] = Advertised(tool, answer, name if isinstance(name, str) else "")
        return tool

    def advertise_all(self, event: Event, answer: str = "") -> dict[int, str]:
        """The tool ids of all calls that an answer asks for, by the places of their blocks."""
        return {
            place: self.advertise(block, event, answer)
            for place, block in enumerate(message_of(event)["content"])
            if isinstance(block, dict) and block.get("type") == "tool-call" and isinstance(block.get("id"), str)
        }

    def answers(self, call: Any) -> Advertised:
        """The call that a result is for; one that no answer asked for has only its id."""
        return self.advertised.get(str(call)) or Advertised(f"{self.session}:{plain(str(call))}", "", "")
