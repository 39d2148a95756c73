"""The files of one day and source: what they held and is not touched, as it was; what is, as it is now.

A row that was priced keeps its price for as long as what the price follows from stands (usage specification, "Money":
history is repriced only on request). Rows are in one order, so that the same rows are the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl
import pyarrow as pa

from schemas.usage import CALL_FILE_SCHEMA, SCHEMA_VERSION
from storage.usage_dataset import parquet_bytes
from tasks.usage.candidates import KEY, family
from tasks.usage.pricing import PRICE, PRICED_BY, priced
from tasks.usage.rates import RateCard

__all__ = ["call_files", "day_of_calls"]

_ORDER = ["call_time", "session_id", "call_key"]
_INPUT = ("input_uncached", "cache_read", "cache_write_5m", "cache_write_1h", "cache_write_unknown")


def day_of_calls(
    standing: pl.DataFrame | None,
    calls: pl.DataFrame,
    touched: pl.DataFrame | None,
    source: str,
    card: RateCard,
    reprices: Callable[[pl.DataFrame], pl.Series],
) -> pl.DataFrame:
    """The rows of a day in their order, with the columns of a call file.

    `standing` are the rows of the files that stand, None without any; `calls` (`resolve.CALL` with parents) are the
    day's calls among those `touched` (`candidates.KEY`, None for all); `reprices` says of `calls` whose price is asked
    for anew.
    """
    rows = calls.with_columns(
        pl.col("session_id").alias("conversation_id"),
        pl.col("reported").alias("cost_reported_microusd"),
        pl.sum_horizontal(_INPUT).alias("input_total"),
        pl.lit(SCHEMA_VERSION, pl.Int32).alias("schema_version"),
    )
    if standing is None or not standing.height:
        return _ordered([priced(rows, card)])
    # What the tables of today have priced they price the same again, also where it follows from more than is in a file.
    older = standing.filter(pl.col("price_version").ne_missing(card.version))
    kept_prices = older.select("call_key", *PRICED_BY, *PRICE)
    keeps = rows.filter(~reprices(rows)).join(kept_prices, on=["call_key", *PRICED_BY], how="inner", nulls_equal=True)
    new = priced(rows.join(keeps.select("call_key"), on="call_key", how="anti"), card)
    untouched = standing.head(0)
    if touched is not None:
        keyed = standing.with_columns(family(pl.lit(source)))
        untouched = keyed.join(touched, on=KEY, how="anti").drop("family")
    return _ordered([keeps, new, untouched])


def call_files(day: pl.DataFrame, part_rows: int) -> Iterator[tuple[bytes, int]]:
    """The Parquet files of a day, at most `part_rows` rows each, with their numbers of rows."""
    for start in range(0, day.height, part_rows):
        part = day.slice(start, part_rows)
        table: pa.Table = part.to_arrow().cast(CALL_FILE_SCHEMA)
        yield parquet_bytes(table), part.height


def _ordered(tables: list[pl.DataFrame]) -> pl.DataFrame:
    names = CALL_FILE_SCHEMA.names
    return pl.concat([table.select(names) for table in tables], how="vertical_relaxed").sort(_ORDER, nulls_last=True)
