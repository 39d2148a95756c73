"""The candidates of some calls, or of all, in parts that fit into memory: all that there are of a call are in one part.

Candidates at rest are in the order of their sessions, so that what a few sessions have lies close together; of a file
only the row groups that hold something wanted are read. For several parts everything is read once and dealt out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import polars as pl
import pyarrow.parquet as pq

from tasks.usage.candidates import CANDIDATE, KEY

__all__ = ["rows_by_part"]

_SLICE = 128 * 1024


def rows_by_part(
    files: Sequence[Path], keys: pl.DataFrame | None, parts: int, folder: Path, name: str
) -> Iterator[pl.DataFrame]:
    """The candidates in `files` of the calls in `keys` (columns `candidates.KEY`), None for all, in `parts` parts.
    Files of `name` in `folder` are where parts wait."""
    if parts == 1:
        yield _frame(_wanted(path, keys) for path in files)
        return
    waiting: defaultdict[int, list[Path]] = defaultdict(list)
    for number, rows in enumerate(_slices(files, keys)):
        dealt = rows.with_columns((pl.col("call_key").hash(seed=0) % parts).alias("part"))
        for (part,), piece in dealt.partition_by("part", as_dict=True, include_key=False).items():
            path = folder / f"{name}-{part:06d}-{number:06d}.parquet"
            piece.write_parquet(path, compression="lz4", statistics=False)
            waiting[cast(int, part)].append(path)
    for part in range(parts):
        yield _frame(pl.read_parquet(path) for path in waiting[part])
        for path in waiting.pop(part, ()):
            path.unlink()


def _wanted(path: Path, keys: pl.DataFrame | None) -> pl.DataFrame:
    if keys is None:
        return pl.read_parquet(path)
    scan = pl.scan_parquet(path, row_index_name="place")
    places = scan.join(keys.lazy(), on=KEY, how="semi").select("place").collect()["place"]
    if not places.len():
        return pl.DataFrame(schema=CANDIDATE)
    file = pq.ParquetFile(path)
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    ends = pl.Series(sizes, dtype=pl.UInt32).cum_sum()
    groups = ends.search_sorted(places, side="right").unique().sort().to_list()
    rows = cast(pl.DataFrame, pl.from_arrow(file.read_row_groups(groups, use_threads=True)))
    return rows.join(keys, on=KEY, how="semi")


def _slices(files: Sequence[Path], keys: pl.DataFrame | None) -> Iterator[pl.DataFrame]:
    for path in files:
        height = pq.read_metadata(path).num_rows
        for start in range(0, height, _SLICE):
            rows = pl.scan_parquet(path).slice(start, _SLICE).collect()
            yield rows if keys is None else rows.join(keys, on=KEY, how="semi")


def _frame(tables: Iterator[pl.DataFrame]) -> pl.DataFrame:
    fitting = (table.select(pl.col(name).cast(kind) for name, kind in CANDIDATE.items()) for table in tables)
    return pl.concat([pl.DataFrame(schema=CANDIDATE), *fitting])
