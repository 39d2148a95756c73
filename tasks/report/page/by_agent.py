"""The figure of headless runs: an agent each, how many completed and how many did not."""

from __future__ import annotations

from tasks.report.agents import AgentLine, all_runs
from tasks.report.figures import compact, count, digits_for, money, named, share
from tasks.report.page import charts
from tasks.report.page.charts import Bars, label
from tasks.report.page.part import ROWS, Cells, Part
from tasks.report.page.tables import table
from tasks.report.runs_in_words import reasons, runs_sentence
from tasks.report.usage_report import UsageReport

__all__ = ["runs_by_agent"]

TOP = 12


def runs_by_agent(report: UsageReport) -> Part:
    """Bars of runs, the agent with the most on top; the table is in order of cost."""
    digits = digits_for(report.runs.known_microusd)
    top = sorted(report.agents, key=lambda line: (-line.runs, line.agent or ""))[:TOP]
    series: list[Bars] = [("Completed", 2, [line.completed for line in top])]
    if report.runs.not_completed:
        series.append(("Not completed", 7, [line.not_completed for line in top]))
    texts = [
        f"{count(line.completed)} of {count(line.runs)} ({share(line.completed_share)}), "
        f"{money(line.cost_microusd, digits)}"
        for line in top
    ]
    rows = [_row(named(line.agent, "agent"), line, digits) for line in report.agents[:ROWS]]
    if rest := report.agents[ROWS:]:
        rows.append(_row(f"{count(len(rest))} more", all_runs(rest), digits))
    return Part(
        "runs-by-agent",
        "Headless runs, by agent",
        runs_sentence(report),
        charts.ranked(
            "runs-by-agent",
            [label(named(line.agent, "agent")) for line in top],
            series,
            texts,
            legend=len(series) > 1,
        ),
        table(
            "Headless runs, by agent",
            ["Agent", "Why not completed"],
            ["Runs", "Completed", "Not completed", "Turns", "Tokens", "Cost", "No cost"],
            rows,
            _row("All", report.runs, digits),
        ),
        wide=True,
    )


def _row(name: str, line: AgentLine, digits: int) -> Cells:
    numbers = [
        count(line.runs),
        count(line.completed),
        count(line.not_completed) if line.not_completed else "",
        count(line.turns),
        compact(line.total),
        money(line.cost_microusd, digits),
        count(line.without_cost) if line.without_cost else "",
    ]
    return [name, reasons(line)], numbers
