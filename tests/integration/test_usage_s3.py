"""The same totals by polars, DuckDB and pyarrow, from a disk and from S3; and writers side by side in S3."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.fs
import pytest
import s3fs

from storage.objects import ObjectStore, open_store
from storage.usage_dataset import CALL_FILES, newest_manifest
from tests.memory_store import MemoryStore
from tests.s3_server import S3Server
from tests.usage_sessions import claude, codex, count, land, rows

Totals = tuple[int, int, int, int]


@pytest.fixture(scope="module")
def zone() -> MemoryStore:
    """A day without any cost, a day with one, projects that look like numbers, and more than one source."""
    store = MemoryStore()
    land(store, "a", [claude("m1", 5, model="my-local-1", time="2026-03-01T00:00:00Z", cwd="007")])
    land(
        store,
        "a",
        [claude("m2", 7, time="2026-03-02T00:00:00Z", cwd="123"), claude("m1", 5, model="my-local-1")],
        seq=2,
    )
    land(store, "b", [claude("m2", 7, time="2026-03-02T00:00:00Z"), claude("m3", 2**40, time="", cwd="abc")])
    land(store, "c", [codex("c#1", 100, 80, 7, 3, time="2026-03-02T00:00:00Z")], dialect="codex/1")
    return store


@pytest.fixture(params=["disk", "s3"])
def usage(request: pytest.FixtureRequest, zone: MemoryStore, tmp_path: Path) -> ObjectStore:
    if request.param == "s3":
        request.getfixturevalue("s3")
    store = open_store(tmp_path / "usage" if request.param == "disk" else f"s3://zone/{tmp_path.name}/usage")
    assert count(zone, store).problem_count == 0
    return store


def by_polars(usage: ObjectStore, s3: S3Server) -> Totals:
    options = {}
    if usage.url.startswith("s3://"):
        found = s3.environment
        options = {
            "aws_endpoint_url": found["AWS_ENDPOINT_URL"],
            "aws_access_key_id": found["AWS_ACCESS_KEY_ID"],
            "aws_secret_access_key": found["AWS_SECRET_ACCESS_KEY"],
            "aws_region": "us-east-1",
            "aws_allow_http": "true",
        }
    table = pl.scan_parquet(f"{usage.url}/{CALL_FILES}", hive_partitioning=True, storage_options=options or None)
    assert dict(table.collect_schema())["date"] == pl.Date
    sums = table.select(
        pl.len(), pl.col("output").sum(), pl.col("cost_microusd").sum(), pl.col("cost_microusd").null_count().alias("n")
    )
    return sums.collect().row(0)


def by_duckdb(usage: ObjectStore, s3: S3Server) -> Totals:
    with duckdb.connect() as connection:
        if usage.url.startswith("s3://"):
            connection.register_filesystem(_s3fs(s3))
        found: Any = connection.execute(
            "SELECT count(*), sum(output), sum(cost_microusd), count(*) - count(cost_microusd) "
            f"FROM read_parquet('{usage.url}/{CALL_FILES}', hive_partitioning = true)"
        ).fetchone()
        kinds = connection.execute(
            "SELECT DISTINCT typeof(date), typeof(source), typeof(project) "
            f"FROM read_parquet('{usage.url}/{CALL_FILES}')"
        ).fetchall()
    assert kinds == [("DATE", "VARCHAR", "VARCHAR")]
    return found  # type: ignore[no-any-return]


def by_pyarrow(usage: ObjectStore, s3: S3Server) -> Totals:
    place, files = usage.url, None
    if usage.url.startswith("s3://"):
        place, files = usage.url.removeprefix("s3://"), pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(_s3fs(s3)))
    table = pyarrow.dataset.dataset(place, filesystem=files, partitioning="hive").to_table()
    cost = table["cost_microusd"]
    return table.num_rows, pc.sum(table["output"]).as_py(), pc.sum(cost).as_py(), cost.null_count


def _s3fs(s3: S3Server) -> Any:
    return s3fs.S3FileSystem(
        key=s3.environment["AWS_ACCESS_KEY_ID"],
        secret=s3.environment["AWS_SECRET_ACCESS_KEY"],
        endpoint_url=s3.environment["AWS_ENDPOINT_URL"],
        use_listings_cache=False,
        skip_instance_cache=True,
    )


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("read", [by_polars, by_duckdb, by_pyarrow])
def test_every_engine_reads_the_same_totals(read: Any, usage: ObjectStore, s3: S3Server) -> None:
    assert tuple(read(usage, s3)) == (4, 5 + 7 + 2**40 + 7, 135 + 147, 2)


def test_an_update_in_s3_is_what_it_is_on_a_disk(zone: MemoryStore, s3: S3Server, tmp_path: Path) -> None:
    there, here = open_store(f"s3://zone/{tmp_path.name}/grown"), open_store(tmp_path / "usage")
    part = MemoryStore()
    part.objects = {key: data for key, data in zone.objects.items() if "000002" not in key and not key.startswith("b")}
    count(part, there)
    count(zone, there)
    count(zone, here)
    names = [each.key for each in there.list("") if each.key.startswith("date=")]
    assert names == [each.key for each in here.list("") if each.key.startswith("date=")]
    assert [there.read(name) for name in names] == [here.read(name) for name in names]
    assert not count(zone, there).changed


def test_writers_side_by_side_in_s3_leave_one_whole_data_set(s3: S3Server, tmp_path: Path) -> None:
    zone, url = MemoryStore(), f"s3://zone/{tmp_path.name}/race"
    count(zone, open_store(url))
    for name in "abcd":
        land(zone, name, [claude(f"m-{name}", 1), claude("shared", 2)])
    failures: list[BaseException] = []

    def write(session: str) -> None:
        try:
            count(zone, open_store(url), sessions=(session,))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    store = open_store(url)
    assert rows(store, "call_key", "copies_seen") == [(f"m-{name}", 1) for name in "abcd"] + [("shared", 4)]
    manifest = newest_manifest(store)
    assert manifest is not None
    assert [each.key for each in store.list("") if each.key.startswith("date=")] == [e.key for e in manifest.files]
