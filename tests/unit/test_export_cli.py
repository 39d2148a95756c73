"""The commands scaffold, export and check: what each answers, and with which exit code."""

import json
import re
from pathlib import Path

import pytest

from storage.chains import CONVERSATIONS
from storage.landings import CALLS, LANDING
from storage.objects import open_store
from storage.zone import QUARANTINE, RESERVED, Zone
from tests.claude_sessions import assemble, land, person, says
from tests.command import Command
from tests.golden import GOLDEN
from tests.landed import damage

CASE = GOLDEN / "relavium" / "035-yaml-hostile-scalars"
BAD = GOLDEN / "relavium-invalid" / "002-tool-call-raw-args"
LATER = "2026-09-01T00:00:00Z"


@pytest.fixture
def zone(tmp_path: Path) -> Path:
    """Three sessions: one completed, one still asking, and one without rounds."""
    (tmp_path / "zone").mkdir()
    zone = Zone(open_store(tmp_path / "zone"))
    land(zone, [person("go"), says("Done.")], session="done")
    land(zone, [person("go")], session="asked")
    land(zone, [person("go"), says("Done.")], session="landed")
    for name in ("done", "asked"):
        assemble(zone, name)
    return tmp_path / "zone"


def test_scaffold_writes_the_originals_bytes_to_a_file(sessionmill: Command, tmp_path: Path) -> None:
    done = sessionmill("scaffold", CASE / "record.json", CASE / "messages.json", "-o", tmp_path / "one.relavium.yaml")
    assert (done.code, done.out) == (0, "")
    assert (tmp_path / "one.relavium.yaml").read_bytes() == (CASE / "expected.relavium.yaml").read_bytes()


def test_scaffold_writes_the_originals_bytes_to_standard_output(sessionmill: Command) -> None:
    done = sessionmill("scaffold", CASE / "record.json", CASE / "messages.json")
    assert (done.code, done.out.encode()) == (0, (CASE / "expected.relavium.yaml").read_bytes())


def test_scaffold_of_an_invalid_session_says_nothing_on_standard_output(sessionmill: Command, tmp_path: Path) -> None:
    done = sessionmill("scaffold", BAD / "record.json", BAD / "messages.json", "-o", tmp_path / "one.relavium.yaml")
    assert (done.code, done.out) == (1, "")
    assert "row 2: unrecognized_keys: content.1.args" in done.err
    assert not (tmp_path / "one.relavium.yaml").exists()
    assert sessionmill("scaffold", BAD / "record.json", BAD / "messages.json").out == ""


