"""The figures in order of cost, or of tokens where no cost is known: models, projects, sessions; and coverage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tasks.report.amounts import NONE, Amounts, Line, part_of
from tasks.report.costs import costs_of
from tasks.report.coverage import by_status, covered, status_words
from tasks.report.figures import Kind, compact, count, counted, digits_for, money, named, share
from tasks.report.page import charts
from tasks.report.page.charts import Bars, label
from tasks.report.page.head import warning
from tasks.report.page.part import NO_COST, ROWS, Cells, Part, dollars, first, leader
from tasks.report.page.tables import AMOUNTS, amounts_cells, table, unpriced
from tasks.report.usage_report import UsageReport

__all__ = ["cost_by_model", "cost_by_project", "coverage", "dearest_sessions"]

TOP = 12


def cost_by_model(report: UsageReport) -> Part:
    """Bars of dollars, a model each."""
    return _by_cost("cost-by-model", "model", report.models, report.totals.all)


def cost_by_project(report: UsageReport) -> Part:
    """Bars of dollars, a project each."""
    return _by_cost("cost-by-project", "project", report.projects, report.totals.all)


def dearest_sessions(report: UsageReport) -> Part:
    """Bars of dollars, a session each, with what its sub-agents cost apart."""
    lines, everything = report.sessions, report.totals.all
    top, digits, priced = _top(lines), digits_for(everything.known_microusd), _has_cost(everything)

    def row(line: Line) -> Cells:
        cost, own, delegated = costs_of(line, digits)
        numbers = [count(line.all.calls), compact(line.all.total), own, delegated, cost, unpriced(line.all)]
        return [named(line.name, "session"), named(line.project, "project")], numbers

    finding = [] if priced else [NO_COST]
    if len(top) < len(lines):
        together = _share(sum((line.all for line in top), NONE), everything)
        verb = "cost" if priced else "used"
        finding.append(f"The first {counted(len(top), 'session')} of {count(len(lines))} {verb} {together} of all.")
    if report.totals.delegated.calls:
        spent = "cost" if priced else "used"
        finding.append(f"What sub-agents {spent} is part of the session they worked for.")
    heads = ["Calls", "Tokens", "Own cost", "Delegated", "Cost", "No price"]
    title = "Dearest sessions" if priced else "Largest sessions"
    return Part(
        "dearest-sessions",
        title,
        " ".join(finding) or f"{counted(len(lines), 'session')} in all.",
        _own_and_delegated("dearest-sessions", top, "session", everything),
        table(title, ["Session", "Project"], heads, first(lines, row), (["All", ""], row(report.totals)[1])),
        wide=True,
    )


def coverage(report: UsageReport) -> Part:
    """Bars of calls, a cost status each."""
    statuses, everything = by_status(report), report.totals.all
    digits = digits_for(everything.known_microusd)
    texts = [f"{count(each.calls)} ({share(each.calls / everything.calls)})" for each in statuses.values()]
    series: list[Bars] = [
        ("Calls", 7 if amounts.without_cost else 2, [amounts.calls if each == status else None for each in statuses])
        for status, amounts in statuses.items()
    ]
    rows = [
        ([words, model], [count(amounts.calls), compact(amounts.total), money(amounts.cost_microusd, digits)])
        for words, model, amounts in covered(report, ROWS)
    ]
    names = [label(status_words(status), 60) for status in statuses]
    return Part(
        "coverage",
        "Coverage: how calls came by their cost",
        warning(report) or "Every call has a cost.",
        charts.ranked("coverage", names, series, texts),
        table("Coverage", ["How", "Model"], ["Calls", "Tokens", "Cost"], rows),
        wide=True,
    )


def _by_cost(identity: str, kind: Kind, lines: Sequence[Line], everything: Amounts) -> Part:
    digits, priced = digits_for(everything.known_microusd), _has_cost(everything)

    def row(line: Line) -> Cells:
        return [named(line.name, kind)], amounts_cells(line.all, digits)

    title = f"Cost by {kind}" if priced else f"Tokens by {kind}"
    return Part(
        identity,
        title,
        leader(lines, kind, "costs most", digits) if priced else NO_COST,
        _own_and_delegated(identity, _top(lines), kind, everything),
        table(title, [kind.capitalize()], AMOUNTS, first(lines, row), (["All"], amounts_cells(everything, digits))),
    )


def _has_cost(everything: Amounts) -> bool:
    """Whether bars are dollars. Where nobody knows a price they are tokens: a chart of nothing helps nobody."""
    return everything.known_microusd > 0


def _top(lines: Sequence[Line]) -> list[Line]:
    """The lines that have a bar: the dearest, or those with the most tokens where none has a cost."""
    if dear := [line for line in lines if line.all.known_microusd > 0]:
        return dear[:TOP]
    return sorted((line for line in lines if line.all.total > 0), key=lambda line: -line.all.total)[:TOP]


def _share(part: Amounts, everything: Amounts) -> str:
    if _has_cost(everything):
        return share(part.cost_share_of(everything))
    return share(part_of(part.total, everything.total))


def _own_and_delegated(identity: str, lines: Sequence[Line], kind: Kind, everything: Amounts) -> dict[str, Any] | None:
    """The chart of `lines`, or None of none."""
    if not lines:
        return None
    digits, priced = digits_for(everything.known_microusd), _has_cost(everything)

    def size(amounts: Amounts) -> float | None:
        return dollars(amounts.known_microusd) if priced else amounts.total

    def words(amounts: Amounts) -> str:
        return money(amounts.cost_microusd, digits) if priced else compact(amounts.total)

    own, delegated = [size(line.own) for line in lines], [size(line.delegated) for line in lines]
    series: list[Bars] = [("Own", 0, own)]
    if any(delegated):
        series.append(("Delegated to sub-agents", 1, delegated))
    texts = [f"{words(line.all)} ({_share(line.all, everything)})" for line in lines]
    names = [label(named(line.name, kind)) for line in lines]
    return charts.ranked(identity, names, series, texts, legend=len(series) > 1)
