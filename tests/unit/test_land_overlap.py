"""Sessions that are landed at once: told of in order, bounded, and to the same zone as one after the other."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from storage.objects import open_store
from storage.zone import Zone
from tasks.land import archive
from tasks.land.archive import land_archive
from tasks.land.claude_code import ClaudeCode
from tasks.land.outcome import LandOptions
from tasks.land.overlap import HELD_BYTES, in_order

NAMES = [f"s{number}" for number in range(9)]


class Gauge:
    """How many were at work at one time, at most; each waits until `together` of them are, when it can."""

    def __init__(self, together: int) -> None:
        self.most = self._now = 0
        self._lock = threading.Lock()
        self._barrier = threading.Barrier(together)

    def work(self, name: str) -> str:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        self._barrier.wait(timeout=60)
        with self._lock:
            self._now -= 1
        return name


def test_what_was_landed_at_once_is_told_in_order() -> None:
    gauge = Gauge(3)
    assert list(in_order(NAMES, lambda name: 1, gauge.work, at_once=3)) == NAMES
    assert gauge.most == 3


def test_no_more_bytes_are_at_work_than_are_allowed() -> None:
    gauge = Gauge(1)
    assert list(in_order(NAMES, lambda name: HELD_BYTES, gauge.work, at_once=3)) == NAMES
    assert gauge.most == 1


def test_the_first_that_fails_ends_it_after_those_before() -> None:
    def work(name: str) -> str:
        if name == "s2":
            raise OSError(name)
        return name

    outcomes = in_order(NAMES, lambda name: 1, work, at_once=4)
    assert [next(outcomes), next(outcomes)] == ["s0", "s1"]
    with pytest.raises(OSError, match="s2"):
        next(outcomes)


def test_what_nobody_waits_for_any_more_is_not_begun() -> None:
    begun = []
    outcomes = in_order(NAMES, lambda name: 1, lambda name: begun.append(name), at_once=2)
    next(outcomes)
    outcomes.close()
    assert set(begun) <= {"s0", "s1"}


def test_a_zone_is_the_same_however_many_are_landed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "source/p"
    project.mkdir(parents=True)
    for number in range(6):
        row = f'{{"type":"user","uuid":"u{number}","message":{{"content":"words"}}}}\n'
        (project / f"{number:08x}-0000-4000-8000-000000000000.jsonl").write_text(row * (number % 3) + "not JSON\n")
    zones = []
    for at_once in (1, 8):
        monkeypatch.setattr(archive, "AT_ONCE", at_once)
        dialect, store, zone = ClaudeCode(), open_store(tmp_path / "source"), tmp_path / f"zone{at_once}"
        found = dialect.discover(store)
        landed = list(land_archive(Zone(open_store(zone)), store, dialect, found, LandOptions(now=10**18)))
        files = {str(path.relative_to(zone)): path.read_bytes() for path in zone.rglob("*") if path.is_file()}
        zones.append((landed, files))
    assert len(zones[0][0]) == 6
    assert zones[0] == zones[1]
