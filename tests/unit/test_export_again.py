"""Exports of sessions that were exported before: what a later export notices, and what it says of an earlier one."""

from pathlib import Path
from typing import Any

import pytest

from schemas.times import format_time
from storage.objects import ObjectStore, open_store
from storage.zone import Zone
from tasks.export.batch import export_sessions
from tasks.export.manifest import read_manifest
from tasks.export.outcome import ExportOptions, ExportOutcome
from tests.claude_sessions import HOUR, START, assemble, land, person, says
from tests.command import Command
from tests.relavium_archive import land as land_relavium
from tests.relavium_archive import put_pair
from tests.relavium_sessions import message, record_value, said

LATER = START + 100 * HOUR
NAME = "s1.relavium.yaml"
Row = dict[str, Any]


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


KEPT = "holds secrets kept on request; it is from before, and stays"


def grow(zone: Zone, *rows: Row, seq: int) -> None:
    land(zone, list(rows), seq=seq, at=START + seq * HOUR)
    assemble(zone)


def test_file_with_secrets_of_a_session_that_grew_is_warned_of_until_it_is_made_again(
    zone: Zone, exports: ObjectStore
) -> None:
    kept = export(zone, exports, keep_secrets=True)
    data = exports.read(NAME)
    assert b"hunter2" in data
    grow(zone, person("and more"), seq=3)
    for _ in range(2):
        outcome = export(zone, exports)
        assert (outcome.state, outcome.reason) == ("unfinished", "its last turn has no final answer")
        assert kept.file is not None
        assert outcome.file == kept.file.model_copy(update={"warnings": (KEPT,)})
        assert (exports.read(NAME), read_manifest(exports).files[NAME]) == (data, outcome.file)
    grow(zone, says("Even more done."), seq=4)
    outcome = export(zone, exports)
    assert outcome.file is not None
    assert (outcome.state, outcome.file.warnings, outcome.file.withheld) == ("written", (), {"assignment": 1})
    assert b"hunter2" not in exports.read(NAME)
    assert read_manifest(exports).files[NAME] == outcome.file


def test_file_with_secrets_of_a_session_that_went_bad_is_warned_of(zone: Zone, exports: ObjectStore) -> None:
    export(zone, exports, keep_secrets=True)
    zone.store.delete(zone.landed_files("s1")[0].key)
    outcome = export(zone, exports)
    assert outcome.file is not None
    assert (outcome.state, outcome.name, outcome.file.warnings) == ("rejected", NAME, (KEPT,))


def test_landed_file_that_no_round_has_yet_is_noticed(zone: Zone, exports: ObjectStore) -> None:
    assert export(zone, exports).state == "written"
    land(zone, [person("even more")], seq=3)
    outcome = export(zone, exports)
    assert outcome.reason == "landed sequence 3 is not assembled yet; run `sessionmill assemble` first"


def test_file_that_is_as_asked_or_gone_is_not_warned_of(zone: Zone, exports: ObjectStore) -> None:
    export(zone, exports, keep_secrets=True)
    grow(zone, person("and more"), seq=3)
    assert export(zone, exports, keep_secrets=True).file is None
    exports.delete(NAME)
    assert export(zone, exports).file is None
    assert read_manifest(exports).files[NAME].warnings == ()


def test_withheld_file_of_a_session_that_grew_is_not_warned_of(zone: Zone, exports: ObjectStore) -> None:
    export(zone, exports)
    grow(zone, person("and more"), seq=3)
    assert (export(zone, exports).file, export(zone, exports, keep_secrets=False).file) == (None, None)


def test_relaviums_own_session_is_warned_of_only_when_secrets_are_to_be_withheld(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    zone, exports = Zone(open_store(tmp_path / "other")), open_store(tmp_path / "exports")
    messages = [message(0, "user", said("PASSWORD=hunter2hunter2")), message(1, "assistant", said("Done."))]
    for updated in (START, LATER):  # the second time it has only just changed
        put_pair(tmp_path / "source", record_value(id="s1", updatedAt=format_time(updated)), messages)
        land_relavium(tmp_path / "source", zone)
        assemble(zone)
        if updated == START:
            assert export(zone, exports).state == "written"
    assert export(zone, exports).file is None
    outcome = export(zone, exports, keep_secrets=False)
    assert outcome.file is not None
    assert outcome.file.warnings == ("holds secrets as recorded; it is from before, and stays",)


def test_warning_of_secrets_is_in_the_commands_answer(
    sessionmill: Command, zone: Zone, exports: ObjectStore, tmp_path: Path
) -> None:
    export(zone, exports, keep_secrets=True)
    grow(zone, person("and more"), seq=3)
    done = sessionmill("export", tmp_path / "zone", "--to", tmp_path / "exports", "--as-of", "2026-09-01T00:00:00Z")
    assert done.code == 0
    assert f"\ns1: its last turn has no final answer\n{NAME}: {KEPT}\n" in done.out
