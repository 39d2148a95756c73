"""Export to a real S3 store, and as a Prefect flow with the temporary API."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from schemas.relavium import read_workflow
from storage.objects import ObjectStore, open_store
from storage.zone import Zone
from tasks.export.batch import export_sessions
from tasks.export.manifest import read_manifest
from tasks.export.outcome import ExportOptions
from tests.claude_sessions import HOUR, START, assemble, calls, land, person, result, says
from tests.demo_zone import first_files, later_files
from tests.landed import damage
from tests.landed import land as land_files
from tests.s3_server import S3Server

OPTIONS = ExportOptions(as_of=START + 100 * HOUR)


def completed(store: ObjectStore, *sessions: str) -> Zone:
    zone = Zone(store)
    for name in sessions:
        land(zone, [person(f"go {name}"), calls(("t1", "Bash")), result("t1"), says("Done.")], session=name)
        assemble(zone, name)
    return zone


def contents(store: ObjectStore) -> dict[str, bytes]:
    return {stat.key: store.read(stat.key) for stat in store.list("")}


def sessionmill(*arguments: str | Path, home: Path) -> tuple[int, Any]:
    """Exit code and JSON answer of a command in a process of its own, with a Prefect of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "flows", *map(str, arguments), "--json"],
        capture_output=True,
        text=True,
        env={**{k: v for k, v in os.environ.items() if k != "PREFECT_API_URL"}, "PREFECT_HOME": str(home)},
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_exports_in_s3_are_those_in_a_folder(s3: S3Server, tmp_path: Path) -> None:
    (tmp_path / "zone").mkdir()
    names = ("a b", "ü", "..x")
    near = completed(open_store(tmp_path / "zone"), *names)
    far = completed(open_store("s3://zone/exported-zone"), *names)
    folder, bucket = open_store(tmp_path / "exports"), open_store("s3://zone/exports")
    for zone, exports in ((near, folder), (far, bucket)):
        outcomes = export_sessions(zone, exports, zone.conversations(), OPTIONS)
        assert {outcome.state for outcome in outcomes} == {"written"}
    assert contents(bucket) == contents(folder)


def test_unchanged_file_in_s3_is_not_written_again(s3: S3Server) -> None:
    zone = completed(open_store("s3://zone/twice-zone"), "s1")
    exports = open_store("s3://zone/twice")
    export_sessions(zone, exports, ["s1"], OPTIONS)
    before = {stat.key: (stat.modified, stat.etag) for stat in exports.list("")}
    (outcome,) = export_sessions(zone, exports, ["s1"], OPTIONS)
    assert outcome.state == "unchanged"
    assert {stat.key: (stat.modified, stat.etag) for stat in exports.list("")} == before


@pytest.mark.parametrize("workers", [1, 3])
def test_flow_exports_what_the_command_exports(tmp_path: Path, workers: int) -> None:
    (tmp_path / "zone").mkdir()
    zone = completed(open_store(tmp_path / "zone"), "a", "b", "c")
    land(zone, [person("go")], session="d")
    assemble(zone, "d")
    direct = open_store(tmp_path / "direct")
    export_sessions(zone, direct, zone.conversations(), OPTIONS)
    code, summary = sessionmill(
        *("run", "export", "-p", f"zone={tmp_path / 'zone'}", "-p", f"to={tmp_path / 'flow'}"),
        *("-p", "as_of=2026-09-01T00:00:00Z", "-p", f"workers={workers}", "-p", "shard_bytes=1"),
        home=tmp_path / "prefect",
    )
    assert code == 0
    assert (summary["written"], summary["unfinished"], summary["as_of"]) == (3, 1, "2026-09-01T00:00:00Z")
    assert contents(open_store(tmp_path / "flow")) == contents(direct)


def test_ingest_exports_what_is_completed_and_leaves_out_what_is_bad(tmp_path: Path) -> None:
    (tmp_path / "zone").mkdir()
    store = open_store(tmp_path / "zone")
    land_files(store, first_files() + later_files())
    damage(store, "bicycle-repair")
    code, summary = sessionmill(
        *("run", "ingest", "-p", f"zone={tmp_path / 'zone'}", "-p", f"export_to={tmp_path / 'exports'}"),
        home=tmp_path / "prefect",
    )
    assert code == 1
    assert summary["quarantined"] == 1
    assert [each["conversation"] for each in summary["exports"]["sessions"]] == ["bakery-orders", "kite-festival"]
    exports = open_store(tmp_path / "exports")
    for name, file in read_manifest(exports).files.items():
        assert file.turns > 0
        read_workflow(exports.read(name), name=name)
