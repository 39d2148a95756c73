"""Candidates on their way into the data set: kept small in memory, then in files that a table scan reads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl

from tasks.usage.best import best

__all__ = ["SPAN", "Spool"]

SPAN: dict[str, pl.DataType | type[pl.DataType]] = {
    "session": pl.String,
    "first": pl.Datetime("us", "UTC"),
    "last": pl.Datetime("us", "UTC"),
    "untimed": pl.Boolean,
}
"""The times of a session's first and last record, and whether any has none."""


class Spool:
    """New candidates, reduced as they come in. `files` are in `folder`, each with at most about `batch_rows` rows."""

    def __init__(self, folder: Path, batch_rows: int) -> None:
        self._folder = folder
        self._batch_rows = batch_rows
        self._fresh: list[pl.DataFrame] = []
        self._held: list[pl.DataFrame] = []
        self._spans: list[pl.DataFrame] = []
        self.records = 0
        self.files: list[Path] = []

    def add(self, rows: pl.DataFrame) -> None:
        """Take candidates, one a record."""
        if not rows.height:
            return
        self.records += rows.height
        self._spans.append(_spans(rows))
        self._fresh.append(rows)
        if sum(each.height for each in self._fresh) >= self._batch_rows / 2:
            self._reduce()

    def close(self) -> None:
        """Write what is held."""
        self._reduce()
        if self._held:
            self._write()

    def spans(self) -> pl.DataFrame:
        """One row a session, columns `SPAN`."""
        return _merged(self._spans)

    def spans_in_microseconds(self) -> pl.DataFrame:
        """The same with times as numbers, microseconds since the epoch, UTC."""
        return self.spans().with_columns(pl.col("first", "last").dt.timestamp("us"))

    def _reduce(self) -> None:
        if self._fresh:
            self._held.append(best(self._fresh))
            self._fresh = []
            self._spans = [_merged(self._spans)]
        if sum(each.height for each in self._held) >= self._batch_rows:
            self._write()

    def _write(self) -> None:
        path = self._folder / f"new-{len(self.files):06d}.parquet"
        write_candidates(path, self._held)
        self.files.append(path)
        self._held = []


def write_candidates(path: Path, tables: Iterable[pl.DataFrame]) -> int:
    """Write the best of `tables` in an order that follows from them alone; how many rows that are."""
    rows = best(list(tables)).sort("session", "family", "call_key")
    rows.write_parquet(path, compression="zstd", compression_level=3, statistics=True, row_group_size=64 * 1024)
    return rows.height


def _spans(rows: pl.DataFrame) -> pl.DataFrame:
    time = pl.col("call_time")
    return rows.group_by("session").agg(
        time.min().alias("first"), time.max().alias("last"), time.is_null().any().alias("untimed")
    )


def _merged(spans: list[pl.DataFrame]) -> pl.DataFrame:
    every = pl.concat([pl.DataFrame(schema=SPAN), *spans])
    return every.group_by("session").agg(pl.col("first").min(), pl.col("last").max(), pl.col("untimed").any())
