"""What a call costs, as far as our tables know (usage rows, "Money").

Micro-dollars, rounded half up, by the same rates as usage rows; None for a model that no table knows: unknown is not
free.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import cache

from tasks.agents.native.conversation import Route, Usage
from tasks.usage.price_table import shipped_price_table
from tasks.usage.rates import Ask, RateCard

__all__ = ["list_price"]


def list_price(route: Route, usage: Usage, at_ms: int) -> int | None:
    """The list price of one call at a time (milliseconds since 1970)."""
    whole_input = usage.input_uncached + usage.cache_read + usage.cache_write
    steps = _card().steps(Ask(route.model), datetime.fromtimestamp(at_ms / 1000, UTC))
    for step in steps:
        if step.above < whole_input <= step.upto:
            rates = step.rates
            cost = usage.input_uncached * rates.input + usage.cache_read * rates.cache_read
            cost += usage.cache_write * rates.cache_write + usage.output * rates.output
            return int(Decimal(cost).to_integral_value(ROUND_HALF_UP))
    return None


@cache
def _card() -> RateCard:
    return RateCard(shipped_price_table())
