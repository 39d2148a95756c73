"""Which model is asked next when one fails (agent-session specification, "What a session is": the fallback chain).

A request is tried on the agent's own model as often as ``retry.max`` says (once where it says nothing), then on each
entry of ``fallback_chain`` as often as that entry says. Only what another attempt can mend moves on: a rate limit, a
server that fails or does not answer, a stream that breaks off. A refused request, key, quota or content does not. A
model that answered stays for the rest of the turn; one that asks for more patience than we have is not tried again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from schemas.relavium_agent import Agent
from tasks.agents.native.conversation import Failure, Route

__all__ = ["FIRST_ATTEMPT", "Attempt", "Entry", "chain_of", "next_attempt"]

_RATE_LIMITS: Final = frozenset({"RATE_LIMIT"})
_UNAVAILABLE: Final = frozenset(
    {"SERVER", "OVERLOADED", "TIMEOUT", "TRANSPORT", "UNREACHABLE", "STREAM_CLOSED", "EMPTY_RESPONSE"}
)
FIRST_WAIT_MS: Final = 500
LONGEST_WAIT_MS: Final = 30_000


@dataclass(frozen=True, slots=True)
class Entry:
    """A model of the chain, and how often one request may be tried on it."""

    route: Route
    attempts: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a request: the place of its entry in the chain and its number there, from 1. ``total`` counts the
    tries of this request over the whole chain.
    """

    entry: int
    number: int = 1
    total: int = 1
    wait_ms: int = 0


FIRST_ATTEMPT: Final = Attempt(0)


def chain_of(agent: Agent) -> tuple[Entry, ...]:
    """The agent's own model and its alternatives, in their order."""
    own = Entry(Route(agent.provider, agent.model), agent.retry.max if agent.retry else 1)
    return (own, *(Entry(Route(each.provider, each.model), each.max_attempts) for each in agent.fallback_chain or []))


def next_attempt(agent: Agent, chain: tuple[Entry, ...], tried: Attempt, failure: Failure) -> Attempt | None:
    """The attempt after one that failed; None when this failure, or this chain, ends it."""
    if not _mends(agent, failure):
        return None
    if tried.number < chain[tried.entry].attempts and (failure.retry_after_ms or 0) <= LONGEST_WAIT_MS:
        return Attempt(tried.entry, tried.number + 1, tried.total + 1, _wait(agent, tried.number, failure))
    if tried.entry + 1 < len(chain):
        return Attempt(tried.entry + 1, 1, tried.total + 1)
    return None


def _mends(agent: Agent, failure: Failure) -> bool:
    allowed = agent.retry.retry_on if agent.retry else None
    if failure.code in _RATE_LIMITS:
        return allowed is None or "provider_rate_limit" in allowed
    return failure.code in _UNAVAILABLE and (allowed is None or "provider_unavailable" in allowed)


def _wait(agent: Agent, tries: int, failure: Failure) -> int:
    """Milliseconds before the same model is tried again: what it asked for, or a growing pause."""
    if failure.retry_after_ms is not None:
        return failure.retry_after_ms
    first = (agent.retry.backoff_ms if agent.retry else None) or FIRST_WAIT_MS
    grown = first * tries if agent.retry and agent.retry.backoff == "linear" else first * 2 ** (tries - 1)
    return int(min(grown, LONGEST_WAIT_MS))
