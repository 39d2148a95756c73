"""Completed turns: which of a session's exchanges become nodes of the workflow (Relavium notes, section 2).

A turn goes from a user's message to the assistant's row that has text and calls no tool. What was interrupted before
that is left out, and so is what follows the last completed turn; the transcript keeps it. Compaction boundaries do not
matter here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from schemas.relavium_session import SessionMessage, TextPart, ToolCallPart

__all__ = ["Turn", "completed_turns", "in_sequence", "text_of"]

UNKNOWN_TOOL = "unknown_tool"
"""The marker of a call whose tool could not be resolved; it never becomes a grant."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One completed exchange.

    ``prefix`` are the user messages before it that got no answer: sessions of old versions stored a successful turn
    with an empty answer as its user message alone. ``rows`` are the exchange's own, the user's message first and the
    answer last.
    """

    prefix: tuple[SessionMessage, ...]
    rows: tuple[SessionMessage, ...]

    @property
    def prompt(self) -> str:
        """What the user said, the prefix included, without empty pieces."""
        said = [text_of(message) for message in (*self.prefix, self.rows[0])]
        return "\n\n".join(piece for piece in said if piece)

    @property
    def tools(self) -> list[str]:
        """The tools that were called, each once, in the order of their first calls."""
        calls = (part.name for row in self.rows for part in row.content if isinstance(part, ToolCallPart))
        return [name for name in dict.fromkeys(calls) if name != UNKNOWN_TOOL]


def in_sequence(messages: Iterable[SessionMessage]) -> list[SessionMessage]:
    """The messages by sequence number; equal numbers keep their order."""
    return sorted(messages, key=lambda message: message.sequenceNumber)


def text_of(message: SessionMessage) -> str:
    """The message's text parts, empty ones included."""
    return "\n\n".join(part.text for part in message.content if isinstance(part, TextPart))


def completed_turns(messages: Iterable[SessionMessage]) -> list[Turn]:
    """The completed turns in order of sequence."""
    turns = []
    prefix: list[SessionMessage] = []
    rows: list[SessionMessage] = []
    for message in in_sequence(messages):
        if message.compaction is not None or message.role == "system":
            continue
        if message.role == "user":
            # An exchange that had begun to be answered is dropped whole; only a bare user message is kept for later.
            if len(rows) == 1 and text_of(rows[0]):
                prefix.append(rows[0])
            rows = [message]
        elif rows:
            rows.append(message)
            if _is_answer(message):
                turns.append(Turn(tuple(prefix), tuple(rows)))
                prefix, rows = [], []
    return turns


def _is_answer(message: SessionMessage) -> bool:
    types = [part.type for part in message.content]
    return message.role == "assistant" and "text" in types and "tool_call" not in types
