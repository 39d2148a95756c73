"""The exports folder: which files stand in it, when one is replaced, and what the manifest says."""

import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from schemas.relavium import read_workflow
from schemas.times import format_time
from storage.objects import ObjectStore, open_store
from storage.zone import Zone
from tasks.export.batch import export_sessions, record_outcomes
from tasks.export.clock import newest_time
from tasks.export.manifest import file_name, read_manifest
from tasks.export.outcome import ExportOptions, ExportOutcome
from tests.claude_sessions import HOUR, START, assemble, calls, land, person, result, says
from tests.landed import damage

LATER = START + 100 * HOUR
KEY = "sk-" + "a1B2c3D4" * 4


@pytest.fixture
def zone(tmp_path: Path) -> Zone:
    (tmp_path / "zone").mkdir()
    return Zone(open_store(tmp_path / "zone"))


@pytest.fixture
def exports(tmp_path: Path) -> ObjectStore:
    return open_store(tmp_path / "exports")


def export(zone: Zone, exports: ObjectStore, *names: str, **options: Any) -> list[ExportOutcome]:
    return export_sessions(zone, exports, names or zone.conversations(), ExportOptions(**{"as_of": LATER} | options))


def states(outcomes: list[ExportOutcome]) -> list[tuple[str, str]]:
    return [(outcome.conversation, outcome.state) for outcome in outcomes]


def standing(exports: ObjectStore) -> dict[str, tuple[bytes, float]]:
    return {stat.key: (exports.read(stat.key), stat.modified) for stat in exports.list("")}


def made_long_ago(folder: Path) -> None:
    for path in folder.iterdir():
        os.utime(path, (1_000_000_000, 1_000_000_000))


def completed(zone: Zone, session: str = "s1", text: str = "go") -> None:
    land(zone, [person(text), calls(("t1", "Bash")), result("t1"), says("Done.")], session=session)
    assemble(zone, session)


def test_completed_session_becomes_a_file_that_the_manifest_explains(zone: Zone, exports: ObjectStore) -> None:
    completed(zone)
    (outcome,) = export(zone, exports)
    data = exports.read("s1.relavium.yaml")
    assert (outcome.state, outcome.name) == ("written", "s1.relavium.yaml")
    (round_file,) = zone.chain("s1").rounds()
    (landed,) = zone.landed_files("s1")
    round_digest = zone.chain("s1").open(round_file, zone.chain("s1").read(round_file)).digest
    assert json.loads(exports.read("manifest.json")) == {
        "schema_version": "exports/1",
        "files": {
            "s1.relavium.yaml": {
                "session": "s1",
                "conversation": "s1",
                "agent": "claude-code",
                "workflow": "exported-session-s1",
                "rounds": [{"round": 1, "digest": round_digest}],
                "through_seq": 1,
                "landed": hashlib.sha256(f"{landed.key}\n{landed.size}\n".encode()).hexdigest(),
                "sha256": hashlib.sha256(data).hexdigest(),
                "bytes": len(data),
                "turns": 1,
                "secrets": "withheld",
                "withheld": {},
                "warnings": [],
                "asked": "exporter=2 agent= secrets=as-usual",
            }
        },
    }
    assert read_workflow(data, name="it").workflow.id == "exported-session-s1"


def test_session_that_is_not_completed_is_listed_and_leaves_no_file(zone: Zone, exports: ObjectStore) -> None:
    completed(zone)
    (outcome,) = export(zone, exports, as_of=START)
    assert (outcome.state, outcome.reason) == ("unfinished", "it has been quiet for 0 seconds of 3600")
    assert standing(exports) == {}


def test_unchanged_file_is_not_touched(zone: Zone, exports: ObjectStore, tmp_path: Path) -> None:
    completed(zone)
    export(zone, exports)
    made_long_ago(tmp_path / "exports")
    before = standing(exports)
    assert states(export(zone, exports)) == [("s1", "unchanged")]
    (tmp_path / "exports/manifest.json").unlink()
    assert states(export(zone, exports)) == [("s1", "unchanged")]
    after = standing(exports)
    assert after["s1.relavium.yaml"] == before["s1.relavium.yaml"]
    assert after["manifest.json"][0] == before["manifest.json"][0]


