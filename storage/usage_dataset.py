"""The usage data set: Hive folders of Parquet files, and the manifest that says which of them count (usage
specification, "Layout").

``date=YYYY-MM-DD/source=<source>/part-<digest>.parquet`` holds call rows, ``_runs/date=YYYY-MM-DD/run-<id>.parquet`` a
headless run's row. A manifest is created once, under the next number, after every file it names: that one create is the
moment at which a new state of the data set begins (DESIGN.md, rule 3), so readers that follow the newest manifest never
see half of a day.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from schemas.errors import ObjectExists, ObjectMissing, UsageRejected
from schemas.usage_run import RunRow
from storage.ahead import read_in_order
from storage.keys import escape_id
from storage.objects import ObjectStat, ObjectStore

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "CALL_FILES",
    "MANIFESTS",
    "RUNS",
    "RUN_FILES",
    "STATE",
    "CallFile",
    "Manifest",
    "StateFile",
    "manifest_key",
    "manifests",
    "newest_manifest",
    "parquet_bytes",
    "read_calls",
    "read_runs",
    "run_files",
    "write_run",
]

MANIFESTS = "_manifest/"
STATE = "_state/"
RUNS = "_runs/"
CALL_FILES = "date=*/source=*/*.parquet"
"""A glob, below the data set's root, of every call file, for readers that do not follow the manifest."""
RUN_FILES = "_runs/date=*/*.parquet"
"""A glob, below the data set's root, of every run file."""

_MANIFEST_NAME = re.compile(r"m([0-9]{6,})\.json")
_RUN_DATE = re.compile(r"_runs/date=([0-9]{4}-[0-9]{2}-[0-9]{2})/")
_READS = 5
ROW_GROUP = 256 * 1024

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]


class StateFile(BaseModel):
    """A file of the data set. `size` in bytes; `digest` is the SHA-256 of its bytes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    rows: Count
    size: Count
    digest: Digest


class CallFile(StateFile):
    """A file of call rows: all of its rows have this day and source."""

    date: date
    source: str


class Manifest(BaseModel):
    """One state of the data set. `files` are sorted by day, source and key. Field order is writing order.

    `candidates` and `sessions` are what the writer needs to go on (`tasks.usage`), `dropped` the keys of the files that
    the state before had and this one has not, which may be gone already. `price_version` names both price tables that
    new rows were priced with.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int
    generation: Annotated[int, Field(ge=1)]
    rows: Count
    price_version: str
    files: tuple[CallFile, ...]
    candidates: tuple[StateFile, ...] = ()
    sessions: StateFile | None = None
    dropped: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        return self.model_dump_json(indent=1).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class _Listed:
    generation: int
    key: str


def manifest_key(generation: int) -> str:
    """Where the manifest of that number lies."""
    return f"{MANIFESTS}m{generation:06d}.json"


def manifests(store: ObjectStore) -> list[_Listed]:
    """Every manifest that is there, oldest first."""
    found = []
    for stat in store.children(MANIFESTS)[1]:
        if match := _MANIFEST_NAME.fullmatch(stat.key.removeprefix(MANIFESTS)):
            found.append(_Listed(int(match[1]), stat.key))
    return sorted(found, key=lambda each: each.generation)


def newest_manifest(store: ObjectStore) -> Manifest | None:
    """The data set as it stands, or None when nothing was ever written.

    Raises `UsageRejected` (rule ``manifest``) for one that does not read.
    """
    while True:
        found = manifests(store)
        if not found:
            return None
        newest = found[-1]
        try:
            manifest = Manifest.model_validate_json(store.read(newest.key))
        except ObjectMissing:
            continue  # a newer one is there by now, and this one was cleared away
        except ValidationError as error:
            raise UsageRejected(newest.key, None, "manifest", f"it does not read: {error.errors()[0]['msg']}") from None
        if manifest.generation != newest.generation:
            raise UsageRejected(newest.key, None, "manifest", f"it says it is number {manifest.generation}")
        return manifest


