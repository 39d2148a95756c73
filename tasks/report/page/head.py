"""The page's first lines: six figures to know, and what the costs leave out."""

from __future__ import annotations

from tasks.report.amounts import Amounts
from tasks.report.coverage import by_status, status_words
from tasks.report.figures import compact, count, counted, digits_for, money, money_at_a_glance, share
from tasks.report.page.markup import Markup, element, joined
from tasks.report.usage_report import UsageReport

__all__ = ["headline", "warning"]


def headline(report: UsageReport) -> list[tuple[str, str, Markup]]:
    """What a reader should know first: a name, a figure, a note on it."""
    return [(name, value, joined(note)) for name, value, note in _headline(report)]


def _headline(report: UsageReport) -> list[tuple[str, str, str]]:
    everything, delegated = report.totals.all, report.totals.delegated
    digits = digits_for(everything.known_microusd)
    days = [(line.all.known_microusd, str(line.key)) for line in report.daily if line.all.cost_microusd is not None]
    a_day = everything.known_microusd // len(report.daily) if days else None
    dearest = max(days, default=None, key=lambda each: each[0])
    return [
        ("Cost", money_at_a_glance(everything.cost_microusd, digits), _coverage_in_short(everything)),
        ("Cost a day with calls", money_at_a_glance(a_day, digits), _on(*dearest, digits) if dearest else ""),
        ("Tokens", compact(everything.total), f"{compact(everything.all_input)} in, {compact(everything.output)} out"),
        ("Input read from cache", share(everything.cache_hit_share), f"{compact(everything.cache_read)} tokens"),
        ("Sessions", count(len(report.sessions)), f"in {counted(len(report.projects), 'project')}"),
        (
            "Cost of sub-agents",
            money_at_a_glance(delegated.cost_microusd if delegated.calls else None, digits),
            f"{share(delegated.cost_share_of(everything))} of all, {counted(delegated.calls, 'call')}"
            if delegated.calls
            else "no sub-agents",
        ),
    ]


def warning(report: UsageReport) -> str | None:
    """What the costs leave out and why, or None when they leave out nothing."""
    everything = report.totals.all
    if not everything.without_cost:
        return None
    reasons = {
        status_words(status).removeprefix("No price: "): amounts.without_cost
        for status, amounts in by_status(report).items()
        if amounts.without_cost
    }
    why = "; ".join(f"{count(calls)} because {words}" for words, calls in reasons.items())
    has, are = ("has", "is") if everything.without_cost == 1 else ("have", "are")
    return (
        f"{counted(everything.without_cost, 'call')} of {count(everything.calls)} "
        f"({share(everything.without_cost / everything.calls)}) {has} no price and {are} in no cost here: {why}."
    )


def _on(microusd: int, day: str, digits: int) -> Markup:
    return joined(f"most: {money(microusd, digits)} on ", element("span", day, class_="whole"))


def _coverage_in_short(amounts: Amounts) -> str:
    priced = amounts.calls - amounts.without_cost
    if not amounts.without_cost:
        return f"all of {counted(amounts.calls, 'call')}" if amounts.calls else "no calls"
    if not priced:
        return f"no price for {counted(amounts.calls, 'call')}"
    more = "has" if amounts.without_cost == 1 else "have"
    return f"{counted(priced, 'call')}; {count(amounts.without_cost)} more {more} no price"