def test_session_that_grows_keeps_its_file_until_it_is_completed_again(zone: Zone, exports: ObjectStore) -> None:
    completed(zone)
    export(zone, exports)
    first = standing(exports)
    land(zone, [person("more"), calls(("t2", "Edit"))], seq=2, at=START + HOUR)
    (outcome,) = export(zone, exports)
    assert outcome.reason == "landed sequence 2 is not assembled yet; run `sessionmill assemble` first"
    assemble(zone)
    (outcome,) = export(zone, exports)
    assert outcome.reason == "its last turn has 1 tool use without a result"
    assert standing(exports) == first
    land(zone, [result("t2"), says("More done.")], seq=3, at=START + 2 * HOUR)
    assemble(zone)
    (outcome,) = export(zone, exports)
    assert outcome.file is not None
    assert (outcome.state, outcome.file.turns) == ("written", 2)
    assert [each.round for each in outcome.file.rounds] == [1, 2, 3]
    assert read_manifest(exports).files == {"s1.relavium.yaml": outcome.file}
    assert exports.read("s1.relavium.yaml") != first["s1.relavium.yaml"][0]


def test_file_that_somebody_changed_or_removed_comes_back(zone: Zone, exports: ObjectStore) -> None:
    completed(zone)
    export(zone, exports)
    data = exports.read("s1.relavium.yaml")
    exports.replace("s1.relavium.yaml", b"changed")
    assert states(export(zone, exports)) == [("s1", "written")]
    exports.delete("s1.relavium.yaml")
    assert states(export(zone, exports)) == [("s1", "written")]
    assert exports.read("s1.relavium.yaml") == data


def test_manifest_that_cannot_be_read_is_made_again(zone: Zone, exports: ObjectStore) -> None:
    completed(zone)
    export(zone, exports)
    good = exports.read("manifest.json")
    for bad in (b"", b"{", b"[]", b'{"files":{"x":1}}'):
        exports.replace("manifest.json", bad)
        export(zone, exports)
        assert exports.read("manifest.json") == good


def test_same_zone_gives_the_same_bytes_in_any_order_and_place(zone: Zone, tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        completed(zone, name, f"go {name}")
    together, apart = open_store(tmp_path / "together"), open_store(tmp_path / "apart")
    export(zone, together)
    for name in ("c", "a", "b"):
        export(zone, apart, name)
    assert {key: data for key, (data, _) in standing(together).items()} == {
        key: data for key, (data, _) in standing(apart).items()
    }


def test_older_export_that_ends_last_does_not_displace_a_newer_entry(zone: Zone, exports: ObjectStore) -> None:
    completed(zone)
    older = export(zone, exports)
    older_file = exports.read("s1.relavium.yaml")
    land(zone, [person("more"), says("More done.")], seq=2)
    assemble(zone)
    newer = export(zone, exports)
    newer_file = exports.read("s1.relavium.yaml")
    exports.replace("s1.relavium.yaml", older_file)
    record_outcomes(exports, older)
    assert read_manifest(exports).files["s1.relavium.yaml"] == newer[0].file
    # The file that it put back is not the manifest's, and the next export sees that.
    assert states(export(zone, exports)) == [("s1", "written")]
    assert exports.read("s1.relavium.yaml") == newer_file


def test_exporters_that_run_at_once_leave_whole_files_and_the_next_one_a_whole_manifest(
    zone: Zone, exports: ObjectStore
) -> None:
    names = [f"s{number}" for number in range(12)]
    for name in names:
        completed(zone, name, f"go {name}")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda order: export(zone, exports, *order), [names, names[::-1], names[6:], names[:6]]))
    assert {outcome.state for outcomes in found for outcome in outcomes} <= {"written", "unchanged"}
    for name in names:
        read_workflow(exports.read(f"{name}.relavium.yaml"), name=name)
    export(zone, exports)
    files = read_manifest(exports).files
    assert sorted(files) == sorted(f"{name}.relavium.yaml" for name in names)
    assert all(hashlib.sha256(exports.read(name)).hexdigest() == file.sha256 for name, file in files.items())


def test_secrets_are_withheld_and_counted_unless_asked(zone: Zone, exports: ObjectStore) -> None:
    land(zone, [person(f"use {KEY} for it"), says(f"I used {KEY}; PASSWORD=hunter2hunter2")])
    assemble(zone)
    (outcome,) = export(zone, exports)
    assert outcome.file is not None
    assert outcome.file.withheld == {"assignment": 1, "key": 2}
    data = exports.read("s1.relavium.yaml")
    assert (KEY.encode() in data, b"hunter2" in data, b"use [withheld] for it" in data) == (False, False, True)
    (kept,) = export(zone, exports, keep_secrets=True)
    assert kept.file is not None
    assert (kept.state, kept.file.secrets, kept.file.withheld) == ("written", "kept", {})
    assert KEY.encode() in exports.read("s1.relavium.yaml")


