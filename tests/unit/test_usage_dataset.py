"""The usage data set as readers see it, and the rows of headless runs."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow.dataset
import pyarrow.parquet
import pytest

from schemas.errors import ObjectExists, UsageRejected
from schemas.usage import CALL_SCHEMA, RUN_SCHEMA, RUN_SCHEMA_VERSION
from schemas.usage_run import RunRow
from storage.local import LocalStore
from storage.objects import StoreSettings
from storage.usage_dataset import newest_manifest, parquet_bytes, read_calls, read_runs, write_run

STARTED = datetime(2026, 3, 1, 23, 59, 59, 123456, UTC)


def _store(root: Path) -> LocalStore:
    return LocalStore(str(root), StoreSettings())


def _run(run_id: str = "run-1", status: str = "completed") -> RunRow:
    return RunRow(run_id=run_id, agent="nightly", runner="dsh", started=STARTED, exit_status=status, turns=2)


def test_folder_without_manifest_has_no_rows_and_all_columns(tmp_path: Path) -> None:
    assert newest_manifest(_store(tmp_path)) is None
    assert read_calls(_store(tmp_path)).schema == CALL_SCHEMA
    assert read_calls(_store(tmp_path), ["output", "date"]).schema.names == ["date", "output"]


def test_manifest_that_does_not_read_is_refused_by_name(tmp_path: Path) -> None:
    _store(tmp_path).create("_manifest/m000003.json", b"{}")
    with pytest.raises(UsageRejected, match=r"_manifest/m000003\.json: manifest: it does not read"):
        newest_manifest(_store(tmp_path))


def test_run_is_kept_under_the_day_it_started(tmp_path: Path) -> None:
    store = _store(tmp_path)
    assert write_run(store, _run("../007")) == "_runs/date=2026-03-01/run-%2E.%2F007.parquet"
    table = read_runs(store)
    assert table.schema == RUN_SCHEMA
    (row,) = table.to_pylist()
    assert (row["run_id"], row["date"], row["turns"], row["cost_microusd"]) == ("../007", date(2026, 3, 1), 2, None)
    assert (row["started"], row["schema_version"]) == (STARTED, RUN_SCHEMA_VERSION)


def test_run_of_an_earlier_version_has_null_in_a_column_that_it_had_not(tmp_path: Path) -> None:
    store = _store(tmp_path)
    key = write_run(store, _run())
    earlier = pyarrow.parquet.read_table(pyarrow.BufferReader(store.read(key))).drop_columns(["figures_from"])
    store.replace(key, parquet_bytes(earlier))
    write_run(store, _run("run-2"))
    table = read_runs(store)
    assert table.schema == RUN_SCHEMA
    assert table["figures_from"].to_pylist() == [None, None]
    assert table["turns"].to_pylist() == [2, 2]


def test_same_run_again_changes_nothing_and_another_row_of_it_is_refused(tmp_path: Path) -> None:
    store = _store(tmp_path)
    key = write_run(store, _run())
    before = store.read(key)
    assert write_run(store, _run()) == key
    with pytest.raises(ObjectExists):
        write_run(store, _run(status="failed"))
    assert store.read(key) == before


def test_run_rows_are_no_part_of_the_call_rows_that_pyarrow_finds(tmp_path: Path) -> None:
    write_run(_store(tmp_path), _run())
    assert pyarrow.dataset.dataset(str(tmp_path), partitioning="hive").count_rows() == 0
