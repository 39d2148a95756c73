"""Tables of the page: what the charts draw, in numbers, for those who read, copy or cannot see them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tasks.report.amounts import Amounts
from tasks.report.figures import count, money, share, shortened
from tasks.report.page.markup import Markup, element

__all__ = ["AMOUNTS", "amounts_cells", "table", "unpriced"]

AMOUNTS = ("Calls", "Cost", "No price", "From cache", "Input", "Cache write", "Cache read", "Output")
"""The columns that `amounts_cells` fills."""

NAME = 120
"""Columns of a name in a table; charts have less room."""


def amounts_cells(amounts: Amounts, digits: int) -> list[str]:
    """Cells for `AMOUNTS`, costs with `digits` decimals."""
    tokens = (amounts.input, amounts.cache_write, amounts.cache_read, amounts.output)
    return [
        count(amounts.calls),
        money(amounts.cost_microusd, digits),
        unpriced(amounts),
        share(amounts.cache_hit_share),
        *map(count, tokens),
    ]


def unpriced(amounts: Amounts) -> str:
    """How many calls the cost leaves out; nothing when it leaves out none."""
    return count(amounts.without_cost) if amounts.without_cost else ""


def table(
    caption: str,
    names: Sequence[str],
    numbers: Sequence[str],
    rows: Iterable[tuple[Sequence[str], Sequence[str]]],
    foot: tuple[Sequence[str], Sequence[str]] | None = None,
) -> Markup:
    """A table whose rows are names, to the left, and figures, to the right; it scrolls by itself, with keys too."""
    head = [element("th", each, scope="col") for each in names]
    head += [element("th", each, scope="col", class_="number") for each in numbers]
    parts = [element("thead", element("tr", *head)), element("tbody", *(_row(*row) for row in rows))]
    if foot is not None:
        parts.append(element("tfoot", _row(*foot)))
    whole = element("table", *parts)
    return element("div", whole, class_="scroll", tabindex=0, role="region", aria_label=caption)


def _row(names: Sequence[str], numbers: Sequence[str]) -> Markup:
    cells = [
        # A name is isolated, so that one written from right to left does not turn its neighbours around.
        element(
            "th" if place == 0 else "td",
            element("bdi", shortened(name, NAME)),
            class_="name",
            scope="row" if place == 0 else None,
        )
        for place, name in enumerate(names)
    ]
    return element("tr", *cells, *(element("td", number, class_="number") for number in numbers))
