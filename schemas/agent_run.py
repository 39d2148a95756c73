"""One headless run in numbers and words: what it used, what it did, and how it is judged (headless agent runs; usage
rows, "Headless runs").

Exit codes lie, so a verdict is drawn from evidence and carries its reason. Tokens follow one convention whatever the
runner's: input without the cache's part, and reasoning as a part of output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeGuard

__all__ = ["ModelCall", "Status", "StopReason", "TokenCount", "ToolOutcome", "ToolUse", "Verdict", "is_count"]

_LARGEST_COUNT: Final = 2**53 - 1
"""The largest that every reader of JSON keeps exactly, DSH's logs among them."""

Status = Literal["completed", "failed", "interrupted"]
"""``completed``: the task was carried out. ``failed``: it was not, and the run ended by itself or at a limit.
``interrupted``: the run was cut from outside and says nothing about the task."""

StopReason = Literal[
    "completed",
    # at a limit of the specification
    "turn_limit",
    "tool_round_limit",
    "token_limit",
    "budget_exceeded",
    "timeout",
    "output_limit",
    "context_overflow",
    # from outside
    "cancelled",
    "interrupted",
    # the provider
    "provider_refused",
    "provider_unavailable",
    "rate_limited",
    "missing_key",
    # what the run itself shows
    "tool_denied",
    "empty_prompt",
    "empty_answer",
    "open_turn",
    "runner_missing",
    "runner_failed",
]

ToolOutcome = Literal["ok", "error", "denied", "unknown_tool", "cancelled", "open"]
"""``open``: no result was seen."""


def is_count(value: object) -> TypeGuard[int]:
    """Whether this may be a number of tokens: what a provider says can be anything."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_COUNT


@dataclass(frozen=True)
class TokenCount:
    """Tokens by kind; ``input`` is what the cache neither gave nor took, ``reasoning`` is part of ``output``."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0

    @property
    def total(self) -> int:
        return self.input + self.cache_read + self.cache_write + self.output

    def __add__(self, other: TokenCount) -> TokenCount:
        return TokenCount(
            self.input + other.input,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.output + other.output,
            self.reasoning + other.reasoning,
        )

    def __sub__(self, other: TokenCount) -> TokenCount:
        return TokenCount(
            self.input - other.input,
            self.cache_read - other.cache_read,
            self.cache_write - other.cache_write,
            self.output - other.output,
            self.reasoning - other.reasoning,
        )


@dataclass(frozen=True)
class ModelCall:
    """One answer of a model. ``tokens`` None: it was cut or refused before it said what it used; that is unknown, and
    not zero. ``time`` is in microseconds since 1970, UTC."""

    key: str
    model: str
    tokens: TokenCount | None
    time: int | None = None


@dataclass(frozen=True)
class ToolUse:
    """One call of a tool, by the name the model gave."""

    name: str
    outcome: ToolOutcome


@dataclass(frozen=True)
class Verdict:
    """How a run is judged; ``reason`` is one sentence, without secrets."""

    status: Status
    stop: StopReason
    reason: str
