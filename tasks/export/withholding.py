"""A session with the secrets in its texts withheld: titles, prompts, answers, thoughts, transcripts, the agent's texts.

Ids, names of tools and models, times and sizes stay, so the workflow keeps its structure. Relavium's own sessions are
exported verbatim unless asked otherwise; this is for sessions of other agents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from schemas._utf16 import unit_count
from schemas.relavium_agent import Agent
from schemas.relavium_session import (
    AgentSessionRecord,
    MediaPart,
    ReasoningPart,
    SessionContentPart,
    SessionMessage,
    TextPart,
)
from tasks.export.secrets import WITHHELD, withhold, withhold_value

__all__ = ["Withheld", "withhold_session"]

_LONGEST_NAME = 255
_AGENT_TEXTS = ("name", "description", "system_prompt")
_AGENT_MAPS = ("input_schema", "output_schema")
_SERVER_VALUES = ("command", "args", "env", "url")

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Withheld:
    """The session to export instead, and how many secrets of each kind (`tasks.export.secrets.KINDS`) it lost."""

    record: AgentSessionRecord
    messages: list[SessionMessage]
    counts: dict[str, int]


def withhold_session(record: AgentSessionRecord, messages: Iterable[SessionMessage]) -> Withheld:
    """The session without the secrets in its texts."""
    walk = _Walk()
    clean_record = _with(record, title=walk.value(record.title), agentSnapshot=walk.agent(record.agentSnapshot))
    clean = [_with(message, content=[walk.part(part) for part in message.content]) for message in messages]
    return Withheld(clean_record, clean, dict(sorted(walk.counts.items())))


class _Walk:
    """Goes through values and counts what it withholds."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def value(self, value: Any) -> Any:
        """A JSON value, copied where it is a collection; texts in a map are judged with their key."""
        root = [value]
        todo: list[tuple[Any, Any, str]] = [(root, 0, "")]
        while todo:
            holder, place, key = todo.pop()
            item = holder[place]
            if isinstance(item, str):
                holder[place], counts = withhold_value(key, item) if key else withhold(item)
                self.counts.update(counts)
            elif isinstance(item, list):
                holder[place] = items = list(item)
                todo += [(items, number, _option(items, number) or key) for number in range(len(items))]
            elif isinstance(item, dict):
                holder[place] = named = dict(item)
                todo += [(named, name, name) for name in named]
        return root[0]

    def part(self, part: SessionContentPart) -> SessionContentPart:
        if isinstance(part, TextPart | ReasoningPart):
            return _with(part, text=self.value(part.text))
        if isinstance(part, MediaPart):
            name = self.value(part.name)
            if name is not None and unit_count(name) > _LONGEST_NAME:
                name = WITHHELD
            return _with(part, name=name, transcript=self.value(part.transcript))
        return part

    def agent(self, agent: Agent | None) -> Agent | None:
        if agent is None:
            return None
        fields = {field: self.value(getattr(agent, field)) for field in (*_AGENT_TEXTS, *_AGENT_MAPS)}
        servers = agent.mcp_servers
        if servers is not None:
            servers = [
                _with(server, **{field: self.value(getattr(server, field)) for field in _SERVER_VALUES})
                for server in servers
            ]
        return _with(agent, **fields, mcp_servers=servers)


def _option(items: list[Any], number: int) -> str:
    """The option of a command that the argument is the value of, if so."""
    before = items[number - 1] if number else None
    if not isinstance(before, str) or not before.startswith("-") or "=" in before:
        return ""
    return before.lstrip("-")


def _with(model: M, **fields: Any) -> M:
    """A copy with the fields that changed; fields that were not given stay so."""
    changed = {name: value for name, value in fields.items() if value is not None and value is not getattr(model, name)}
    return model.model_copy(update=changed) if changed else model
