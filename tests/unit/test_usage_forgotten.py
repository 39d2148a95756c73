"""What an update that was killed has left in a data set, and who takes it away: a day later the next one, whatever that
finds, and never what another is writing."""

from __future__ import annotations

import os
import time
from pathlib import Path

import polars as pl
import pytest

from storage.local import LocalStore
from storage.objects import ObjectStat
from tests.memory_store import Killed, MemoryStore
from tests.usage_sessions import claude, count, land, rows

DAY = 86_400


class Dying(LocalStore):
    """A writer that is killed before it creates a manifest."""

    def create(self, key: str, data: bytes) -> None:
        if key.startswith("_manifest/"):
            raise Killed
        super().create(key, data)


def now() -> int:
    return time.time_ns()


def killed(zone: MemoryStore, folder: Path) -> None:
    with pytest.raises(Killed):
        count(zone, Dying(str(folder)), now=now())


def let_pass(days: float, folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            before = path.stat().st_mtime - days * DAY
            os.utime(path, (before, before))


def by_pattern(folder: Path) -> list[str]:
    calls = pl.scan_parquet(f"{folder}/date=*/source=*/*.parquet", hive_partitioning=True)
    return sorted(calls.collect()["call_key"].to_list())


@pytest.fixture
def zone() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def usage(zone: MemoryStore, tmp_path: Path) -> LocalStore:
    """Of the zone's calls, `m1` is counted; the update that came upon `m2` was killed."""
    usage = LocalStore(str(tmp_path))
    land(zone, "a", [claude("m1", 100)])
    count(zone, usage, now=now())
    land(zone, "a", [claude("m2", 50)], seq=2)
    killed(zone, tmp_path)
    assert by_pattern(tmp_path) == ["m1", "m1", "m2"]
    return usage


@pytest.mark.parametrize("reprice", [False, True])
def test_an_update_that_changes_nothing_takes_it_away_a_day_later(
    reprice: bool, zone: MemoryStore, usage: LocalStore, tmp_path: Path
) -> None:
    land(zone, "a", [claude("m3", 50)], seq=3)
    count(zone, usage, now=now())
    assert by_pattern(tmp_path) == ["m1", "m1", "m2", "m2", "m3"]
    let_pass(0.9, tmp_path)
    assert not count(zone, usage, now=now(), reprice=reprice).changed
    assert by_pattern(tmp_path) == ["m1", "m1", "m2", "m2", "m3"]
    let_pass(0.9, tmp_path)
    assert not count(zone, usage, now=now(), reprice=reprice).changed
    assert by_pattern(tmp_path) == ["m1", "m2", "m3"]
    assert rows(usage, "call_key") == ["m1", "m2", "m3"]
    state = {path.name for path in tmp_path.glob("_state/*")}
    assert not count(zone, usage, now=now()).changed
    assert {path.name for path in tmp_path.glob("_state/*")} == state


def test_what_another_update_writes_again_is_no_more_forgotten(
    zone: MemoryStore, usage: LocalStore, tmp_path: Path
) -> None:
    let_pass(2, tmp_path)

    class Other(LocalStore):
        """A writer that comes to the same files; before its manifest another update finds nothing new."""

        def create(self, key: str, data: bytes) -> None:
            if key.startswith("_manifest/"):
                nothing = MemoryStore()
                land(nothing, "a", [claude("m1", 100)])
                assert not count(nothing, usage, now=now()).changed
            super().create(key, data)

    assert count(zone, Other(str(tmp_path)), now=now()).changed
    assert by_pattern(tmp_path) == rows(usage, "call_key") == ["m1", "m2"]
    assert not count(zone, usage, now=now()).changed


def test_what_has_become_needed_since_it_was_listed_stays(zone: MemoryStore, usage: LocalStore, tmp_path: Path) -> None:
    let_pass(2, tmp_path)

    class Slow(LocalStore):
        """Between its listing and its clearing up, another writer comes to the same files."""

        is_late = False

        def stat(self, key: str) -> ObjectStat | None:
            if not self.is_late:
                self.is_late = True
                count(zone, usage, now=now())
            return super().stat(key)

    nothing = MemoryStore()
    land(nothing, "a", [claude("m1", 100)])
    assert not count(nothing, Slow(str(tmp_path)), now=now()).changed
    assert rows(usage, "call_key") == ["m1", "m2"]
    assert not count(zone, usage, now=now()).changed
