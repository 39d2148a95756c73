"""Of all candidates of a call in a session one: with the numbers of the greatest output, the place of the first record.

The row with the greatest output is kept, whole; a later one wins a tie (usage specification, "Counting"). Putting
candidates together in any order and number of steps comes to the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from tasks.usage.candidates import CANDIDATE, KEY

__all__ = ["best", "order_of", "place_in"]

_HOME = ("stream", "is_subagent", "forked_from", "project", "home_seq", "home_row")


def best(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """One candidate a call and session of all that `tables` hold."""
    rows = pl.concat(tables) if tables else pl.DataFrame(schema=CANDIDATE)
    rows = rows.select(pl.col(name).cast(kind) for name, kind in CANDIDATE.items())
    one = [*KEY, "session"]
    calls = rows.lazy().select(one).unique().select(pl.len()).collect(engine="streaming").item()
    if calls == rows.height:
        return rows
    # Rows are ordered by numbers alone, and only those that are kept are copied as a whole.
    by_output = order_of(rows, "output", "evidence_seq", "evidence_row")
    by_place = order_of(rows, "home_seq", "home_row")
    places = [place_in(by_output, "winner"), place_in(by_place, "home")]
    narrow = rows.select(*one, "records", "foreign", *places)
    groups = (
        narrow.lazy()
        .group_by(one)
        .agg(pl.col("winner").max(), pl.col("home").min(), pl.col("records").sum(), pl.col("foreign").all())
        .collect(engine="streaming")
    )
    groups = groups.with_columns(winner=by_output.gather(groups["winner"]), home=by_place.gather(groups["home"]))
    groups = groups.sort("winner")
    winners, homes = rows.drop(*_HOME, "records", "foreign")[groups["winner"]], rows.select(_HOME)[groups["home"]]
    return pl.concat([winners, homes, groups.select("records", "foreign")], how="horizontal").select(CANDIDATE.keys())


def order_of(rows: pl.DataFrame, *by: str | pl.Expr) -> pl.Series:
    """The numbers of `rows` in the order of these columns, and of themselves."""
    return rows.select(pl.arg_sort_by(*by, maintain_order=True)).to_series()


def place_in(order: pl.Series, name: str) -> pl.Series:
    """The place of each row in an `order` of row numbers."""
    return order.arg_sort().alias(name)
