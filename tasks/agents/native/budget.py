"""What a run may use, checked before each request with an estimate (agent-session specification, "Usage coverage").

Three figures are kept apart: what providers said was used, what they may have charged without saying (the estimate of
each request whose usage is unknown), and the price of the first. Unknown is never taken for zero: it counts against
the caps, and never as cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from tasks.agents.native.conversation import Route, Usage

__all__ = [
    "NOTHING_USED",
    "NO_CAPS",
    "Caps",
    "Ledger",
    "Pending",
    "Price",
    "Refusal",
    "admit",
    "engage",
    "release",
    "resolve",
]

Price = Callable[[Route, Usage, int], int | None]
"""The price of one call in micro-dollars at a time (milliseconds since 1970); None when the model has no known one."""


@dataclass(frozen=True, slots=True)
class Caps:
    """The limits of a run; None where there is none. ``answers`` counts the model's answers, ``tokens`` all tokens,
    cached ones too.
    """

    tokens: int | None = None
    cost_microusd: int | None = None
    wall_ms: int | None = None
    answers: int | None = None
    tool_rounds: int | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that was not sent; ``cap`` is the name of the limit."""

    cap: str
    message: str


@dataclass(frozen=True, slots=True)
class Pending:
    """A request under way: what it was admitted with."""

    route: Route
    tokens: int
    microusd: int | None


@dataclass(frozen=True, slots=True)
class Ledger:
    """What has been used. ``unknown`` are calls that may have been charged without our being told how much;
    ``maybe_tokens`` and ``maybe_microusd`` are their estimates.
    """

    calls: int = 0
    unknown: int = 0
    unpriced: int = 0
    input_uncached: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    microusd: int = 0
    maybe_tokens: int = 0
    maybe_microusd: int = 0
    answers: int = 0
    tool_rounds: int = 0
    pending: Pending | None = None

    @property
    def tokens(self) -> int:
        """All tokens that providers said were used."""
        return self.input_uncached + self.cache_read + self.cache_write + self.output

    @property
    def complete(self) -> bool:
        """Whether the figures are all there is: no call is unknown, without a price or under way."""
        return not self.unknown and not self.unpriced and self.pending is None


NO_CAPS: Final = Caps()
NOTHING_USED: Final = Ledger()


def admit(
    caps: Caps, ledger: Ledger, route: Route, estimate: Usage, *, price: Price, started_ms: int, now_ms: int
) -> Pending | Refusal:
    """Whether a request of this estimated size may be sent, and with what it is then booked."""
    cost = price(route, estimate, now_ms)
    if caps.wall_ms is not None and now_ms - started_ms >= caps.wall_ms:
        return _over("wall_time", f"{now_ms - started_ms} of {caps.wall_ms} ms have passed")
    if caps.answers is not None and ledger.answers >= caps.answers:
        return _over("answers", f"{ledger.answers} of {caps.answers} answers have been given")
    used = ledger.tokens + ledger.maybe_tokens
    if caps.tokens is not None and used + estimate.total > caps.tokens:
        return _over("tokens", f"{used} used, {estimate.total} more needed at most, {caps.tokens} allowed")
    if caps.cost_microusd is not None:
        if cost is None or ledger.unpriced:
            what = f"{route} has no known price" if cost is None else f"{ledger.unpriced} calls had no known price"
            return _over("cost_microusd", f"{what}, so the cap cannot be kept")
        spent = ledger.microusd + ledger.maybe_microusd
        if spent + cost > caps.cost_microusd:
            return _over(
                "cost_microusd",
                f"{spent} spent, {cost} more needed at most, {caps.cost_microusd} allowed (micro-dollars)",
            )
    return Pending(route, estimate.total, cost)


def engage(ledger: Ledger, pending: Pending) -> Ledger:
    """The ledger with a request under way. What was under way before and never resolved is unknown."""
    return replace(_forget(ledger), pending=pending)


def resolve(ledger: Ledger, usage: Usage | None, *, price: Price, now_ms: int) -> Ledger:
    """The ledger after an answer: with its usage, or with one more unknown."""
    if usage is None:
        return _forget(ledger)
    route = ledger.pending.route if ledger.pending else None
    cost = price(route, usage, now_ms) if route else None
    return replace(
        ledger,
        pending=None,
        calls=ledger.calls + 1,
        input_uncached=ledger.input_uncached + usage.input_uncached,
        cache_read=ledger.cache_read + usage.cache_read,
        cache_write=ledger.cache_write + usage.cache_write,
        output=ledger.output + usage.output,
        microusd=ledger.microusd + (cost or 0),
        unpriced=ledger.unpriced + (cost is None),
    )


def release(ledger: Ledger) -> Ledger:
    """The ledger after a request that a provider refused or never saw: nothing was charged."""
    return replace(ledger, pending=None)


def _forget(ledger: Ledger) -> Ledger:
    pending = ledger.pending
    if pending is None:
        return ledger
    return replace(
        ledger,
        pending=None,
        calls=ledger.calls + 1,
        unknown=ledger.unknown + 1,
        maybe_tokens=ledger.maybe_tokens + pending.tokens,
        maybe_microusd=ledger.maybe_microusd + (pending.microusd or 0),
    )


def _over(cap: str, detail: str) -> Refusal:
    return Refusal(cap, f"the {cap} cap of this run: {detail}")
