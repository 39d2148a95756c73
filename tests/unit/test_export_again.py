"""Exports of sessions that were exported before: what a later export notices, and what it says of an earlier one."""

from pathlib import Path
from typing import Any

import pytest

from storage.objects import ObjectStore, open_store
from storage.zone import Zone
from tasks.export.batch import export_sessions
from tasks.export.manifest import read_manifest
from tasks.export.outcome import ExportOptions, ExportOutcome
from tests.claude_sessions import HOUR, START, assemble, land, person, says

LATER = START + 100 * HOUR
NAME = "s1.relavium.yaml"


@pytest.fixture
def zone(tmp_path: Path) -> Zone:
    (tmp_path / "zone").mkdir()
    zone = Zone(open_store(tmp_path / "zone"))
    land(zone, [person("PASSWORD=hunter2hunter2"), says("Done.")])
    land(zone, [person("more"), says("More done.")], seq=2)
    assemble(zone)
    return zone


@pytest.fixture
def exports(tmp_path: Path) -> ObjectStore:
    return open_store(tmp_path / "exports")


def export(zone: Zone, exports: ObjectStore, **options: Any) -> ExportOutcome:
    (outcome,) = export_sessions(zone, exports, ["s1"], ExportOptions(**{"as_of": LATER} | options))
    return outcome


def test_landed_file_that_was_deleted_is_noticed(zone: Zone, exports: ObjectStore) -> None:
    assert export(zone, exports).state == "written"
    assert export(zone, exports).state == "unchanged"
    zone.store.delete(zone.landed_files("s1")[0].key)
    outcome = export(zone, exports)
    assert (outcome.state, outcome.rule) == ("rejected", "input_digest")


def test_landed_file_of_another_size_or_name_is_noticed(zone: Zone, exports: ObjectStore) -> None:
    export(zone, exports)
    (first, _) = zone.landed_files("s1")
    data = zone.read(first)
    zone.store.replace(first.key, data + b"\n")
    assert export(zone, exports).state == "rejected"
    zone.store.replace(first.key, data)
    assert export(zone, exports).state == "unchanged"
    zone.store.delete(first.key)
    zone.store.create(first.key.replace("transcript-2026", "transcript-2027"), data)
    assert export(zone, exports).state == "unchanged"  # read again, and found to be the same evidence
    assert read_manifest(exports).files[NAME].sha256


def test_file_of_a_manifest_without_landed_files_is_looked_at_anew(zone: Zone, exports: ObjectStore) -> None:
    export(zone, exports)
    whole = exports.read("manifest.json")
    lines = [line for line in whole.split(b"\n") if b'"landed"' not in line and b'"through_seq"' not in line]
    exports.replace("manifest.json", b"\n".join(lines))
    assert export(zone, exports).state == "unchanged"
    assert exports.read("manifest.json") == whole
