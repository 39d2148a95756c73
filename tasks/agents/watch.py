"""What is seen of a run while it goes on, and the one place that decides to stop it (headless agent runs, limits).

A runner reports calls, tools and lines; the watch adds them up against the limits of the specification. Whoever asks
for a stop first gives its cause: a run that was cancelled at its last second did not time out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from schemas.agent_run import ModelCall, StopReason, TokenCount, ToolUse
from schemas.agent_spec import Limits

__all__ = ["Price", "Watch", "unpriced"]

Price = Callable[[ModelCall], int | None]
"""What a call costs in micro-dollars; None: unknown."""


def unpriced(call: ModelCall) -> int | None:
    """No price for any call."""
    return None


class Watch:
    """The counters of one run. Belongs to one event loop. ``log`` takes lines for people, masked before they leave."""

    def __init__(
        self, limits: Limits, *, log: Callable[[str], None] = lambda line: None, price: Price = unpriced
    ) -> None:
        self.limits = limits
        self.stopping = asyncio.Event()
        self.cause: StopReason | None = None
        self.cause_detail = ""
        self.log = log
        self.calls: list[ModelCall] = []
        self.tools: list[ToolUse] = []
        self.tokens = TokenCount()
        self.cost_microusd = 0
        self.tool_rounds = 0
        self.turns = 0
        self._price = price

    def stop(self, cause: StopReason, detail: str) -> None:
        """Ask the run to end; only the first cause counts."""
        if self.cause is None:
            self.cause, self.cause_detail = cause, detail
            self.stopping.set()

    def call(self, call: ModelCall) -> None:
        """A call that ended. Stops the run where a limit is passed."""
        self.calls.append(call)
        if call.tokens is not None:
            self.tokens += call.tokens
        cost = self._price(call)
        limits = self.limits
        if cost is not None:
            self.cost_microusd += cost
        elif limits.cost_microusd is not None and call.tokens is not None:
            self.stop("budget_exceeded", f"no price is known of {call.model}, so that its cost cannot be limited")
        if limits.tokens is not None and self.tokens.total > limits.tokens:
            self.stop("token_limit", f"{self.tokens.total} tokens, above limits.tokens of {limits.tokens}")
        if limits.cost_microusd is not None and self.cost_microusd > limits.cost_microusd:
            self.stop(
                "budget_exceeded",
                f"{self.cost_microusd} micro-dollars, above limits.cost_microusd of {limits.cost_microusd}",
            )

    def tool(self, tool: ToolUse) -> None:
        """A tool that was called, with its outcome."""
        self.tools.append(tool)

    def tool_round(self) -> None:
        """An answer that calls tools. Stops the run that goes past its limit of such rounds."""
        self.tool_rounds += 1
        allowed = self.limits.tool_rounds
        if allowed is not None and self.tool_rounds > allowed:
            self.stop("tool_round_limit", f"round {self.tool_rounds} of tools, above limits.tool_rounds of {allowed}")

    def one_more_turn(self) -> None:
        """Another answer of the model is due after this one: for a runner that cannot count its turns itself."""
        self.turns += 1
        if self.turns >= self.limits.turns:
            self.stop("turn_limit", f"{self.turns} turns and no end, with limits.turns of {self.limits.turns}")