def test_scaffold_as_json_names_the_workflow(sessionmill: Command) -> None:
    found = sessionmill("scaffold", CASE / "record.json", CASE / "messages.json", "--json").json
    assert found["text"].encode() == (CASE / "expected.relavium.yaml").read_bytes()
    assert set(found) == {"session", "workflow", "turns", "warnings", "text"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("scaffold", "no.json", "no.json"),
        ("scaffold", CASE / "record.json", CASE / "messages.json", "-o", "no/such/folder/x"),
        ("export", "no-zone", "--to", "out"),
        ("export", ".", "--to", "out", "--session", "nobody"),
        ("export", ".", "--to", "out", "--as-of", "yesterday"),
        ("export", ".", "--to", "out", "--completed-after", "soon"),
        ("export", ".", "--to", CASE / "record.json"),
        ("export", ".", "--to", "ftp://x"),
        ("export", "."),
        ("run", "export", "-p", "zone=."),
        ("run", "export", "-p", "zone=.", "-p", "to=out", "-p", "as_of=yesterday"),
        ("run", "export", "-p", "zone=.", "-p", "to=out", "-p", "agent_slug=No Kebab"),
        ("run", "export", "-p", "zone=no-zone", "-p", "to=out"),
    ],
)
def test_wrong_use_is_told_from_bad_data(sessionmill: Command, arguments: tuple[str | Path, ...]) -> None:
    done = sessionmill(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err


def test_export_lists_every_session_with_what_came_of_it(sessionmill: Command, zone: Path) -> None:
    done = sessionmill("export", zone, "--to", "out", "--as-of", LATER)
    assert done.code == 0
    assert re.search(r"^done +1 +0 +written +done.relavium.yaml$", done.out, re.MULTILINE)
    assert "\nasked: its last turn has no final answer\n" in done.out
    assert "\nlanded: it has no rounds; run `sessionmill assemble` first\n" in done.out
    assert done.out.endswith("3 sessions, 1 written, 0 unchanged, 2 unfinished\n")
    assert sorted(path.name for path in Path("out").iterdir()) == ["done.relavium.yaml", "manifest.json"]


def test_one_word_says_that_a_session_is_unfinished(sessionmill: Command, zone: Path) -> None:
    shown = sessionmill("export", zone, "--to", "out", "--as-of", LATER)
    assert re.search(r"^asked +0 +0 +unfinished", shown.out, re.MULTILINE)
    found = sessionmill("export", zone, "--to", "out", "--as-of", LATER, "--json").json
    assert found["sessions"][0]["state"] == "unfinished"


def test_secrets_are_kept_or_withheld_and_not_both(sessionmill: Command, zone: Path) -> None:
    done = sessionmill("export", zone, "--to", "out", "--keep-secrets", "--withhold-secrets")
    assert (done.code, done.out) == (2, "")
    assert "--keep-secrets and --withhold-secrets: give one of them" in done.err
    assert not Path("out").exists()
    for option, kept in (("--keep-secrets", "kept"), ("--withhold-secrets", "withheld")):
        found = sessionmill("export", zone, "--to", "out", "--as-of", LATER, option, "--json").json
        assert found["sessions"][1]["file"]["secrets"] == kept


@pytest.mark.parametrize(
    ("option", "value"),
    [("--as-of", "yesterday"), ("--completed-after", "soon")],
)
def test_what_is_wrong_with_an_option_is_said_under_its_name(
    sessionmill: Command, zone: Path, option: str, value: str
) -> None:
    done = sessionmill("export", zone, "--to", "out", option, value)
    assert done.err.startswith(f"sessionmill: {option}: '{value}' is no ")


def test_rejected_session_names_its_rule_once(sessionmill: Command, zone: Path) -> None:
    damage(open_store(zone), "done")
    done = sessionmill("export", zone, "--to", "out", "--as-of", LATER)
    assert done.code == 1
    (line,) = (line for line in done.out.splitlines() if line.startswith("done: "))
    rule = sessionmill("export", zone, "--to", "out", "--as-of", LATER, "--json").json["sessions"][1]["rule"]
    assert line.count(f"{rule}: ") == 1


def test_manifest_that_cannot_be_read_is_made_again_and_said(sessionmill: Command, zone: Path) -> None:
    said = "manifest.json cannot be read, and is made again: it lists only what is exported from now on"
    sessionmill("export", zone, "--to", "out", "--as-of", LATER)
    whole = Path("out/manifest.json").read_bytes()
    Path("out/manifest.json").write_bytes(whole[:-20])
    assert f"\n{said}\n" in sessionmill("export", zone, "--to", "out", "--as-of", LATER).out
    assert Path("out/manifest.json").read_bytes() == whole
    Path("out/manifest.json").write_bytes(b"[]")
    found = sessionmill("export", zone, "--to", "out", "--as-of", LATER, "--json").json
    assert found["warnings"] == [said]
    assert sessionmill("export", zone, "--to", "out", "--as-of", LATER, "--json").json["warnings"] == []


def test_exports_among_the_zones_sessions_are_wrong_use(sessionmill: Command, zone: Path) -> None:
    done = sessionmill("export", zone, "--to", zone / "exports", "--as-of", LATER)
    assert (done.code, "lies in the zone, among its sessions" in done.err) == (2, True)
    assert not (zone / "exports").exists()
    before = sorted(zone.rglob("*"))
    done = sessionmill("export", zone, "--to", zone, "--as-of", LATER)
    assert (done.code, "is the zone itself" in done.err) == (2, True)
    assert sorted(zone.rglob("*")) == before
    assert sessionmill("export", zone, "--to", zone / "_exports", "--as-of", LATER).code == 0


@pytest.mark.parametrize("folder", sorted(RESERVED))
@pytest.mark.parametrize("below", ["", "done", "a/b"])
def test_exports_in_the_zones_own_folders_are_wrong_use(
    sessionmill: Command, zone: Path, folder: str, below: str
) -> None:
    before = sorted(zone.rglob("*"))
    for name in (folder, folder.title()):
        done = sessionmill("export", zone, "--to", zone / name / below, "--as-of", LATER)
        assert (done.code, done.out, "lies in the zone's own" in done.err) == (2, "", True)
    assert sorted(zone.rglob("*")) == before


def test_link_to_a_folder_of_the_zones_own_is_seen_through(sessionmill: Command, zone: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(zone / "_conversations")
    assert sessionmill("export", zone, "--to", tmp_path / "link", "--as-of", LATER).code == 2


def test_every_folder_that_is_kept_in_a_zone_is_reserved() -> None:
    assert {each.rstrip("/") for each in (CALLS, CONVERSATIONS, LANDING, QUARANTINE)} == RESERVED


def test_export_as_json_says_what_quiet_was_measured_to(sessionmill: Command, zone: Path) -> None:
    found = sessionmill("export", zone, "--to", "out", "--completed-after", "0", "--json").json
    assert found["as_of"] == "2026-08-06T07:06:42Z"
    assert (found["written"], found["unchanged"], found["unfinished"], found["rejected"]) == (1, 0, 2, 0)
    assert {each["conversation"]: each["state"] for each in found["sessions"]} == {
        "asked": "unfinished",
        "done": "written",
        "landed": "unfinished",
    }


def test_export_does_not_look_at_the_wall_clock_unless_asked(sessionmill: Command, zone: Path) -> None:
    assert sessionmill("export", zone, "--to", "out", "--json").json["written"] == 0
    assert sessionmill("export", zone, "--to", "out", "--as-of", "now", "--json").json["written"] == 1


def test_export_of_one_session_leaves_the_others_alone(sessionmill: Command, zone: Path) -> None:
    found = sessionmill("export", zone, "--to", "out", "--session", "done", "--as-of", LATER, "--json").json
    assert [each["conversation"] for each in found["sessions"]] == ["done"]


def test_export_names_a_bad_session_and_ends_with_exit_code_1(sessionmill: Command, zone: Path) -> None:
    damage(open_store(zone), "asked")
    done = sessionmill("export", zone, "--to", "out", "--as-of", LATER)
    assert done.code == 1
    assert re.search(r"^asked: asked/streams/main/\S+\.sd: digest: ", done.out, re.MULTILINE)
    assert Path("out/done.relavium.yaml").exists()


def test_export_keeps_secrets_only_when_asked(sessionmill: Command, tmp_path: Path) -> None:
    (tmp_path / "zone").mkdir()
    zone = Zone(open_store(tmp_path / "zone"))
    land(zone, [person("PASSWORD=hunter2hunter2"), says("Done.")])
    assemble(zone)
    command = ("export", tmp_path / "zone", "--to", "out", "--as-of", LATER, "--json")
    (withheld,) = sessionmill(*command).json["sessions"]
    assert withheld["file"]["withheld"] == {"assignment": 1}
    assert "hunter2" not in Path("out/s1.relavium.yaml").read_text()
    (kept,) = sessionmill(*command, "--keep-secrets").json["sessions"]
    assert kept["file"]["withheld"] == {}
    assert "hunter2" in Path("out/s1.relavium.yaml").read_text()


def test_export_uses_the_configured_agent_and_quiet(sessionmill: Command, zone: Path) -> None:
    Path("sessionmill.yaml").write_text("agent_slug: kite-helper\ncompleted_after: 0s\n")
    sessionmill("export", zone, "--to", "out")
    assert "agent_ref: kite-helper\n" in Path("out/done.relavium.yaml").read_text()


@pytest.mark.parametrize("setting", ["agent_slug: No Kebab", "completed_after: soon"])
def test_setting_of_export_that_cannot_be_meant_is_refused(sessionmill: Command, zone: Path, setting: str) -> None:
    Path("sessionmill.yaml").write_text(setting)
    done = sessionmill("export", zone, "--to", "out")
    assert (done.code, done.out) == (2, "")
    assert setting.partition(":")[0] in done.err


def test_check_accepts_an_exported_file_that_serialises_to_itself(sessionmill: Command, zone: Path) -> None:
    sessionmill("export", zone, "--to", "out", "--as-of", LATER)
    done = sessionmill("check", "out/done.relavium.yaml")
    assert done.code == 0
    assert done.out == (
        "out/done.relavium.yaml: accept: workflow exported-session-done: 3 nodes, 2 edges; "
        "serialises to the same bytes\n"
    )


def test_check_says_that_a_file_written_by_hand_serialises_otherwise(sessionmill: Command, zone: Path) -> None:
    sessionmill("export", zone, "--to", "out", "--as-of", LATER)
    path = Path("out/done.relavium.yaml")
    path.write_text(path.read_text() + "# reviewed\n")
    done = sessionmill("check", path)
    assert (done.code, "serialises to other bytes" in done.out) == (0, True)


def test_check_rejects_a_workflow_by_its_field(sessionmill: Command) -> None:
    Path("bad.relavium.yaml").write_text(json.dumps({"schema_version": "1.0", "workflow": {"id": "x"}}))
    done = sessionmill("check", "bad.relavium.yaml", "--json")
    assert done.code == 1
    assert (done.json["files"][0]["accepted"], "workflow.nodes" in done.json["files"][0]["detail"]) == (False, True)
