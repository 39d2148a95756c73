"""What became of headless runs, in a sentence: how many completed, and why the others did not."""

from __future__ import annotations

from tasks.report.agents import AgentLine
from tasks.report.figures import count, counted, printable, shortened
from tasks.report.usage_report import UsageReport

__all__ = ["reasons", "runs_sentence"]

_REASON = 60


def runs_sentence(report: UsageReport) -> str:
    """Of all runs in scope; nothing where there are none."""
    runs = report.runs
    if not runs.runs:
        return ""
    said = f"{counted(runs.runs, 'run')} of {counted(len(report.agents), 'agent')}: {count(runs.completed)} completed"
    if runs.stops:
        said += f"; {reasons(runs)}"
    if runs.uncounted:
        said += f"; what {count(runs.uncounted)} of them used is not known"
    return f"{said}."


def reasons(line: AgentLine) -> str:
    """Why runs did not complete and how many, the most frequent first; nothing where all did."""
    return ", ".join(f"{count(number)} {_words(stop)}" for stop, number in line.stops)


def _words(stop: str) -> str:
    return shortened(printable(stop), _REASON).replace("_", " ")
