"""A conversation of any source as a Relavium session (Relavium notes, sections 1 and 2).

A row for what a person said, for each provider call with tool uses one row of the uses and one of their results, and a
row for the answer; an interrupted exchange without tool uses has an empty row for it, which is no answer. Arguments,
results, thoughts and texts on the way to the answer stay behind. Tool ids count exchanges from 1 and the uses in each
from 0; times are the records', to the millisecond.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Final

from schemas._relavium_values import MAX_SAFE_INTEGER
from schemas.relavium_json import parse_messages, parse_record
from schemas.relavium_session import AgentSessionRecord, SessionMessage
from schemas.session_data import Part
from schemas.times import NO_TIME, format_time, parse_time
from tasks.export.conversation import Conversation
from tasks.export.exchanges import Call, Exchange, Said
from tasks.export.turns import UNKNOWN_TOOL
from tasks.export.words import outcome_of

__all__ = ["PLACEHOLDER_PROMPT", "agent_session", "kebab", "provider_of"]

PLACEHOLDER_PROMPT: Final = (
    "Placeholder: the system prompt that this session ran with was not recorded. "
    "Write the agent's instructions here before the workflow runs."
)
PROVIDERS: Final = {
    "anthropic": ("claude-",),
    "openai": ("gpt-", "chatgpt-", "codex-", "o1", "o3", "o4"),
    "gemini": ("gemini-",),
    "deepseek": ("deepseek-",),
}
"""The providers that an agent may name, and how the names of their models begin."""

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_NO_KEBAB = re.compile(r"[^a-z0-9]+")
_NO_PLACE = "."
_MILLISECOND = 1_000_000
_SECOND = 1_000_000_000


def agent_session(
    conversation: Conversation, exchanges: Sequence[Exchange], *, agent_slug: str | None = None
) -> tuple[AgentSessionRecord, list[SessionMessage]]:
    """The session's record and messages. `agent_slug` is the source's name unless given. Money and tokens are 0: the
    exported file does not show them."""
    slug = agent_slug or kebab(conversation.source)
    rows = _Rows(conversation)
    for key, exchange in enumerate(exchanges, 1):
        rows.exchange(key, exchange, last=key == len(exchanges))
    model = rows.model
    created, updated = parse_time(conversation.first_time), parse_time(conversation.last_time)
    record: dict[str, Any] = {
        "id": conversation.id,
        "agentSlug": slug,
        "context": {"workingDir": _NO_PLACE, "fsScopeTier": "sandboxed"},
        "status": "idle",
        "totalInputTokens": 0,
        "totalOutputTokens": 0,
        "totalCostMicrocents": 0,
        "createdAt": rows.messages[0]["timestamp"] if created == NO_TIME and rows.messages else _stamp(created),
        "updatedAt": _stamp(updated if updated != NO_TIME else rows.newest),
    }
    if conversation.title:
        record["title"] = conversation.title
    if model:
        record["modelId"] = model
        if provider := provider_of(model):
            record["agentSnapshot"] = {
                "id": slug,
                "model": model,
                "provider": provider,
                "system_prompt": PLACEHOLDER_PROMPT,
            }
    name = f"session {conversation.id}"
    return parse_record(record, name=name), parse_messages(rows.messages, name=name)


def kebab(name: str) -> str:
    """`name` as lower-case words with hyphens between them; `agent` when nothing is left of it."""
    return _NO_KEBAB.sub("-", name.lower()).strip("-") or "agent"


def provider_of(model: str) -> str | None:
    """Whose model it is, by its name; None when no provider is known to call one so."""
    found = (provider for provider, starts in PROVIDERS.items() if model.startswith(starts))
    return next(found, None)


class _Rows:
    """The messages, one after another; `model` is the one named last."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.messages: list[dict[str, Any]] = []
        self.model = ""
        starts = (conversation.first_time, conversation.landed_at)
        self.newest = next((at for at in map(parse_time, starts) if at != NO_TIME), NO_TIME)

    def exchange(self, key: int, exchange: Exchange, *, last: bool) -> None:
        answer = exchange.answer(last=last)
        dropped = answer is None and (exchange.interrupted or bool(exchange.calls))
        # Of a dropped exchange no row may be left alone: Relavium reads a bare one as the beginning of the next prompt.
        together = [Said(tuple(text for said in exchange.said for text in said.texts), exchange.said[0].time)]
        for said in together if dropped else exchange.said:
            self._row("user", _texts(said.texts), said.time)
        if dropped and not exchange.calls:
            self._row("assistant", [], exchange.said[-1].time)
        slot = 0
        for _, of_one_call in groupby(exchange.calls, key=lambda call: call.group):
            calls = list(of_one_call)
            self._calls(calls, [f"session-tool:{key}:{slot + at}" for at in range(len(calls))])
            slot += len(calls)
        if answer is not None:
            self._row("assistant", _texts(answer.texts), answer.time, answer.model)

    def _calls(self, calls: list[Call], ids: list[str]) -> None:
        uses = [
            {"type": "tool_call", "id": id, "name": _tool_name(call.tool.name), "argsBytes": _size(call.use)}
            for call, id in zip(calls, ids, strict=True)
        ]
        self._row("assistant", uses, calls[0].time, calls[0].model)
        results = [
            {
                "type": "tool_result",
                "toolCallId": id,
                "resultBytes": _size(call.result),
                "outcome": outcome_of(call.result, self.conversation.source),
            }
            for call, id in zip(calls, ids, strict=True)
            if call.result is not None
        ]
        if results:
            self._row("tool", results, next(call.result_time for call in reversed(calls) if call.result is not None))

    def _row(self, role: str, content: list[dict[str, Any]], time: str, model: str = "") -> None:
        number = len(self.messages)
        at = parse_time(time)
        # A record without a time is as old as the row before it.
        self.newest = at if at != NO_TIME else self.newest
        row: dict[str, Any] = {
            "id": f"{self.conversation.id}:{number}",
            "sessionId": self.conversation.id,
            "sequenceNumber": number,
            "role": role,
            "content": content,
            "timestamp": _stamp(self.newest),
        }
        if model:
            row["modelId"] = self.model = model
        self.messages.append(row)


def _texts(texts: Iterable[str]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text} for text in texts]


def _tool_name(name: str) -> str:
    return name if _TOOL_NAME.fullmatch(name) else UNKNOWN_TOOL


def _size(part: Part) -> int:
    return min(max(part.bytes, 0), MAX_SAFE_INTEGER)


def _stamp(value: int) -> str:
    """`value` nanoseconds since the epoch as Relavium's own exporter shows times."""
    seconds, rest = divmod(value, _SECOND)
    return f"{format_time(seconds * _SECOND)[:-1]}.{rest // _MILLISECOND:03d}Z"
