"""What yesterday and its month came to, by model, for people to look at (usage specification; the days are UTC's)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from storage.objects import ObjectStore
from storage.usage_dataset import read_calls

__all__ = ["recent_totals"]

_NANO = 1_000_000_000
_COLUMNS = ("date", "model", "input_uncached", "cache_read", "input_total", "output", "cost_microusd")


def recent_totals(usage: ObjectStore, now: int) -> list[dict[str, Any]]:
    """Rows of period, model, calls, tokens by kind, cost in micro-dollars (None where none is known) and calls
    without a price; `now` in nanoseconds. Input is without cache, as in a report.

    The periods are the day before `now`, and that day's month up to it. The dearest model comes first.
    """
    yesterday = datetime.fromtimestamp(now // _NANO, UTC).date() - timedelta(days=1)
    month = yesterday.replace(day=1)
    calls = pl.DataFrame(read_calls(usage, _COLUMNS, since=month, until=yesterday))
    return [
        *_by_model(f"{yesterday}", calls.filter(pl.col("date") == yesterday)),
        *_by_model(f"{month:%Y-%m} to {yesterday}", calls),
    ]


def _by_model(period: str, calls: pl.DataFrame) -> list[dict[str, Any]]:
    sums = calls.group_by("model").agg(
        pl.len().alias("calls"),
        pl.col("input_uncached").sum().alias("input"),
        (pl.col("input_total") - pl.col("input_uncached") - pl.col("cache_read")).sum().alias("cache_write"),
        pl.col("cache_read").sum(),
        pl.col("output").sum(),
        (pl.col("input_total") + pl.col("output")).sum().alias("tokens"),
        pl.when(pl.col("cost_microusd").count() > 0).then(pl.col("cost_microusd").sum()).alias("cost_microusd"),
        pl.col("cost_microusd").null_count().alias("without_price"),
    )
    rows = sums.sort("cost_microusd", "model", descending=[True, False], nulls_last=True).to_dicts()
    return [{"period": period, **row} for row in rows]
