"""What pricing a day again changed: rows that got a price, and rows that lost theirs.

History is priced again on request alone (usage specification, "Money"); whoever asks is told what came of it.
"""

from __future__ import annotations

import polars as pl

__all__ = ["prices_gained_and_lost"]


def prices_gained_and_lost(standing: pl.DataFrame | None, now: pl.DataFrame) -> tuple[int, int]:
    """How many rows of a day had no price and have one now, and how many the other way around."""
    if standing is None:
        return 0, 0
    both = standing.select("call_key", was="price_source").join(
        now.select("call_key", "price_source"), on="call_key", how="inner"
    )
    was, is_ = pl.col("was").is_not_null(), pl.col("price_source").is_not_null()
    gained, lost = both.select((~was & is_).sum().alias("gained"), (was & ~is_).sum().alias("lost")).row(0)
    return int(gained), int(lost)
