"""The table of a report by agent: how many runs completed, what they used, and how many that leaves out."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from tasks.report import AgentLine, UsageReport
from tasks.report.agents import all_runs
from tasks.report.figures import cost_and_parts, count, digits_for, named, shortened

__all__ = ["AGENT_COLUMNS", "AGENT_COLUMNS_FIRST_OUT", "AGENT_COLUMNS_LAST_OUT", "agents_table"]

AGENT_COLUMNS = (
    *("Runs", "Completed", "Not completed", "Turns"),
    *("Input", "Cache write", "Cache read", "Output", "Tokens", "Cost", "No cost"),
)
AGENT_COLUMNS_FIRST_OUT = ("Turns", "Input", "Cache write", "Output", "Cache read", "Not completed")
"""Those that a narrow terminal does without, the first one first."""
AGENT_COLUMNS_LAST_OUT = ("Completed", "Tokens", "No cost")
"""Those that go when even folded names leave no room."""
_NAME = 120
"""Columns of a name; JSON has it whole."""


def agents_table(report: UsageReport, limit: int, columns: Sequence[str], names: int | None) -> Table:
    """A line for each agent, dearest first, at most `limit` (0 for all) and one for what the others come to; `names`
    take at most so many columns of a terminal."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("Agent", overflow="fold", max_width=names)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    digits = digits_for(report.runs.known_microusd)
    shown = report.agents[:limit] if limit else report.agents
    lines = [(named(line.agent, "agent"), line) for line in shown]
    if rest := report.agents[len(shown) :]:
        lines.append((f"{count(len(rest))} more", all_runs(rest)))
    for name, line in lines:
        _row(table, name, line, columns, digits)
    table.add_section()
    _row(table, "All", report.runs, columns, digits)
    return table


def _row(table: Table, name: str, line: AgentLine, columns: Sequence[str], digits: int) -> None:
    cells = {
        "Runs": count(line.runs),
        "Completed": count(line.completed),
        "Not completed": count(line.not_completed) if line.not_completed else "",
        "Turns": count(line.turns),
        "Input": count(line.input),
        "Cache write": count(line.cache_write),
        "Cache read": count(line.cache_read),
        "Output": count(line.output),
        "Tokens": count(line.total),
        "Cost": cost_and_parts(line.cost_microusd, None, None, digits)[0],
        "No cost": count(line.without_cost) if line.without_cost else "",
    }
    table.add_row(Text(shortened(name, _NAME)), *(Text(cells[column]) for column in columns))
