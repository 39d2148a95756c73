"""Candidates at rest: few files, however many runs there were.

Each run adds a file; a file that is not small beside the one before it is put together with it, so that there are about
as many files as the number of rows has binary digits. Putting together is choosing the best, and loses nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from storage.objects import ObjectStore
from storage.usage_dataset import StateFile
from storage.usage_writing import put_state
from tasks.usage.spool import write_candidates

__all__ = ["merged_segments"]

LARGEST = 2_000_000
"""Rows that a file has at most when it has been put together."""

SUFFIX = ".candidates"
"""Not Parquet's, though Parquet is inside: a pattern for all Parquet files of a data set finds rows of calls alone."""


@dataclass(frozen=True, slots=True)
class _Segment:
    path: Path
    rows: int
    file: StateFile | None = None


def merged_segments(
    store: ObjectStore,
    old: Sequence[StateFile],
    old_paths: Sequence[Path],
    new: Sequence[Path],
    folder: Path,
    anew: Collection[str] = (),
) -> tuple[StateFile, ...]:
    """The files of the data set's candidates with `new` ones beside the `old`, which are read at `old_paths`; what
    those hold of the sessions `anew` is left out."""
    segments: list[_Segment] = []
    segments += [
        kept for file, path in zip(old, old_paths, strict=True) if (kept := _without(file, path, anew, folder))
    ]
    for path in new:
        segments.append(_Segment(path, _rows(path)))
        while len(segments) > 1 and _belong_together(*segments[-2:]):
            both = segments[-2:]
            merged = folder / f"merged-{len(list(folder.glob('merged-*'))):06d}.parquet"
            rows = write_candidates(merged, [pl.read_parquet(each.path) for each in both])
            segments[-2:] = [_Segment(merged, rows)]
    return tuple(
        each.file or put_state(store, "candidates", SUFFIX, each.path.read_bytes(), each.rows) for each in segments
    )


def _without(file: StateFile, path: Path, anew: Collection[str], folder: Path) -> _Segment | None:
    """A standing file without these sessions; None when it has no others."""
    whole = _Segment(path, file.rows, file)
    if not anew:
        return whole
    rows = pl.read_parquet(path)
    kept = rows.filter(~pl.col("session").is_in(sorted(anew)))
    if kept.height == rows.height:
        return whole
    less = folder / f"less-{path.name}"
    return _Segment(less, write_candidates(less, [kept])) if kept.height else None


def _belong_together(earlier: _Segment, later: _Segment) -> bool:
    return 2 * later.rows > earlier.rows and earlier.rows + later.rows <= LARGEST


def _rows(path: Path) -> int:
    return int(pl.scan_parquet(path).select(pl.len()).collect().item())
