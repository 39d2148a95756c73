"""The figures by day, or by week or month where days are too many: cost by model, tokens by kind, share from cache."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from tasks.report.amounts import Line, part_of
from tasks.report.figures import compact, count, counted, digits_for, money, named, share
from tasks.report.page import charts
from tasks.report.page.charts import REST, Bars, Step, label
from tasks.report.page.part import NO_COST, Cells, Part, dollars, leader
from tasks.report.page.tables import AMOUNTS, amounts_cells, table, unpriced
from tasks.report.usage_report import UsageReport

__all__ = ["cache_by_day", "cost_by_day", "tokens_by_day"]

MODELS = 8
DAYS = 124
"""The longest range that is drawn by day, four months: more bars would be hairs."""
WEEKS = 800
"""The longest range, in days, that is drawn by week: two years and a bit."""


@dataclass(frozen=True, slots=True)
class _Timeline:
    """`lines` of the report and the days that their bars begin on; `word` says what one is."""

    word: Step
    lines: tuple[Line, ...]
    days: list[date]

    @classmethod
    def of(cls, report: UsageReport) -> _Timeline:
        days = [line.key for line in report.daily if isinstance(line.key, date)]
        length = (days[-1] - days[0]).days + 1
        if length <= DAYS:
            return cls("day", report.daily, days)
        if length <= WEEKS:
            return cls("week", report.weekly, [line.key for line in report.weekly if isinstance(line.key, date)])
        return cls("month", report.monthly, [date.fromisoformat(f"{line.key}-01") for line in report.monthly])


def cost_by_day(report: UsageReport) -> Part:
    """Bars of dollars, one colour a model; the dearest have one, the others are added up."""
    time = _Timeline.of(report)
    shown = [line.name for line in report.models if line.all.known_microusd > 0][:MODELS]
    costs = [{each.model: each.amounts.cost_microusd for each in line.models} for line in time.lines]
    series: list[Bars] = [
        (label(named(model, "model")), tone, [dollars(cost.get(model)) for cost in costs])
        for tone, model in enumerate(shown)
    ]
    names = [named(model, "model") for model in shown]
    rest = [_rest(cost, shown) for cost in costs]
    if others := sum(1 for line in report.models if line.all.known_microusd) - len(shown):
        names.append(counted(others, "other model"))
        series.append((names[-1], REST, [dollars(cost) for cost in rest]))
    digits = digits_for(report.totals.all.known_microusd)
    rows: list[Cells] = []
    for line, cost, other in zip(time.lines, costs, rest, strict=True):
        # A model that was not called has no cost, and one whose cost is not known a dash.
        cells = [money(cost[model], digits) if model in cost else "" for model in shown]
        if others:
            cells.append("" if other is None else money(other, digits))
        rows.append(([str(line.key)], [*cells, money(line.all.cost_microusd, digits), unpriced(line.all)]))
    title = f"Cost per {time.word}, by model"
    return Part(
        "cost-by-day",
        title,
        leader(report.models, "model", "is the dearest model", digits) if series else NO_COST,
        charts.over_time("cost-by-day", time.days, time.word, series, value=",.2f", prefix="$") if series else None,
        table(title, [time.word.capitalize()], [*names, "All", "No price"], rows),
        wide=True,
    )


def tokens_by_day(report: UsageReport) -> Part:
    """Bars of tokens, one colour a kind."""
    time, everything = _Timeline.of(report), report.totals.all
    digits = digits_for(everything.known_microusd)
    kinds: list[Bars] = [
        ("Read from cache", 0, [line.all.cache_read for line in time.lines]),
        ("Written to cache", 4, [line.all.cache_write for line in time.lines]),
        ("Input, not cached", 1, [line.all.input for line in time.lines]),
        ("Output", 2, [line.all.output for line in time.lines]),
    ]
    series = [kind for kind in kinds if any(kind[2])]
    rows = [([str(line.key)], amounts_cells(line.all, digits)) for line in time.lines]
    title = f"Tokens per {time.word}, by kind"
    return Part(
        "tokens-by-day",
        title,
        f"{compact(everything.total)} tokens in {counted(everything.calls, 'call')}; "
        f"{share(part_of(everything.output, everything.total))} of them output.",
        charts.over_time("tokens-by-day", time.days, time.word, series, value=",") if series else None,
        table(title, [time.word.capitalize()], AMOUNTS, rows, (["All"], amounts_cells(everything, digits))),
    )


def cache_by_day(report: UsageReport) -> Part:
    """A line of shares."""
    time = _Timeline.of(report)
    shares = [line.all.cache_hit_share for line in time.lines]
    rows = [
        ([str(line.key)], [count(line.all.cache_read), count(line.all.all_input), share(line.all.cache_hit_share)])
        for line in time.lines
    ]
    title = f"Share of input read from cache, per {time.word}"
    drawn = any(each is not None for each in shares)
    return Part(
        "cache-by-day",
        title,
        f"{share(report.totals.all.cache_hit_share)} of all input came from a cache, at a fraction of its price."
        if report.totals.all.cache_read
        else "No input came from a cache.",
        charts.share_over_time("cache-by-day", time.days, time.word, shares, "Read from cache") if drawn else None,
        table(title, [time.word.capitalize()], ["Read from cache", "All input", "Share"], rows),
    )


def _rest(costs: dict[str | None, int | None], shown: list[str | None]) -> int | None:
    """The known cost of models that are not shown; None without any."""
    known = [cost for model, cost in costs.items() if model not in shown and cost is not None]
    return sum(known) if known else None
