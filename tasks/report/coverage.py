"""How calls came by their cost, as lines to read: where a cost is known, all models are one line.

Where none is known the models stand singly, because a model that no table knows is something to do (field report 14).
"""

from __future__ import annotations

from collections.abc import Iterator

from schemas.usage import COST_STATUSES
from tasks.report.amounts import NONE, Amounts
from tasks.report.figures import count, named, printable
from tasks.report.usage_report import UsageReport

__all__ = ["by_status", "covered", "status_words"]

_WORDS = {
    "priced": "Priced at the time of the call",
    "partial": "Priced on an assumption",
    "reported": "Cost as the runtime reported it",
    "unknown_model": "No price: the model is in no price table",
    "no_time": "No price: the time of the call is not known",
    "impossible_count": "No price: a count of the call cannot be",
}


def status_words(status: str | None) -> str:
    """A status in words; one that is not known stands for itself, and may be any text."""
    return _WORDS.get(status or "", f"Other: {printable(status)}" if status else "No status")


def by_status(report: UsageReport) -> dict[str | None, Amounts]:
    """What calls of each status come to, from a sure cost to none; statuses without calls are left out."""
    found: dict[str | None, Amounts] = dict.fromkeys(COST_STATUSES, NONE)
    for line in report.coverage:
        found[line.status] = found.get(line.status, NONE) + line.amounts
    return {status: amounts for status, amounts in found.items() if amounts.calls}


def covered(report: UsageReport, limit: int) -> Iterator[tuple[str, str, Amounts]]:
    """Status in words, model, amounts: of a status without costs at most `limit` models, 0 for all, and the rest."""
    for status, whole in by_status(report).items():
        if not whole.without_cost:
            yield status_words(status), "", whole
            continue
        lines = [each for each in report.coverage if each.status == status]
        shown = lines[:limit] if limit else lines
        for line in shown:
            yield status_words(status), named(line.model, "model"), line.amounts
        if rest := lines[len(shown) :]:
            yield status_words(status), f"{count(len(rest))} more", sum((each.amounts for each in rest), NONE)