def read_calls(
    store: ObjectStore, columns: Sequence[str] | None = None, *, since: date | None = None, until: date | None = None
) -> pa.Table:
    """Call rows of the newest manifest as one table of `schemas.usage.CALL_SCHEMA`, or of the named columns of it.

    Days from `since` to `until`, both included. Rows are in the order of the manifest's files. A writer may drop a file
    while it is being read: then everything is read again by the newer manifest.
    """
    import pyarrow as pa

    from schemas.usage import CALL_SCHEMA

    wanted = [name for name in CALL_SCHEMA.names if columns is None or name in columns]
    schema = pa.schema([CALL_SCHEMA.field(name) for name in wanted])
    for attempt in range(_READS):
        manifest = newest_manifest(store)
        files = () if manifest is None else manifest.files
        inside = [each for each in files if (since or each.date) <= each.date <= (until or each.date)]
        try:
            return pa.concat_tables([schema.empty_table(), *_tables(store, inside, schema)])
        except ObjectMissing:
            if attempt == _READS - 1 or newest_manifest(store) == manifest:
                raise
    raise AssertionError("unreachable")


def write_run(store: ObjectStore, run: RunRow) -> str:
    """Keep a headless run's row, once: the key of its file, whose bytes follow from the row alone.

    The same row again is no change. Raises `ObjectExists` when the run already has a row that says something else.
    """
    import pyarrow as pa

    from schemas.usage import RUN_FILE_SCHEMA, RUN_SCHEMA_VERSION

    row = {**run.model_dump(), "schema_version": RUN_SCHEMA_VERSION}
    data = parquet_bytes(pa.Table.from_pylist([row], schema=RUN_FILE_SCHEMA))
    key = f"{RUNS}date={run.day}/run-{escape_id(run.run_id)}.parquet"
    try:
        store.create(key, data)
    except ObjectExists:
        if store.read(key) != data:
            raise
    return key


def parquet_bytes(table: pa.Table) -> bytes:
    """`table` as the bytes of one Parquet file; the same rows in the same order give the same bytes.

    Zstandard; Arrow's own schema is kept inside, so that pyarrow gives back exactly the types that went in.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", compression_level=3, row_group_size=ROW_GROUP, version="2.6")
    return bytes(sink.getvalue())


def run_files(store: ObjectStore, wanted: Callable[[date], bool] = lambda day: True) -> list[ObjectStat]:
    """The files of run rows of `wanted` UTC days, or all, by day and run."""
    return [stat for stat in store.list(RUNS) if (day := _run_day(stat.key)) is not None and wanted(day)]


def read_runs(store: ObjectStore) -> pa.Table:
    """Every run row as one table of `schemas.usage.RUN_SCHEMA`, by day and run. A column that a row's version had not
    is null in it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from schemas.usage import RUN_FILE_SCHEMA, RUN_SCHEMA

    tables = [RUN_SCHEMA.empty_table()]
    for stat, data in read_in_order(store, run_files(store)):
        found = pq.read_table(pa.BufferReader(data))
        columns = [
            found.column(field.name) if field.name in found.column_names else pa.nulls(found.num_rows, field.type)
            for field in RUN_FILE_SCHEMA
        ]
        table = pa.table(columns, names=RUN_FILE_SCHEMA.names)
        days = pa.array([_run_day(stat.key)] * table.num_rows, pa.date32())
        tables.append(table.cast(RUN_FILE_SCHEMA).add_column(0, RUN_SCHEMA.field("date"), days))
    return pa.concat_tables(tables)


def _run_day(key: str) -> date | None:
    """The UTC day of a run file; None for what is none."""
    match = _RUN_DATE.match(key)
    try:
        return date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


def _tables(store: ObjectStore, files: Iterable[CallFile], schema: pa.Schema) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    inside = [name for name in schema.names if name not in ("date", "source")]
    for file, data in read_in_order(store, list(files)):
        rows = file.rows
        table = pq.read_table(pa.BufferReader(data), columns=inside)
        by_path = {
            "date": pa.repeat(pa.scalar(file.date, pa.date32()), rows),
            "source": pa.repeat(pa.scalar(file.source, pa.string()), rows),
        }
        columns = [by_path[name] if name in by_path else table.column(name) for name in schema.names]
        yield pa.table(columns, schema=schema)
