"""How a table of figures is fitted to a terminal: columns go one by one, names fold, and no figure or date is ever cut.

Columns without a single entry go first; then those that others tell, or nearly, for names to stay whole. Those that
matter more go only where the table would be too wide with its names folded as well. What is left then is printed as
wide as it is, and the terminal breaks its lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

__all__ = ["UNLIMITED", "Made", "print_fitted"]

UNLIMITED: Final = 10_000
"""Columns of a file or a pipe."""
_FOLDED: Final = 12
"""Columns of a name that is folded, at least."""

Made = Callable[[Sequence[str], int | None], Table]
"""Makes a table of these columns, with names that take at most so many columns of the terminal; None: all they need."""


def print_fitted(
    console: Console, made: Made, columns: Sequence[str], first: Sequence[str], last: Sequence[str]
) -> list[str]:
    """Print what is `made` of as many `columns` as there is room for; those left out. Of them go `first`, in this
    order, for names to stay whole, and `last` for figures to."""
    unlimited = console.options.update(width=UNLIMITED)
    whole = made(columns, None)
    entries = {str(column.header): any(map(str, column.cells)) for column in whole.columns}
    empty = [column for column in columns if not entries[column]]
    for left_out, names in _steps(columns, (*empty, *first), last):
        kept = [column for column in columns if column not in left_out]
        table = made(kept, names) if left_out or names else whole
        width = Measurement.get(console, unlimited, table).maximum
        if width <= console.width:
            break
    if width > console.width:
        console = Console(highlight=False, width=width)
    console.print(made(kept, None) if names else table)  # rich folds names, as little as it must
    return left_out


def _steps(columns: Sequence[str], first: Sequence[str], last: Sequence[str]) -> Iterator[tuple[list[str], int | None]]:
    """What is left out, from nothing on, and how wide names may be then."""
    for_names = [column for column in dict.fromkeys(first) if column in columns]
    for number in range(len(for_names) + 1):
        yield for_names[:number], None
    for_figures = [column for column in last if column in columns and column not in for_names]
    for number in range(len(for_figures) + 1):
        yield [*for_names, *for_figures[:number]], _FOLDED
