"""Each call priced by itself, at its own time: micro-dollars, rounded half up once (usage specification, "Money").

Rates are looked up once for each distinct model and stretch of time in which they cannot change, and multiplied in
whole numbers. A call without a time, of a model that no table knows, or with a number that cannot be has no cost: never
today's, never 0.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import polars as pl

from tasks.usage.rates import SCALE, Ask, RateCard, Rates

__all__ = ["PRICE", "PRICED_BY", "priced"]

PRICED_BY = [
    *("model", "call_time", "input_uncached", "cache_read", "cache_write_5m", "cache_write_1h", "cache_write_unknown"),
    *("output", "cost_reported_microusd"),
]
"""The columns of a call file that a cost follows from: while they stand, a row keeps the cost it has."""

PRICE: dict[str, pl.DataType | type[pl.DataType]] = {
    "provider": pl.String,
    "price_model": pl.String,
    "cost_microusd": pl.Int64,
    "cost_status": pl.String,
    "price_source": pl.String,
    "price_version": pl.String,
}
"""The columns that pricing adds."""

_ASK = ["model", "tier", "speed"]
_BY_RATE = (
    ("input_uncached", "r_input"),
    ("cache_read", "r_read"),
    ("cache_write_5m", "r_write"),
    ("cache_write_unknown", "r_unknown"),
    ("cache_write_1h", "r_hour"),
    ("output", "r_output"),
    ("web_searches", "r_web"),
)
_RATE = ("r_input", "r_read", "r_write", "r_hour", "r_unknown", "r_output", "r_web")
_COUNTED = (
    *("input_uncached", "cache_read", "cache_write_5m", "cache_write_1h", "cache_write_unknown"),
    *("output", "web_searches"),
)
_LARGEST = 1_000_000
TOTALS = "relavium"
"""A source that tells the totals of sessions, and no single calls: a sum is never priced, what it says stands."""
_WRITES = ("cache_write_5m", "cache_write_1h", "cache_write_unknown")
_INPUTS = ("input_uncached", "cache_read", *_WRITES)
_STEP: dict[str, Any] = {
    **{"model": pl.String, "tier": pl.String, "speed": pl.String, "stretch": pl.Datetime("us", "UTC")},
    **{"above": pl.Int64, "upto": pl.Int64, "provider": pl.String, "price_model": pl.String, "price_source": pl.String},
    **dict.fromkeys(_RATE, pl.Int64),
    **dict.fromkeys(("is_exact", "lacks_input", "lacks_output", "lacks_other", "guesses_writes"), pl.Boolean),
}
_TIME = pl.Datetime("us", "UTC")
_EVER = datetime(2000, 1, 1, tzinfo=UTC)
_ROW = "_row"


def priced(calls: pl.DataFrame, card: RateCard) -> pl.DataFrame:
    """`calls` (columns of `resolve.CALL` with ``cost_reported_microusd``) in their order, with the columns `PRICE`."""
    rows = calls.with_row_index(_ROW).with_columns(
        pl.sum_horizontal(_INPUTS).alias("whole"),
        _stretch(calls, card).alias("stretch"),
    )
    steps, exact = _steps(rows, card)
    with_rates = rows.filter(
        pl.col("call_time").is_not_null() & pl.col("model").is_not_null() & (pl.col("source") != TOTALS)
    ).join(steps, on=[*_ASK, "stretch"], nulls_equal=True)
    with_rates = with_rates.filter((pl.col("whole") > pl.col("above")) & (pl.col("whole") <= pl.col("upto")))
    # Candidates say so of a call with a number that cannot be (`candidates.CANDIDATE`): it has no cost that is known.
    with_rates = with_rates.with_columns(pl.col("web_searches").is_null().alias("is_unsure")).with_columns(
        pl.col("web_searches").fill_null(0)
    )
    cost = pl.sum_horizontal(pl.col(tokens) * pl.col(rate) for tokens, rate in _BY_RATE)
    with_rates = with_rates.with_columns(((cost + SCALE // 2) // SCALE).alias("cost_microusd"))
    # The whole numbers of calls larger than any that a provider takes might not fit: those are counted out singly.
    is_odd = ~pl.col("is_exact") | (pl.max_horizontal("whole", "output") > _LARGEST)
    odd = with_rates.filter(is_odd)
    if odd.height:
        costs = [_counted_out(row, exact) for row in odd.iter_rows(named=True)]
        replaced = odd.with_columns(pl.Series("cost_microusd", costs, pl.Int64))
        with_rates = pl.concat([with_rates.filter(~is_odd), replaced])
    lacks = (
        (pl.col("lacks_input") & (pl.col("whole") > 0))
        | (pl.col("lacks_output") & (pl.col("output") > 0))
        | pl.col("lacks_other")
    )
    guessed = (pl.col("cache_write_unknown") > 0) & pl.col("guesses_writes")
    cost = pl.when(~pl.col("is_unsure")).then("cost_microusd")
    found = with_rates.select(
        _ROW,
        "provider",
        "price_model",
        cost,
        "price_source",
        pl.when(cost.is_null())
        .then(pl.lit("impossible_count"))
        .when(lacks | guessed)
        .then(pl.lit("partial"))
        .otherwise(pl.lit("priced"))
        .alias("found_status"),
        pl.lit(card.version).alias("price_version"),
    )
    reported = pl.col("cost_reported_microusd")
    without = (
        pl.when(reported.is_not_null())
        .then(pl.lit("reported"))
        .when(pl.col("call_time").is_null())
        .then(pl.lit("no_time"))
        .otherwise(pl.lit("unknown_model"))
    )
    joined = rows.join(found, on=_ROW, how="left", maintain_order="left").with_columns(
        pl.coalesce("found_status", without).alias("cost_status"),
        pl.when(pl.col("found_status").is_null()).then(reported).otherwise("cost_microusd").alias("cost_microusd"),
    )
    return joined.select(*calls.columns, *(pl.col(name).cast(kind) for name, kind in PRICE.items()))


def _stretch(calls: pl.DataFrame, card: RateCard) -> pl.Expr:
    """The start of the stretch of time in which the rates of a call cannot change."""
    asks = [Ask(*row) for row in calls.select(_ASK).unique().iter_rows() if row[0] is not None]
    by_grain: dict[str, list[str]] = {"day": [], "minute": []}
    for ask in asks:
        if (grain := card.grain(ask)) != "ever":
            by_grain[grain].append(ask.model)
    model, time = pl.col("model"), pl.col("call_time")
    return (
        pl.when(model.is_in(by_grain["minute"]))
        .then(time.dt.truncate("1m"))
        .when(model.is_in(by_grain["day"]))
        .then(time.dt.truncate("1d"))
        .otherwise(pl.lit(_EVER).cast(_TIME))
    )


def _steps(rows: pl.DataFrame, card: RateCard) -> tuple[pl.DataFrame, dict[tuple[Any, ...], Rates]]:
    """The rates of every distinct model and stretch of `rows`, and the same as they are, by model, stretch and step."""
    table: list[tuple[Any, ...]] = []
    exact: dict[tuple[Any, ...], Rates] = {}
    asked = rows.filter(pl.col("model").is_not_null() & pl.col("stretch").is_not_null())
    for model, tier, speed, stretch in asked.select(*_ASK, "stretch").unique().iter_rows():
        for step in card.steps(Ask(model, tier, speed), stretch):
            place = (model, tier, speed, stretch, step.above)
            whose = (step.upto, step.provider, step.price_model, step.price_source)
            lacks = (step.lacks_input, step.lacks_output, step.lacks_other, step.guesses_writes)
            table.append((*place, *whose, *step.scaled(), step.is_exact, *lacks))
            exact[place] = step.rates
    return pl.DataFrame(table, schema=_STEP, orient="row"), exact


def _counted_out(row: dict[str, Any], exact: dict[tuple[Any, ...], Rates]) -> int | None:
    """The cost of one call in decimals; None for one that costs more than a column can say."""
    rates = exact[(row["model"], row["tier"], row["speed"], row["stretch"], row["above"])]
    tokens = [row[name] for name in _COUNTED]
    total = sum((rate * count for rate, count in zip(rates, tokens, strict=True)), Decimal(0))
    cost = int(total.to_integral_value(ROUND_HALF_UP))
    return cost if cost < 2**63 else None
