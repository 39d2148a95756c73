"""A session as the machine sees it: what does not change while an instance lives, and what does.

`advance` in `machine.py` takes a `Session` and an input to the session after it and the commands to carry out, in
their order. Events that were not stored make a session that does nothing any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from schemas.relavium_agent import Agent
from tasks.agents.native.budget import NO_CAPS, NOTHING_USED, Caps, Ledger, Price
from tasks.agents.native.conversation import (
    Answer,
    Exchange,
    Request,
    Round,
    Route,
    ToolResult,
    ToolSpec,
)
from tasks.agents.native.fallback import FIRST_ATTEMPT, Attempt
from tasks.agents.native.protocol import Command
from tasks.agents.native.tool_loop import DEFAULT_LOOPS, LoopLimits

__all__ = ["DEFAULT_MAX_TURNS", "CompactionRun", "Node", "Rules", "Session", "Step", "Turn"]

DEFAULT_MAX_TURNS: Final = 50


@dataclass(frozen=True, slots=True)
class Rules:
    """What does not change while a session instance lives.

    ``windows`` gives a route's context window in tokens, None where it is not known for sure. ``permit`` says of a
    tool's name whether it runs, is denied or is unknown. ``max_turns`` 0 means the default. ``max_messages`` is the
    suffix that is kept when folding after a turn fails; None keeps all.
    """

    agent: Agent
    price: Price
    windows: Callable[[Route], int | None]
    permit: Callable[[str], Literal["run", "denied", "unknown"]]
    tools: tuple[ToolSpec, ...] = ()
    caps: Caps = NO_CAPS
    loops: LoopLimits = DEFAULT_LOOPS
    max_turns: int = DEFAULT_MAX_TURNS
    compact_threshold: float = 0.8
    max_tokens_estimate: int | None = None
    max_messages: int | None = None
    after_turn_compaction: bool = True
    opening: tuple[tuple[str, Mapping[str, Any]], ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """A message on the log's surface: its event's number, and the turn it belongs to; 0 for a boundary's."""

    seq: int
    turn: int


@dataclass(frozen=True, slots=True)
class CompactionRun:
    """A compaction under way: turns to fold (``left`` not folded yet, ``now`` in this pass) and turns to keep."""

    id: str
    origin: Literal["manual", "pre_send", "after_turn", "recovery"]
    keep: tuple[Exchange, ...]
    left: tuple[Exchange, ...]
    now: tuple[Exchange, ...] = ()
    folded: tuple[Exchange, ...] = ()
    summary: str | None = None
    passes: int = 0
    opened: bool = False
    attempt: Attempt = FIRST_ATTEMPT
    request: Request | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn under way. ``step`` counts its requests, ``open_step`` says that one is not ended in the log."""

    number: int
    text: str
    step: int = 0
    open_step: bool = False
    said: bool = False
    engaged: bool = False
    attempt: Attempt = FIRST_ATTEMPT
    rounds: tuple[Round, ...] = ()
    answer: Answer | None = None
    ready: tuple[ToolResult, ...] = ()
    call_seqs: tuple[tuple[str, int], ...] = ()
    retry: str | None = None
    compacted: Literal["no", "tried", "done"] = "no"
    recovered: bool = False


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation with one agent. ``run`` is what this instance used, ``before`` what those before it did, and
    ``started_ms`` when this one began.
    """

    id: str
    started_ms: int
    status: Literal["new", "idle", "streaming", "compacting", "ended"] = "new"
    exchanges: tuple[Exchange, ...] = ()
    summary: str | None = None
    surface: tuple[Node, ...] = ()
    next_seq: int = 0
    turns: int = 0
    engaged_turns: int = 0
    compactions: int = 0
    call_ids: frozenset[str] = frozenset()
    run: Ledger = NOTHING_USED
    before: Ledger = NOTHING_USED
    header: Mapping[str, Any] | None = None
    context: Mapping[str, Any] | None = None
    turn: Turn | None = None
    compaction: CompactionRun | None = None
    latched: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """What `advance` gives."""

    session: Session
    commands: tuple[Command, ...] = field(default=())
