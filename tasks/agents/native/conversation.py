"""What is said in a session: requests, answers, tool calls and results, and what an answer used.

Plain values of our own (agent-session specification, "Session messages"): no provider's type passes this line but for
`Answer.raw`, which nothing here looks into.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

__all__ = [
    "MAYBE_BILLED",
    "NEVER_SENT",
    "Answer",
    "Exchange",
    "Failure",
    "Finish",
    "Message",
    "Outcome",
    "Request",
    "Round",
    "Route",
    "ToolCall",
    "ToolResult",
    "ToolSpec",
    "Usage",
]

Finish = Literal["stop", "tool_use", "length", "content_filter", "context_window"]
Outcome = Literal["ok", "error", "denied", "cancelled"]

NEVER_SENT: Final = frozenset({"MISSING_CREDENTIAL", "UNREACHABLE", "UNSUPPORTED_MODEL"})
MAYBE_BILLED: Final = frozenset({"TIMEOUT", "TRANSPORT", "STREAM_CLOSED", "MALFORMED_RESPONSE", "ABORTED"})
"""Codes of failures that say what became of the request. Logs keep the code, so a session that is taken up again knows
as much as the one before.
"""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one provider call, in disjoint counts: the whole prompt is ``input_uncached + cache_read +
    cache_write``; ``reasoning`` is part of ``output``.
    """

    input_uncached: int
    output: int
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int | None = None

    @property
    def total(self) -> int:
        """All tokens, cached ones too."""
        return self.input_uncached + self.cache_read + self.cache_write + self.output

    def as_event(self) -> dict[str, int]:
        """As a session log writes it (DSH specification, section 4: TokenUsage)."""
        counts = {"inputTokens": self.input_uncached, "outputTokens": self.output}
        if self.cache_read:
            counts["cacheReadTokens"] = self.cache_read
        if self.cache_write:
            counts["cacheWriteTokens"] = self.cache_write
        if self.reasoning is not None:
            counts["reasoningTokens"] = self.reasoning
        return counts

    @classmethod
    def of_event(cls, value: Any) -> Usage | None:
        """What a session log says was used; None where it says nothing, for unknown is not zero."""
        if not isinstance(value, dict) or "inputTokens" not in value or "outputTokens" not in value:
            return None
        return cls(
            input_uncached=int(value["inputTokens"]),
            output=int(value["outputTokens"]),
            cache_read=int(value.get("cacheReadTokens", 0)),
            cache_write=int(value.get("cacheWriteTokens", 0)),
            reasoning=int(value["reasoningTokens"]) if "reasoningTokens" in value else None,
        )


@dataclass(frozen=True, slots=True)
class Route:
    """Who is asked: a model at a provider."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}"


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model is told of it; ``parameters`` is a JSON schema."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that an answer asks for. ``id`` is the provider's, ``log_id`` the one that is unique in the session."""

    id: str
    name: str
    arguments: str
    log_id: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What became of a call; ``code`` says why there is no result of the tool's own."""

    call_id: str
    text: str
    outcome: Outcome = "ok"
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer of a model. ``usage`` is None when the provider did not say what it used."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    finish: Finish = "stop"
    reasoning: str = ""
    raw: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Failure:
    """A request that got no whole answer.

    ``retry_after_ms`` is what the provider asked for, ``usage`` what it said was used all the same.
    """

    code: str
    message: str
    status: int | None = None
    retry_after_ms: int | None = None
    usage: Usage | None = None

    @property
    def sent(self) -> bool:
        """Whether the request left this machine, so that the provider was engaged."""
        return self.code not in NEVER_SENT

    @property
    def maybe_billed(self) -> bool:
        """Whether it broke off under way without being refused, so that what it used is unknown."""
        return self.code in MAYBE_BILLED

    def as_event(self) -> dict[str, Any]:
        """As a session log writes it (DSH specification, section 4: LlmFailure)."""
        failure: dict[str, Any] = {"message": self.message, "code": self.code}
        if self.status is not None:
            failure["status"] = self.status
        if self.retry_after_ms is not None:
            failure["providerRetryAfterMs"] = self.retry_after_ms
        return failure


@dataclass(frozen=True, slots=True)
class Round:
    """A tool round of the turn under way: an answer that called tools, and all their results in the calls' order."""

    answer: Answer
    results: tuple[ToolResult, ...]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A completed turn as later requests see it: its user's text and the final answer's, which may be empty."""

    turn: int
    user: str
    answer: str


@dataclass(frozen=True, slots=True)
class Message:
    """One text message of a request."""

    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class Request:
    """One model request, whole: the caller owns it, and nothing of it is shared with the session.

    ``rounds`` are the tool rounds of the present turn, after the messages. ``estimate`` is its input in tokens.
    """

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    rounds: tuple[Round, ...] = ()
    max_tokens: int | None = None
    estimate: int = 0
