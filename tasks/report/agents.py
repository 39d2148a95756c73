"""What headless runs come to, one line an agent: how many completed, why the others did not, and what they used.

Runs are counted from their own rows and not from those of calls, so a run of which nobody knows what it used is there
all the same, and is counted as such (usage specification, "Headless runs"). Its day is that on which it started.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from tasks.report.amounts import part_of
from tasks.report.scope import Scope

__all__ = ["NO_RUNS", "RUNS", "AgentLine", "agent_lines", "all_runs"]

_SUMS = (
    *("runs", "completed", "uncounted", "turns", "tool_calls", "denied_tools"),
    *("input", "cache_write", "cache_read", "output", "known_microusd", "without_cost"),
)
_COUNTS = {
    "turns": "turns",
    "tool_calls": "tool_calls",
    "denied_tools": "denied_tools",
    "input": "input_uncached",
    "cache_write": "cache_write",
    "cache_read": "cache_read",
    "output": "output",
    "known_microusd": "cost_microusd",
}
"""Sums and the columns of `schemas.usage.RUN_SCHEMA` that they are of."""
RUNS = pl.DataFrame(
    schema={
        **dict.fromkeys(("agent", "model", "session_id"), pl.String),
        "started": pl.Datetime("us", "UTC"),
        **dict.fromkeys(("exit_status", "stop_reason", "error_class"), pl.String),
        **dict.fromkeys(_COUNTS.values(), pl.Int64),
    }
)
"""No run, and the columns of `schemas.usage.RUN_SCHEMA` that lines are made of."""


@dataclass(frozen=True, slots=True)
class AgentLine:
    """Runs of one agent, or of all (`agent` is None). Tokens and money as in `Amounts`.

    Of `uncounted` runs nobody knows what they used, and `without_cost` have no known cost: the sums leave them out.
    `stops` are the reasons of those that did not complete and their number, the most frequent first. `first` and `last`
    are the times at which the first and the last run started, UTC.
    """

    agent: str | None
    runs: int = 0
    completed: int = 0
    uncounted: int = 0
    turns: int = 0
    tool_calls: int = 0
    denied_tools: int = 0
    input: int = 0
    cache_write: int = 0
    cache_read: int = 0
    output: int = 0
    known_microusd: int = 0
    without_cost: int = 0
    stops: tuple[tuple[str, int], ...] = ()
    first: datetime | None = None
    last: datetime | None = None

    @property
    def not_completed(self) -> int:
        return self.runs - self.completed

    @property
    def cost_microusd(self) -> int | None:
        """The cost as far as it is known; None when there are runs and no cost of any is known."""
        return None if self.runs and self.runs == self.without_cost else self.known_microusd

    @property
    def total(self) -> int:
        """All tokens, in and out."""
        return self.input + self.cache_write + self.cache_read + self.output

    @property
    def completed_share(self) -> float | None:
        """The part of the runs that completed, 0 to 1; None without runs."""
        return part_of(self.completed, self.runs)


NO_RUNS = AgentLine(None)


def agent_lines(runs: pl.DataFrame, projects: Mapping[str, str | None], scope: Scope) -> tuple[AgentLine, ...]:
    """A line for each agent with runs in scope, dearest first. `runs` has the columns of `RUNS`; a run
    belongs to the project that `projects` names for its session."""
    if runs.is_empty():
        return ()
    known = pl.DataFrame(
        {"session_id": list(projects), "project": list(projects.values())},
        schema={"session_id": pl.String, "project": pl.String},
    )
    completed = pl.col("exit_status") == "completed"
    counts = {name: pl.col(column).cast(pl.Int128).fill_null(0) for name, column in _COUNTS.items()}
    rows = scope.within(
        runs.join(known, on="session_id", how="left").select(
            "agent",
            "model",
            "project",
            "started",
            day=pl.col("started").dt.convert_time_zone(scope.zone).dt.date(),
            runs=pl.lit(1, pl.Int128),
            completed=completed.cast(pl.Int128),
            uncounted=pl.col("turns").is_null().cast(pl.Int128),
            without_cost=pl.col("cost_microusd").is_null().cast(pl.Int128),
            stop=pl.when(~completed).then(pl.coalesce("error_class", "stop_reason", "exit_status")),
            **counts,
        )
    )
    stops: dict[str, list[tuple[str, int]]] = {}
    failed = rows.filter(pl.col("stop").is_not_null()).group_by("agent", "stop").len().sort("stop")
    for agent, stop, number in failed.sort("len", descending=True, maintain_order=True).iter_rows():
        stops.setdefault(agent, []).append((stop, number))
    grouped = rows.group_by("agent").agg(
        *(pl.col(name).sum() for name in _SUMS),
        first=pl.col("started").min(),
        last=pl.col("started").max(),
    )
    lines = [AgentLine(**row, stops=tuple(stops.get(row["agent"], ()))) for row in grouped.iter_rows(named=True)]
    return tuple(sorted(lines, key=_dearest))


def all_runs(lines: Iterable[AgentLine]) -> AgentLine:
    """All of them as one line."""
    every = list(lines)
    stops: dict[str, int] = {}
    for line in every:
        for stop, number in line.stops:
            stops[stop] = stops.get(stop, 0) + number
    sums: dict[str, int] = {name: sum(getattr(line, name) for line in every) for name in _SUMS}
    return AgentLine(
        agent=None,
        **sums,
        stops=tuple(sorted(stops.items(), key=lambda each: (-each[1], each[0]))),
        first=min((line.first for line in every if line.first is not None), default=None),
        last=max((line.last for line in every if line.last is not None), default=None),
    )


def _dearest(line: AgentLine) -> tuple[bool, int, int, str]:
    """Sorts by cost, what has none last; then by tokens and name."""
    cost = line.cost_microusd
    return (cost is None, -(cost or 0), -line.total, line.agent or "")
