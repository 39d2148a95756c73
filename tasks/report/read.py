"""From a usage dataset to a report: only the files that its newest manifest names are read, each of them once.

A file is checked against the manifest before it counts, so that a damaged one is named and never half used. Files are
taken in parts of bounded size: a report on years needs the memory of a part and of the sums.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256

import polars as pl

from schemas.errors import ObjectMissing, UsageRejected
from schemas.usage import SCHEMA_VERSION
from storage.ahead import read_in_order
from storage.objects import ObjectStore
from storage.usage_dataset import CallFile, manifest_key, newest_manifest, run_files
from tasks.report.agents import RUNS
from tasks.report.condense import condense, merge
from tasks.report.scope import Scope
from tasks.report.usage_report import UsageReport, report_of

__all__ = ["read_report"]

PART_BYTES = 64 * 1024 * 1024
_READS = 5
_RUNS_A_PART = 1_000

File = tuple[CallFile, bytes]


def read_report(
    store: ObjectStore,
    scope: Scope,
    *,
    starts: Callable[[int], object] = lambda files: None,
    advances: Callable[[str], object] = lambda key: None,
) -> UsageReport | None:
    """The report on the dataset in `store`, or None where neither a dataset nor a headless run was ever written.

    `starts` is told the number of files, `advances` each key. A writer may drop a file meanwhile: then all is read
    again by the newer manifest. Raises `UsageRejected` for a manifest or a file that is damaged, gone, or
    of a later version.
    """
    for _ in range(_READS):
        manifest = newest_manifest(store)
        if manifest is None:
            return report_of(merge([]), scope, _runs(store, scope)) if run_files(store) else None
        if manifest.schema_version > SCHEMA_VERSION:
            detail = f"it has version {manifest.schema_version} of the columns, and this release knows {SCHEMA_VERSION}"
            raise UsageRejected(manifest_key(manifest.generation), None, "schema_version", detail)
        files = [file for file in manifest.files if scope.may_hold(file.date)]
        starts(len(files))
        try:
            parts = [_condensed(part, scope.zone) for part in _parts(_read(store, files, advances))]
        except ObjectMissing as gone:
            if newest_manifest(store) == manifest:
                raise UsageRejected(gone.key, None, "missing", "the manifest names it, and it is not there") from None
            continue
        return report_of(merge(parts), scope, _runs(store, scope))
    raise UsageRejected(store.url, None, "manifest", f"it changed {_READS} times while it was being read")


def _runs(store: ObjectStore, scope: Scope) -> pl.DataFrame:
    """The rows of the headless runs that can be in scope. A run is a small file of its own: many are read at once."""
    runs = [RUNS]
    part: list[tuple[str, bytes]] = []
    for stat, data in read_in_order(store, run_files(store, scope.may_hold)):
        part.append((stat.key, data))
        if len(part) == _RUNS_A_PART:
            runs.append(_run_rows(part))
            part = []
    return pl.concat([*runs, _run_rows(part)] if part else runs)


def _run_rows(part: list[tuple[str, bytes]]) -> pl.DataFrame:
    """The rows of these files; when they cannot be read, of each by itself, to name the one at fault."""
    try:
        rows = [pl.scan_parquet(io.BytesIO(data)).select(RUNS.columns).cast(RUNS.schema) for _, data in part]
        return pl.concat(rows).collect()
    except pl.exceptions.PolarsError as error:
        if len(part) > 1:
            return pl.concat([_run_rows([each]) for each in part])
        reason = str(error).partition("\n")[0]
        raise UsageRejected(part[0][0], None, "columns", f"it is no file of run rows: {reason}") from None


def _read(store: ObjectStore, files: Iterable[CallFile], advances: Callable[[str], object]) -> Iterator[File]:
    """Each file with its bytes, when they are those that the manifest names."""
    for file, data in read_in_order(store, files):
        if len(data) != file.size or sha256(data).hexdigest() != file.digest:
            raise UsageRejected(file.key, None, "digest", "its bytes are not those that the manifest names")
        advances(file.key)
        yield file, data


def _parts(files: Iterable[File]) -> Iterator[list[File]]:
    """Files in lists of at most `PART_BYTES`, or of one that is larger."""
    part: list[File] = []
    held = 0
    for file, data in files:
        if part and held + len(data) > PART_BYTES:
            yield part
            part, held = [], 0
        part.append((file, data))
        held += len(data)
    if part:
        yield part


def _condensed(part: list[File], zone: str) -> pl.DataFrame:
    """The sums of a part; when it cannot be read, each file by itself, to name the one at fault."""
    try:
        return condense([(file.date, pl.scan_parquet(io.BytesIO(data))) for file, data in part], zone)
    except pl.exceptions.PolarsError as error:
        if len(part) > 1:
            return merge([_condensed([each], zone) for each in part])
        reason = str(error).partition("\n")[0]
        raise UsageRejected(part[0][0].key, None, "columns", f"it is no file of call rows: {reason}") from None
