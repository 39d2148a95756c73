"""The whole report as values: totals, and lines by day, month, model, project, session and agent.

Pure: sums in, frozen values out. Lines that have no order of their own are dearest first, then by tokens and name, so
that the same rows give the same report whatever order they were read in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from tasks.report.agents import NO_RUNS, AgentLine, agent_lines, all_runs
from tasks.report.amounts import NONE, Amounts, Breakdown, CoverageLine, Line
from tasks.report.condense import SUMS, sums
from tasks.report.lineage import with_root
from tasks.report.scope import Scope

__all__ = ["CALL_TABLES", "TABLES", "UsageReport", "report_of"]

CALL_TABLES = ("daily", "monthly", "models", "projects", "sessions")
"""Tables whose lines add up calls."""
TABLES = (*CALL_TABLES, "agents")


@dataclass(frozen=True, slots=True)
class UsageReport:
    """What a dataset says within `scope`. `totals` has no key; its `models` are all models, dearest first. The keys of
    `weekly`, which is no table but what the page draws of many days, are Mondays.
    `agents` are lines of headless runs, and `runs` is all of these."""

    scope: Scope
    totals: Line
    daily: tuple[Line, ...]
    weekly: tuple[Line, ...]
    monthly: tuple[Line, ...]
    models: tuple[Line, ...]
    projects: tuple[Line, ...]
    sessions: tuple[Line, ...]
    coverage: tuple[CoverageLine, ...]
    agents: tuple[AgentLine, ...] = ()
    runs: AgentLine = NO_RUNS

    def table(self, name: str) -> tuple[Line, ...]:
        """The lines of one of `CALL_TABLES`."""
        lines: tuple[Line, ...] = getattr(self, name)
        return lines


def report_of(condensed: pl.DataFrame, scope: Scope, runs: pl.DataFrame | None = None) -> UsageReport:
    """The report on sums made by `condense` with the scope's zone, and on the rows of headless runs."""
    # Who worked for whom, and where, does not depend on what is asked for.
    every = with_root(condensed)
    agents = () if runs is None or runs.is_empty() else agent_lines(runs, _projects(every), scope)
    calls = scope.within(every)
    totals = _lines(calls.with_columns(everything=pl.lit(None, pl.String)), "everything")
    return UsageReport(
        scope=scope,
        totals=totals[0] if totals else Line(None, NONE, NONE),
        daily=_lines(calls, "day"),
        weekly=_lines(calls.with_columns(monday=pl.col("day").dt.truncate("1w")), "monday"),
        monthly=_lines(calls.with_columns(month=pl.col("day").dt.strftime("%Y-%m")), "month"),
        models=_dearest_first(_lines(calls, "model")),
        projects=_dearest_first(_lines(calls, "project")),
        sessions=_dearest_first(_lines(calls, "root", _projects(calls))),
        coverage=_coverage(calls),
        agents=agents,
        runs=all_runs(agents),
    )


def _lines(calls: pl.DataFrame, key: str, projects: Mapping[Any, str | None] | None = None) -> tuple[Line, ...]:
    """A line for each value of the column `key`, sorted by it, None first; `projects` are those of sessions."""
    whole = calls.group_by(key).agg(*sums(), pl.col("first").min(), pl.col("last").max()).sort(key)
    delegated = {row[0]: Amounts(*row[1:]) for row in calls.filter("delegated").group_by(key).agg(*sums()).iter_rows()}
    models: dict[Any, list[Breakdown]] = {}
    for row in calls.select(key, pl.col("model").alias("name"), *SUMS).group_by(key, "name").agg(*sums()).iter_rows():
        models.setdefault(row[0], []).append(Breakdown(row[1], Amounts(*row[2:])))
    return tuple(
        Line(
            key=row[0],
            all=Amounts(*row[1:-2]),
            delegated=delegated.get(row[0], NONE),
            models=_dearest_models(models[row[0]]),
            project=projects[row[0]] if projects else None,
            first=row[-2],
            last=row[-1],
        )
        for row in whole.iter_rows()
    )


def _dearest_models(models: list[Breakdown]) -> tuple[Breakdown, ...]:
    if len(models) > 1:
        models.sort(key=lambda each: _dearest(each.model, each.amounts))
    return tuple(models)


def _projects(calls: pl.DataFrame) -> dict[str, str | None]:
    """The project of each session: its newest call's of its own, or a sub-agent's where that is all there is."""
    newest = calls.sort("delegated", "last", "project", descending=[False, True, False], nulls_last=True)
    return dict(newest.unique("root", keep="first", maintain_order=True).select("root", "project").iter_rows())


def _coverage(calls: pl.DataFrame) -> tuple[CoverageLine, ...]:
    """A line for each cost status and model; by status, the model with the most calls first."""
    grouped = calls.group_by("status", "model").agg(*sums())
    lines = [CoverageLine(row[0], row[1], Amounts(*row[2:])) for row in grouped.iter_rows()]
    return tuple(sorted(lines, key=lambda each: (each.status or "", -each.amounts.calls, _name(each.model))))


def _dearest_first(lines: Iterable[Line]) -> tuple[Line, ...]:
    return tuple(sorted(lines, key=lambda line: _dearest(line.key, line.all)))


def _dearest(key: Any, amounts: Amounts) -> tuple[Any, ...]:
    """Sorts by cost, what has none last; then by tokens and name."""
    cost = amounts.cost_microusd
    return (cost is None, -(cost or 0), -amounts.total, _name(key))


def _name(key: str | None) -> tuple[bool, str]:
    return (key is not None, key or "")
