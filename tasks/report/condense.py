"""Usage rows, one a provider call, become sums: one row for each day, model, project, session and cost status.

Everything a report says is added up from these sums, so the rows are read once, part by part, and never all held. Sums
are 128 bits wide: no count that a column can hold makes one wrap.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime

import polars as pl

__all__ = ["COLUMNS", "SUMS", "condense", "merge", "sums"]

COLUMNS = (
    "call_time",
    "model",
    "project",
    "session_id",
    "parent_session_id",
    "is_subagent",
    "cost_status",
    "input_uncached",
    "cache_write_5m",
    "cache_write_1h",
    "cache_write_unknown",
    "cache_read",
    "output",
    "cost_microusd",
)
"""The columns of usage rows that a report reads."""

SUMS = ("calls", "input", "cache_write", "cache_read", "output", "known_microusd", "without_cost", "partial")
"""The columns of sums, in the order of the fields of `Amounts`."""

_TIME = pl.Datetime("us", "UTC")
_FIRST, _LAST = (pl.lit(moment.replace(tzinfo=UTC), _TIME) for moment in (datetime.min, datetime.max))
_KEYS: dict[str, type[pl.DataType]] = {
    "day": pl.Date,
    "model": pl.String,
    "project": pl.String,
    "session": pl.String,
    "parent": pl.String,
    "delegated": pl.Boolean,
    "status": pl.String,
}
_NOTHING = pl.DataFrame(schema={**_KEYS, **dict.fromkeys(SUMS, pl.Int128), "first": _TIME, "last": _TIME})


def condense(parts: Iterable[tuple[date, pl.LazyFrame]], zone: str) -> pl.DataFrame:
    """Usage rows (with `COLUMNS`), in parts that each lie in one UTC day, as sums over days of `zone`.

    A row without a time counts on its part's day, which was taken from its session's first time.
    """
    rows = pl.concat([_keyed(part, utc_day) for utc_day, part in parts])
    # A time that no calendar of ours has counts at the end of those that it has.
    local = pl.col("time").dt.convert_time_zone(zone).dt.date().clip(date.min, date.max)
    return (
        rows.with_columns(day=pl.coalesce(local, "day"))
        .group_by(*_KEYS)
        .agg(*sums(), first=pl.col("time").min(), last=pl.col("time").max())
        .collect(engine="streaming")
    )


def merge(condensed: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Sums of several parts as one; of none, no rows."""
    return pl.concat([_NOTHING, *condensed]).group_by(*_KEYS).agg(*sums(), pl.col("first").min(), pl.col("last").max())


def sums() -> list[pl.Expr]:
    """The columns of sums, added up."""
    return [pl.col(name).sum() for name in SUMS]


def _keyed(rows: pl.LazyFrame, utc_day: date) -> pl.LazyFrame:
    """A row for each call with its keys and what it adds to the sums."""

    def text(column: str) -> pl.Expr:
        return pl.col(column).cast(pl.String)

    def wide(*columns: str) -> pl.Expr:
        return pl.sum_horizontal(pl.col(column).cast(pl.Int128).fill_null(0) for column in columns)

    return rows.select(
        day=pl.lit(utc_day),
        time=pl.col("call_time").cast(_TIME).clip(_FIRST, _LAST),
        model=text("model"),
        project=text("project"),
        session=text("session_id"),
        parent=text("parent_session_id"),
        delegated=pl.col("is_subagent").cast(pl.Boolean).fill_null(False),
        status=text("cost_status"),
        calls=pl.lit(1, pl.Int128),
        input=wide("input_uncached"),
        cache_write=wide("cache_write_5m", "cache_write_1h", "cache_write_unknown"),
        cache_read=wide("cache_read"),
        output=wide("output"),
        known_microusd=wide("cost_microusd"),
        without_cost=pl.col("cost_microusd").is_null().cast(pl.Int128),
        partial=(pl.col("cost_microusd").is_not_null() & (pl.col("cost_status") == "partial").fill_null(False)).cast(
            pl.Int128
        ),
    )
