"""A report as the JSON that people know from ccusage: its names for lists and fields, and a few more.

Where ccusage has 0 for a cost that nobody knows, here is null; how many calls a cost leaves out stands beside it as
`unpricedCalls`. Costs are dollars as the nearest double, and exactly, in whole micro-dollars, as `totalCostMicroUsd`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any

from tasks.report.agents import AgentLine
from tasks.report.amounts import Amounts, Line
from tasks.report.usage_report import CALL_TABLES, TABLES, UsageReport

__all__ = ["json_of"]

MICRO = 1_000_000


def json_of(report: UsageReport, tables: Collection[str] = TABLES) -> dict[str, Any]:
    """The wanted `tables`, and totals, coverage and scope, which are always there."""
    scope = report.scope
    lists = {name: [_LINES[name](line) for line in report.table(name)] for name in CALL_TABLES if name in tables}
    if "agents" in tables:
        lists["agents"] = [_agent(line) for line in report.agents]
    return {
        **lists,
        "totals": {**_amounts(report.totals.all), **_parts(report.totals)},
        "coverage": [
            {"costStatus": each.status, "modelName": each.model, **_amounts(each.amounts)} for each in report.coverage
        ],
        "zone": scope.zone,
        "since": scope.since and scope.since.isoformat(),
        "until": scope.until and scope.until.isoformat(),
        "firstActivity": _time(report.totals.first),
        "lastActivity": _time(report.totals.last),
    }


def _line(line: Line, **key: Any) -> dict[str, Any]:
    return {
        **key,
        **_amounts(line.all),
        "modelsUsed": sorted(each.model for each in line.models if each.model is not None),
        "modelBreakdowns": [{"modelName": each.model, **_amounts(each.amounts, cost="cost")} for each in line.models],
        **_parts(line),
    }


def _session(line: Line) -> dict[str, Any]:
    times = {"firstActivity": _time(line.first), "lastActivity": _time(line.last)}
    return {**_line(line, sessionId=line.key), **times, "projectPath": line.project}


def _agent(line: AgentLine) -> dict[str, Any]:
    cost = line.cost_microusd
    return {
        "agent": line.agent,
        "runs": line.runs,
        "completedRuns": line.completed,
        "notCompletedRuns": line.not_completed,
        "stopReasons": dict(line.stops),
        "turns": line.turns,
        "toolCalls": line.tool_calls,
        "deniedToolCalls": line.denied_tools,
        "inputTokens": line.input,
        "outputTokens": line.output,
        "cacheCreationTokens": line.cache_write,
        "cacheReadTokens": line.cache_read,
        "totalTokens": line.total,
        "totalCost": None if cost is None else cost / MICRO,
        "totalCostMicroUsd": cost,
        "unpricedRuns": line.without_cost,
        "uncountedRuns": line.uncounted,
        "firstActivity": _time(line.first),
        "lastActivity": _time(line.last),
    }


_LINES: dict[str, Callable[[Line], dict[str, Any]]] = {
    "daily": lambda line: _line(line, date=str(line.key)),
    "monthly": lambda line: _line(line, month=line.key),
    "models": lambda line: _line(line, modelName=line.key),
    "projects": lambda line: _line(line, project=line.key),
    "sessions": _session,
}


def _amounts(amounts: Amounts, cost: str = "totalCost") -> dict[str, Any]:
    micro = amounts.cost_microusd
    return {
        "inputTokens": amounts.input,
        "outputTokens": amounts.output,
        "cacheCreationTokens": amounts.cache_write,
        "cacheReadTokens": amounts.cache_read,
        "totalTokens": amounts.total,
        cost: None if micro is None else micro / MICRO,
        f"{cost}MicroUsd": micro,
        "calls": amounts.calls,
        "unpricedCalls": amounts.without_cost,
        "partlyPricedCalls": amounts.partial,
    }


def _parts(line: Line) -> dict[str, Any]:
    return {"own": _amounts(line.own), "delegated": _amounts(line.delegated)}


def _time(moment: datetime | None) -> str | None:
    # strftime writes years before 1000 with fewer digits.
    return None if moment is None else f"{moment.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
