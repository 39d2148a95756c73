"""What is put to the session machine, what it asks for, and what it reports.

Commands that need an answer (`Ask`, `Run`, `Pause`, `Disclose`) come last in a step, and their answer is the next
input. An `Append` is durable before anything that follows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from tasks.agents.native.conversation import Answer, Failure, Request, Route, ToolCall, ToolResult
from tasks.agents.native.memory import PolicyRefusal

__all__ = [
    "Abort",
    "Answered",
    "Append",
    "Ask",
    "Cancel",
    "Command",
    "Compact",
    "CompactionResult",
    "Disclose",
    "Disclosed",
    "Event",
    "Expired",
    "Failed",
    "Input",
    "NotStored",
    "Pause",
    "Paused",
    "Report",
    "Run",
    "Send",
    "Start",
    "StopReason",
    "ToolsRan",
    "Trim",
    "TrimResult",
    "TurnResult",
]

Event = dict[str, Any]

StopReason = Literal[
    "completed",
    "turn_limit",
    "budget_exceeded",
    "tool_loop",
    "context_overflow",
    "max_tokens",
    "content_filter",
    "provider_error",
    "aborted",
    "cancelled",
    "not_stored",
]
"""Why a turn ended. Only ``completed`` is an answer, and only it is carried to later requests."""


@dataclass(frozen=True, slots=True)
class Start:
    """Open the session, or take it up again."""


@dataclass(frozen=True, slots=True)
class Send:
    """The user's next message."""

    text: str


@dataclass(frozen=True, slots=True)
class Abort:
    """End the turn, keep the session."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """End turn and session."""


@dataclass(frozen=True, slots=True)
class Expired:
    """The run's time is over while something was under way."""


@dataclass(frozen=True, slots=True)
class Compact:
    """Fold the older turns into a summary."""


@dataclass(frozen=True, slots=True)
class Trim:
    """Keep only the last turns, of at most so many messages."""

    messages: int


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to `Ask`."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Failed:
    """There is none."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class ToolsRan:
    """The results of `Run`, in the order of its calls."""

    results: tuple[ToolResult, ...]


@dataclass(frozen=True, slots=True)
class Paused:
    """`Pause` is over."""


@dataclass(frozen=True, slots=True)
class Disclosed:
    """`Disclose` was acknowledged; ``refused`` says why not."""

    refused: str | None = None


@dataclass(frozen=True, slots=True)
class NotStored:
    """Events of an `Append` are not durable."""

    reason: str


Input = (
    Start
    | Send
    | Abort
    | Cancel
    | Expired
    | Compact
    | Trim
    | Answered
    | Failed
    | ToolsRan
    | Paused
    | Disclosed
    | NotStored
)


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn ended. ``cap`` names the limit of a ``budget_exceeded``; ``failure`` is the provider's last."""

    stop: StopReason
    message: str = ""
    text: str = ""
    cap: str | None = None
    failure: Failure | None = None
    turn: int = 0
    rounds: int = 0


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """How a compaction ended."""

    kind: Literal["compacted", "nothing_to_compact", "failed", "budget_refused", "cancelled"]
    message: str = ""
    kept_turns: int = 0
    passes: int = 0
    moment_opened: bool = False


@dataclass(frozen=True, slots=True)
class TrimResult:
    """How a trim ended."""

    kind: Literal["trimmed", "nothing_to_trim"]
    kept_turns: int = 0
    dropped_turns: int = 0


@dataclass(frozen=True, slots=True)
class Append:
    """Make these events durable before anything that follows."""

    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Ask:
    """Make one model request."""

    route: Route
    request: Request


@dataclass(frozen=True, slots=True)
class Run:
    """Run these tools."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Pause:
    """Let so many milliseconds pass."""

    milliseconds: int


@dataclass(frozen=True, slots=True)
class Disclose:
    """Have the surface acknowledge this sentence before anything is sent."""

    message: str


@dataclass(frozen=True, slots=True)
class Report:
    """Tell the caller."""

    result: TurnResult | CompactionResult | TrimResult | PolicyRefusal


Command = Append | Ask | Run | Pause | Disclose | Report
