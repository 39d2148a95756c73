"""One step of the machine while it is being made: the session so far, its new events, and the commands to come.

Events get their numbers here. A surface event is a message that later requests may see; the others are evidence (DSH
specification, sections 3 and 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tasks.agents.native.protocol import Append, Command, Event
from tasks.agents.native.session import Node, Rules, Session, Step, Turn

__all__ = ["Work"]


class Work:
    """Gathers one step; `step` gives it."""

    def __init__(self, rules: Rules, session: Session, now_ms: int) -> None:
        self.rules = rules
        self.session = session
        self.now = now_ms
        self._events: list[Event] = []
        self._commands: list[Command] = []

    @property
    def turn(self) -> Turn:
        """The turn under way."""
        assert self.session.turn is not None
        return self.session.turn

    def put(self, **changes: Any) -> None:
        """Change the session."""
        self.session = replace(self.session, **changes)

    def put_turn(self, **changes: Any) -> None:
        """Change the turn under way."""
        self.put(turn=replace(self.turn, **changes))

    def message_id(self) -> str:
        """An id for a message of the next event; no other session has it."""
        return f"{self.session.id}:{self.session.next_seq}"

    def mark(self, kind: str, **data: Any) -> int:
        """Add an event that is not on the surface, and give its number."""
        return self._add({"type": kind, "data": data})

    def place(
        self, kind: str, data: Any, *, turn: int, sources: Sequence[int] = (), replaces: Sequence[Node] = ()
    ) -> int:
        """Add an event on the surface, at its end or instead of the nodes that it replaces, and give its number."""
        node = Node(self.session.next_seq, turn)
        surface = self.session.surface
        more: Event = {"surfaceOp": "append"}
        if replaces:
            first, last = surface.index(replaces[0]), surface.index(replaces[-1])
            more = {"surfaceOp": {"op": "replace", "start": replaces[0].seq, "end": replaces[-1].seq}}
            sources = [each.seq for each in replaces]
            surface = (*surface[:first], node, *surface[last + 1 :])
        else:
            surface = (*surface, node)
        if sources:
            more["sourceEventSeqs"] = list(sources)
        seq = self._add({"type": kind, "data": data}, more)
        self.put(surface=surface)
        return seq

    def then(self, command: Command) -> None:
        """Add a command; all events so far are durable before it."""
        self._flush()
        self._commands.append(command)

    def step(self) -> Step:
        """The whole step."""
        self._flush()
        return Step(self.session, tuple(self._commands))

    def _add(self, event: Event, more: Event | None = None) -> int:
        seq = self.session.next_seq
        self._events.append(
            {"type": event["type"], "seq": seq, "time": self.now, "data": event["data"], **(more or {})}
        )
        self.put(next_seq=seq + 1)
        return seq

    def _flush(self) -> None:
        if self._events:
            self._commands.append(Append(tuple(self._events)))
            self._events = []
