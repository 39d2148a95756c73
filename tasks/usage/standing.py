"""The data set that a run begins with, as far as all of it is still there."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from hashlib import sha256
from pathlib import Path

import polars as pl

from schemas.errors import ObjectMissing, UsageRejected
from schemas.usage import SCHEMA_VERSION
from storage.objects import ObjectStore
from storage.usage_dataset import CallFile, Manifest, newest_manifest
from storage.usage_marks import SessionMark, read_marks
from storage.usage_writing import data_keys, read_state

__all__ = ["Standing", "load_standing"]


@dataclass(frozen=True, slots=True)
class Standing:
    """`manifest` is the newest one; `calls` those of its files that are there, `marks` and `candidates` empty when any
    of the writer's own files is not. `is_damaged` says that something is missing. `there` are all files with the times
    of their writing (seconds since the epoch)."""

    manifest: Manifest | None
    marks: dict[str, SessionMark]
    calls: tuple[CallFile, ...]
    candidates: Sequence[Path]
    is_damaged: bool
    there: dict[str, float]

    def rows_of(self, store: ObjectStore, day: date, source: str) -> pl.DataFrame | None:
        """The rows of one day and source as they stand, None without any. Raises `UsageRejected` (rule ``digest``)."""
        files = [each for each in self.calls if (each.date, each.source) == (day, source)]
        if not files:
            return None
        return pl.concat(pl.read_parquet(io.BytesIO(_bytes_of(store, each))) for each in files)


def _bytes_of(store: ObjectStore, file: CallFile) -> bytes:
    data = store.read(file.key)
    if sha256(data).hexdigest() != file.digest:
        detail = "it does not hold what was written; delete it, and the next run writes it again"
        raise UsageRejected(file.key, None, "digest", detail)
    return data


def load_standing(store: ObjectStore) -> Standing:
    """The data set as it stands, but for its candidates. Raises `UsageRejected` for one of another schema version."""
    manifest, there = newest_manifest(store), data_keys(store)
    if manifest is None:
        return Standing(None, {}, (), (), False, there)
    if manifest.schema_version != SCHEMA_VERSION:
        detail = f"its schema version is {manifest.schema_version}, and this release writes {SCHEMA_VERSION}"
        raise UsageRejected(store.url, None, "schema_version", detail)
    calls = tuple(each for each in manifest.files if each.key in there)
    standing = Standing(manifest, {}, calls, (), len(calls) < len(manifest.files), there)
    if manifest.sessions is None or any(each.key not in there for each in manifest.candidates):
        return replace(standing, is_damaged=True)
    try:
        marks = read_marks(read_state(store, manifest.sessions), name=manifest.sessions.key)
    except ObjectMissing:
        return replace(standing, is_damaged=True)
    return replace(standing, marks=marks)


def with_candidates(standing: Standing, store: ObjectStore, folder: Path) -> Standing:
    """`standing` with its candidates in `folder`; without them and its marks when one is not as it was written."""
    if standing.manifest is None or not standing.marks:
        return standing
    paths = []
    for number, file in enumerate(standing.manifest.candidates):
        try:
            data = read_state(store, file)
        except ObjectMissing:
            return replace(standing, marks={}, candidates=(), is_damaged=True)
        paths.append(folder / f"standing-{number:06d}.parquet")
        paths[-1].write_bytes(data)
    return replace(standing, candidates=paths)
