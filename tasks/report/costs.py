"""What a line of a table says of its cost: all of it, what sessions spent themselves, and what their sub-agents did."""

from __future__ import annotations

from tasks.report.amounts import Line
from tasks.report.figures import cost_and_parts

__all__ = ["costs_of"]


def costs_of(line: Line, digits: int) -> tuple[str, str, str]:
    """Cost, own and delegated, which add up as they are shown; a part without calls is empty."""
    own, delegated = line.own, line.delegated
    cost, mine, theirs = cost_and_parts(line.all.cost_microusd, own.cost_microusd, delegated.cost_microusd, digits)
    return cost, mine if own.calls else "", theirs if delegated.calls else ""
