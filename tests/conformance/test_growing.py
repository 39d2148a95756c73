"""Golden sessions that land while they are written: cut anywhere, in as many passes as one likes, they come to the
records of landing once.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from schemas.session_data import Record, read_session_data
from storage.zone import Zone
from tasks.land.archive import land_archive
from tasks.land.kinds import recognise
from tasks.land.outcome import LandOptions
from tests.golden import golden_cases
from tests.memory_store import MemoryStore

NOW = 1_800_000_000_000_000_000
PASSES = 12
WHOLE = (".json", ".js", ".zst", "session_index.jsonl")
"""Files that are written at once, and the index, of which only the newest titles land."""


def sources() -> list[tuple[str, Path]]:
    of_claude = [max(case.glob("source.step*")) for case in golden_cases("claude-code")]
    return [("claude-code", path) for path in of_claude] + [("codex", path) for path in golden_cases("codex")]


def content(folder: Path) -> dict[str, bytes]:
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {key: data for key, data in found.items() if key != "expected.json"}


def land(zone: MemoryStore, kind: str, files: dict[str, bytes], now: int) -> None:
    archive = MemoryStore()
    archive.objects = files
    dialect, source, found = recognise(archive, kind)
    if found.sessions:
        for _ in land_archive(Zone(zone), source, dialect, found, LandOptions(now=now, max_delta_bytes=4000)):
            pass


def records(store: MemoryStore) -> dict[str, list[Record]]:
    """By the place they landed in."""
    zone = Zone(store)
    found: dict[str, list[Record]] = {}
    for session in zone.sessions():
        refs = zone.landed_files(session)
        assert [ref.seq for ref in refs] == list(range(1, len(refs) + 1))
        for ref in refs:
            of_file = read_session_data(zone.read(ref), name=ref.key).records
            found.setdefault(f"{session}/{ref.place}/{ref.prefix}", []).extend(of_file)
    return found


@pytest.mark.parametrize(
    ("kind", "folder"),
    sources(),
    ids=lambda each: each if isinstance(each, str) else each.parent.name + "-" + each.name,
)
def test_session_that_lands_after_any_bytes_has_the_records_of_landing_once(kind: str, folder: Path) -> None:
    whole = content(folder)
    once, zone = MemoryStore(), MemoryStore()
    land(once, kind, whole, NOW)
    chance = random.Random(folder.name)
    ends = {
        key: [len(data)] * PASSES
        if key.endswith(WHOLE)
        else sorted(chance.randrange(len(data) + 1) for _ in range(PASSES))
        for key, data in whole.items()
    }
    for step in range(PASSES):
        land(zone, kind, {key: data[: ends[key][step]] for key, data in whole.items()}, NOW + step)
    land(zone, kind, whole, NOW + PASSES)
    assert records(zone) == records(once)