def test_configured_agent_takes_the_sources_place(zone: Zone, exports: ObjectStore) -> None:
    completed(zone)
    export(zone, exports)
    (outcome,) = export(zone, exports, agent_slug="kite-helper")
    assert outcome.file is not None
    assert (outcome.state, outcome.file.agent) == ("written", "kite-helper")


@pytest.mark.parametrize("session", ["a b", "..x", "%2F", "x: &y", "ü" * 60, "n" * 240, "-rf", "'\"$(id)"])
def test_hostile_id_names_one_file_in_the_folder(zone: Zone, exports: ObjectStore, session: str) -> None:
    completed(zone, session)
    (outcome,) = export(zone, exports)
    assert outcome.state == "written"
    names = {stat.key for stat in exports.list("")}
    assert names == {outcome.name, "manifest.json"}
    assert "/" not in outcome.name
    assert len(outcome.name.encode()) <= 255
    text = exports.read(outcome.name)
    assert read_workflow(text, name="it").workflow.metadata is not None
    assert states(export(zone, exports)) == [(session, "unchanged")]


def test_ids_of_different_conversations_never_share_a_file() -> None:
    long = "ü" * 100
    ids = [long, long + "x", long[:-1] + "u", "a", "A", "%", "", "a/b", "a%2Fb", ".", "..", "_a", "manifest.json"]
    names = [file_name(each) for each in ids]
    assert len(set(names)) == len(ids)
    assert "manifest.json" not in names


def test_bad_session_is_rejected_and_the_others_are_exported(zone: Zone, exports: ObjectStore) -> None:
    for name in ("a", "b", "c"):
        completed(zone, name)
    damage(zone.store, "b")
    outcomes = export(zone, exports)
    assert states(outcomes) == [("a", "written"), ("b", "rejected"), ("c", "written")]
    assert outcomes[1].rule == "digest"
    assert sorted(read_manifest(exports).files) == ["a.relavium.yaml", "c.relavium.yaml"]


def test_evidence_that_is_not_what_the_rounds_were_made_from_is_not_exported(zone: Zone, exports: ObjectStore) -> None:
    completed(zone)
    key = zone.landed_files("s1")[0].key
    zone.store.delete(key)
    land(zone, [person("something else"), says("Done.")])
    (outcome,) = export(zone, exports)
    assert (outcome.state, outcome.rule) == ("rejected", "input_digest")
    assert standing(exports) == {}


def test_session_that_is_not_assembled_says_so(zone: Zone, exports: ObjectStore) -> None:
    land(zone, [person("go"), says("Done.")])
    (outcome,) = export(zone, exports, "s1")
    assert (outcome.state, outcome.reason) == ("unfinished", "it has no rounds; run `sessionmill assemble` first")


def test_session_with_landed_records_that_no_round_has_is_not_completed(zone: Zone, exports: ObjectStore) -> None:
    completed(zone)
    land(zone, [person("more")], seq=2)
    (outcome,) = export(zone, exports)
    assert outcome.reason == "landed sequence 2 is not assembled yet; run `sessionmill assemble` first"


def test_long_session_is_exported_with_a_warning(zone: Zone, exports: ObjectStore) -> None:
    rows = [row for n in range(499) for row in (person(f"question {n}"), says(f"answer {n}"))]
    land(zone, rows)
    assemble(zone)
    (outcome,) = export(zone, exports)
    assert outcome.file is not None
    assert outcome.file.warnings == ("499 turns: the workflow engine runs at most 498",)


def test_zones_clock_is_its_newest_record(zone: Zone) -> None:
    assert newest_time(zone) == 0
    land(zone, [person("go"), says("Done.")], session="a")
    land(zone, [person("go", time=format_time(LATER)), says("Done.")], session="b")
    for name in ("a", "b"):
        assemble(zone, name)
    assert newest_time(zone) == LATER


def test_round_that_cannot_be_read_does_not_stop_the_clock(zone: Zone) -> None:
    completed(zone, "a")
    zone.store.replace("_conversations/b/rounds/r000001-000000000000.sf", b"\xff not a round")
    assert newest_time(zone) == START + 4_000_000_000
