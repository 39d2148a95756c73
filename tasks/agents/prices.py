"""What a model call of a run costs: by the pinned price list, at the time of the call."""

from __future__ import annotations

from schemas.agent_run import ModelCall
from schemas.agent_spec import AgentSpec
from tasks.agents.native.conversation import Route, Usage
from tasks.agents.native.prices import list_price
from tasks.agents.run import Clock
from tasks.agents.watch import Price

__all__ = ["listed", "listed_for"]


def listed(spec: AgentSpec, clock: Clock) -> Price:
    """Prices for the calls of `spec`, in micro-dollars; a call without a time is priced when it is seen."""
    return listed_for(spec.agent.provider, spec.agent.model, clock)


def listed_for(provider: str, model: str, clock: Clock) -> Price:
    """Prices for calls of a provider; one that names no model is of `model`."""

    def price(call: ModelCall) -> int | None:
        if call.tokens is None:
            return None
        counts = Usage(
            input_uncached=call.tokens.input,
            cache_read=call.tokens.cache_read,
            cache_write=call.tokens.cache_write,
            output=call.tokens.output,
        )
        at = call.time // 1_000 if call.time is not None else clock() // 1_000_000
        return list_price(Route(provider, call.model or model), counts, at)

    return price
