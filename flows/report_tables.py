"""Tables of a report on standard output: as wide as they must be in a file, and as the terminal allows on one.

Names come from the data and are printed as text, never as markup. A cost that is not known is a dash, and the number of
calls that a cost leaves out stands beside it.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from flows.report_agents import AGENT_COLUMNS, AGENT_COLUMNS_FIRST_OUT, AGENT_COLUMNS_LAST_OUT, agents_table
from flows.report_fitting import UNLIMITED, Made, print_fitted
from tasks.report import TABLES, Amounts, Line, UsageReport
from tasks.report.amounts import NONE
from tasks.report.costs import costs_of
from tasks.report.coverage import covered
from tasks.report.figures import compact, cost_and_parts, count, counted, digits_for, named, shortened
from tasks.report.runs_in_words import runs_sentence

__all__ = ["print_tables", "sentence"]

_HEADS: dict[str, tuple[str, Any]] = {
    "daily": ("Day", None),
    "monthly": ("Month", None),
    "models": ("Model", "model"),
    "projects": ("Project", "project"),
    "sessions": ("Session", "session"),
}
_IN_ORDER_OF_TIME = ("daily", "monthly")
_NAME = 120
"""Columns of a name; JSON has it whole."""


def print_tables(report: UsageReport, tables: Sequence[str], limit: int) -> None:
    """The wanted tables, coverage, and one closing line; `limit` cuts lines that are in order of cost, 0 none."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name may have letters that the terminal has not
        sys.stdout.reconfigure(errors="backslashreplace")
    console = Console(highlight=False, width=None if sys.stdout.isatty() else UNLIMITED)
    calls = bool(report.totals.all.calls)
    left_out: dict[str, list[str]] = {}
    make: Made
    for name in tables:
        if name == "agents" and report.agents:
            make = partial(agents_table, report, limit)
            left_out[name] = print_fitted(console, make, AGENT_COLUMNS, AGENT_COLUMNS_FIRST_OUT, AGENT_COLUMNS_LAST_OUT)
        elif name != "agents" and calls:
            columns = ("Project", *_COLUMNS) if name == "sessions" else _COLUMNS
            make = partial(_table, report, name, limit)
            left_out[name] = print_fitted(console, make, columns, _FIRST_OUT, _LAST_OUT)
    if "agents" in tables and len(tables) < len(TABLES) and not report.agents:
        console.print(Text("No runs of agents in scope."))
    if calls and tuple(tables) != ("agents",):
        make = partial(_coverage, report, limit)
        if gone := print_fitted(console, make, _COVERAGE, (), ("Tokens", "Cost")):
            left_out["coverage"] = gone
    if any(left_out.values()):
        names = _left_out(left_out)
        console.print(Text(f"Left out for want of width: {names}. A wider terminal, a pipe or --json has them."))
    console.print(Text(sentence(report)))


def sentence(report: UsageReport) -> str:
    """What it comes to, in one line."""
    return " ".join(filter(None, (_calls_sentence(report), runs_sentence(report))))


def _calls_sentence(report: UsageReport) -> str:
    everything, scope = report.totals.all, report.scope
    if not everything.calls:
        return f"No calls in scope (time zone {scope.zone})."
    first, last = report.daily[0].key, report.daily[-1].key
    when = f"on {first}" if first == last else f"from {first} to {last}"
    gap = f"; {counted(everything.without_cost, 'call')} without a price, in no cost" if everything.without_cost else ""
    return (
        f"{counted(everything.calls, 'call')} {when} (time zone {scope.zone}): "
        f"{compact(everything.total)} tokens, {_cost(report, everything)}{gap}."
    )


def _left_out(columns: dict[str, list[str]]) -> str:
    """The columns that tables do without; which table stands beside them where it matters."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for table, names in columns.items():
        alike.setdefault(tuple(names), []).append(table)
    if len(alike) == 1:
        return ", ".join(*alike)
    return "; ".join(f"{', '.join(names)} ({', '.join(tables)})" for names, tables in alike.items() if names)


def _table(report: UsageReport, name: str, limit: int, wanted: Sequence[str], names: int | None) -> Table:
    head, kind = _HEADS[name]
    with_project = "Project" in wanted
    columns = [column for column in wanted if column != "Project"]
    table = Table(box=box.SIMPLE_HEAD, show_footer=False, pad_edge=False)
    table.add_column(head, overflow="fold", no_wrap=kind is None, max_width=None if kind is None else names)
    if with_project:
        table.add_column("Project", overflow="fold", max_width=names)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    lines, digits = report.table(name), digits_for(report.totals.all.known_microusd)
    shown = lines if name in _IN_ORDER_OF_TIME or not limit else lines[:limit]
    for line in shown:
        key = str(line.key) if kind is None else named(line.name, kind)
        _row(table, [key, *([named(line.project, "project")] if with_project else [])], line, columns, digits)
    if len(shown) < len(lines):
        rest = lines[len(shown) :]
        more = Line(None, _sum(each.all for each in rest), _sum(each.delegated for each in rest))
        _row(table, [f"{count(len(rest))} more", *([""] if with_project else [])], more, columns, digits)
    table.add_section()
    _row(table, ["All", *([""] if with_project else [])], report.totals, columns, digits)
    return table


_COLUMNS = ("Calls", "Input", "Cache write", "Cache read", "Output", "Tokens", "Own", "Delegated", "Cost", "No price")
_FIRST_OUT = ("Own", "Input", "Cache write", "Output", "Cache read", "Project")
"""Those that a narrow terminal does without, the first one first: what others tell, or nearly."""
_LAST_OUT = ("Delegated", "Calls", "Tokens", "No price")
"""Those that go when even folded names leave no room; a line is its name and its cost then."""
_COVERAGE = ("Model", "Calls", "Tokens", "Cost")


def _row(table: Table, names: Iterable[str], line: Line, columns: Sequence[str], digits: int) -> None:
    cells = _cells(line, digits)
    table.add_row(*(Text(shortened(name, _NAME)) for name in names), *(Text(cells[column]) for column in columns))


def _cells(line: Line, digits: int) -> dict[str, str]:
    amounts = line.all
    cost, own, delegated = costs_of(line, digits)
    return {
        "Calls": count(amounts.calls),
        "Input": count(amounts.input),
        "Cache write": count(amounts.cache_write),
        "Cache read": count(amounts.cache_read),
        "Output": count(amounts.output),
        "Tokens": count(amounts.total),
        "Own": own,
        "Delegated": delegated,
        "Cost": cost,
        "No price": count(amounts.without_cost) if amounts.without_cost else "",
    }


def _coverage(report: UsageReport, limit: int, columns: Sequence[str], names: int | None) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Coverage", overflow="fold", max_width=names)
    for column in columns:
        if column == "Model":
            table.add_column(column, overflow="fold", max_width=names)
        else:
            table.add_column(column, justify="right", no_wrap=True)
    for status, model, amounts in covered(report, limit):
        cells = {
            "Model": shortened(model, _NAME),
            "Calls": count(amounts.calls),
            "Tokens": count(amounts.total),
            "Cost": _cost(report, amounts),
        }
        table.add_row(Text(shortened(status, _NAME)), *(Text(cells[column]) for column in columns))
    return table


def _cost(report: UsageReport, amounts: Amounts) -> str:
    return cost_and_parts(amounts.cost_microusd, None, None, digits_for(report.totals.all.known_microusd))[0]


def _sum(amounts: Iterable[Amounts]) -> Amounts:
    return sum(amounts, NONE)
