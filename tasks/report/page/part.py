"""What a figure of the page is made of, and what its makers share: tables cut short, and findings in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.report.amounts import NONE, Line
from tasks.report.figures import Kind, count, money, named, share, shortened
from tasks.report.page.markup import Markup

__all__ = ["NO_COST", "ROWS", "Cells", "Part", "dollars", "first", "leader"]

MICRO = 1_000_000
ROWS = 100
NO_COST = "No call in this range has a known cost."

Cells = tuple[list[str], list[str]]
"""A row: names, then figures."""


@dataclass(frozen=True, slots=True)
class Part:
    """One figure of the page; `chart` is None where there is nothing to draw, and `finding` then says why."""

    identity: str
    title: str
    finding: str
    chart: dict[str, Any] | None
    numbers: Markup
    wide: bool = False


def dollars(microusd: int | None) -> float | None:
    """Dollars for a chart, which has no bar for what is not known."""
    return None if microusd is None else microusd / MICRO


def first(lines: Sequence[Line], row: Callable[[Line], Cells]) -> list[Cells]:
    """The first lines of many as rows, and one row for what the others come to."""
    rows = [row(line) for line in lines[:ROWS]]
    if rest := lines[ROWS:]:
        delegated = sum((line.delegated for line in rest), NONE)
        (_, *blanks), numbers = row(Line("", sum((line.all for line in rest), NONE), delegated))
        rows.append(([f"{count(len(rest))} more", *[""] * len(blanks)], numbers))
    return rows


def leader(lines: Sequence[Line], kind: Kind, verb: str, digits: int) -> str:
    """Who comes first, in a sentence; nothing where nobody does."""
    whole = sum((line.all for line in lines), NONE)
    if whole.known_microusd <= 0:
        return ""
    dearest = lines[0].all
    name = shortened(named(lines[0].name, kind), 60)
    part = share(dearest.cost_share_of(whole))
    return f"{name} {verb}: {money(dearest.cost_microusd, digits)}, {part} of all."
