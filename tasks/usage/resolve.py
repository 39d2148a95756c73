"""From candidates to calls: each once, with the greatest output that anybody saw, for the earliest session that has it.

A call copied into a fork or a resume belongs to the earliest session; the copy keeps lineage, not tokens (usage
specification, "Counting"). Sessions are ordered by: records that do not name another session as theirs, the time of
the first call, that of the last call (who goes on from another ends later), and the name.
"""

from __future__ import annotations

import polars as pl

from tasks.usage.best import best, order_of, place_in
from tasks.usage.candidates import KEY

__all__ = ["CALL", "SESSION", "origins", "parents", "ranked", "resolve"]

SESSION: dict[str, pl.DataType | type[pl.DataType]] = {
    "session": pl.String,
    "first": pl.Datetime("us", "UTC"),
    "last": pl.Datetime("us", "UTC"),
    "day": pl.Date,
}
"""What is known of sessions as wholes: the times of their first and last record with usage, and the day on which their
calls without a time are counted."""

_FOREIGN = 2**32
_OWNED = ["session_id", "stream_id", "is_subagent", "forked_from", "project"]
_OF_WINNER = [
    *("request_id", "call_time", "model", "input_uncached", "cache_read", "cache_write_5m", "cache_write_1h"),
    *("cache_write_unknown", "output", "reasoning", "reported", "finished", "web_searches", "speed", "tier"),
    *("evidence_key", "evidence_seq", "evidence_row"),
]
CALL = ["date", "source", *KEY, *_OWNED, *_OF_WINNER, "copies_seen"]
"""The columns of calls that have no price yet, each of the type it has in candidates; `date` is the UTC day."""


def ranked(rows: pl.DataFrame, sessions: pl.DataFrame) -> pl.DataFrame:
    """One candidate a call and session of `rows`, beside what `sessions` (columns `SESSION`) say of its session and its
    `rank`: of the candidates of a call the one with the smallest is the earliest session's."""
    known = best([rows])
    order = known.select("session").unique().join(sessions, on="session", how="left")
    order = order.sort("first", "last", "session", nulls_last=True).with_row_index("rank")
    rank = (pl.col("foreign").cast(pl.Int64) * _FOREIGN + pl.col("rank")).alias("rank")
    return known.join(order, on="session", how="left", maintain_order="left").with_columns(rank)


def resolve(ranked: pl.DataFrame) -> pl.DataFrame:
    """The calls (columns `CALL`, in no order) of ranked candidates, which must be all that there are of each call."""
    # The earliest session comes first among equals, so that a call's evidence lies in the session it is counted for.
    by_output, by_rank = order_of(ranked, -pl.col("output"), "rank"), order_of(ranked, "rank")
    calls = (
        ranked.lazy()
        .select(*KEY, "records", place_in(by_output, "winner"), place_in(by_rank, "owner"))
        .group_by(KEY)
        .agg(pl.col("winner").min(), pl.col("owner").min(), pl.col("records").sum().alias("copies_seen"))
        .collect(engine="streaming")
    )
    calls = calls.with_columns(winner=by_output.gather(calls["winner"]), owner=by_rank.gather(calls["owner"])).sort(
        "winner"
    )
    owners = ranked.select(
        pl.col("session").alias("session_id"),
        pl.col("stream").alias("stream_id"),
        "is_subagent",
        "forked_from",
        "project",
        # A session without calls that have no time may still own one that others have without a time.
        pl.coalesce("day", pl.col("first").dt.date()).alias("day"),
    )[calls["owner"]]
    winners = ranked.select(*KEY, "source", *_OF_WINNER)[calls["winner"]]
    joined = pl.concat([winners, owners, calls.select("copies_seen")], how="horizontal")
    date = pl.coalesce(pl.col("call_time").dt.date(), "day")
    return joined.with_columns(date.alias("date")).select(CALL)


def origins(ranked: pl.DataFrame) -> pl.DataFrame:
    """Which sessions repeat calls of which: rows of `session`, `owner`, and the owner's `first` and `last`."""
    least = pl.col("rank").min().alias("least")
    calls = ranked.lazy().group_by(KEY).agg(least, pl.len().alias("sessions"))
    shared = calls.filter(pl.col("sessions") > 1).collect(engine="streaming")
    repeats = ranked.select(*KEY, "session", "rank").join(shared, on=KEY).filter(pl.col("rank") != pl.col("least"))
    pairs = repeats.select("session", "least").unique()
    owners = ranked.select(pl.col("rank").alias("least"), pl.col("session").alias("owner"), "first", "last")
    return pairs.join(owners.unique("least"), on="least").select("session", "owner", "first", "last").unique()


def parents(found: pl.DataFrame) -> dict[str, str]:
    """The session that each one in `origins` goes on from: the latest of those whose calls it repeats."""
    latest = found.sort("session", "first", "last", "owner", nulls_last=False).unique("session", keep="last")
    return dict(zip(latest["session"], latest["owner"], strict=True))
