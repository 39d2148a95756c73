"""What a session's events come to, as values. Texts are whole; times and other detail stay with the events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

__all__ = ["Compaction", "Injected", "Outcome", "Prompt", "SessionFacts", "Step", "ToolCall", "Turn", "Usage"]

Usage = dict[str, int]
"""Tokens as the log names them: inputTokens is what no cache gave, reasoningTokens is part of outputTokens."""

Outcome = Literal["ok", "error", "aborted", "unknown", "not-started", "none"]
"""How a tool call ended. A command that failed is ``ok``: the tool did what it was asked; ``none`` has no result."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a person, or the agent that delegates, asked for; ``turn`` is None outside turns."""

    seq: int
    turn: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Injected:
    """A message in a user's role that no user wrote; ``kind`` says who did."""

    seq: int
    kind: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn. ``entered_by`` are the kinds of messages it began with; ``end`` is None while it is open, and
    ``end_detail`` is the error's code or who aborted it. ``final_text`` is its last answer's that has text.
    """

    turn: int | None
    inherited: bool
    entered_by: tuple[str, ...]
    end: str | None
    end_detail: str | None
    final_text: str | None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that an answer asked for; ``started`` says whether its execution was recorded."""

    call_id: str
    name: str
    turn: int | None
    step: int | None
    started: bool
    outcome: Outcome
    error_code: str | None


@dataclass(frozen=True, slots=True)
class Step:
    """One model call, with the attempts that failed before. ``usage`` is None for an answer that was cut short, and
    where there is no answer: what it cost is not known, which is not nothing.
    """

    turn: int | None
    step: int | None
    attempts_failed: int
    retries: int
    usage: Usage | None
    model: str | None
    finish: str | None
    interrupted: bool


@dataclass(frozen=True, slots=True)
class Compaction:
    """A summary that took the place of older messages: a model call of its own, in no step."""

    compaction_id: str
    summary_seq: int
    checkpoint_seq: int | None
    turn: int | None
    manual: bool
    summary: str
    shadowed_seqs: tuple[int, ...]
    model: str | None
    usage: Usage | None


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """A session's own doings. What it inherited counts only in ``turns``, ``surface`` and the titles; the rest of it
    belongs to the session it was copied from.
    """

    events: int
    inherited_events: int
    title: str | None
    title_source: str | None
    title_history: tuple[str, ...]
    human_prompts: tuple[Prompt, ...]
    delegated_prompts: tuple[Prompt, ...]
    injected: tuple[Injected, ...]
    turns: tuple[Turn, ...]
    tool_calls: tuple[ToolCall, ...]
    steps: tuple[Step, ...]
    compactions: tuple[Compaction, ...]
    models: tuple[str, ...]
    surface: tuple[int, ...]
    resumes: tuple[int, ...]

    @property
    def final_texts(self) -> list[tuple[int | None, str | None]]:
        """Turn and final text of each own turn that was completed."""
        return [(turn.turn, turn.final_text) for turn in self.turns if turn.end == "completed" and not turn.inherited]

    @property
    def open_turn(self) -> bool:
        """Whether the last turn has no end."""
        return bool(self.turns) and self.turns[-1].end is None

    @property
    def last_turn_end(self) -> str | None:
        """How the last turn that has an end ended."""
        return next((turn.end for turn in reversed(self.turns) if turn.end is not None), None)

    @property
    def usage_total(self) -> Usage:
        """The tokens of all own steps."""
        return _sum(step.usage for step in self.steps)

    @property
    def usage_total_with_compaction(self) -> Usage:
        """The tokens of all own steps and summaries."""
        return _sum([self.usage_total, *(compaction.usage for compaction in self.compactions)])


def _sum(usages: Iterable[Usage | None]) -> Usage:
    total: Usage = {}
    for usage in usages:
        for name, tokens in (usage or {}).items():
            total[name] = total.get(name, 0) + tokens
    return total
