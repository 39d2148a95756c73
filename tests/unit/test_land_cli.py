"""`sessionmill land`: what it says, and with which exit code."""

import json
from pathlib import Path

import pytest

from tests.command import Command

SESSION = "3758e554-dd3c-4170-89f8-eb139d3f8c97"
NOW = "2026-08-07T10:00:00.123456789Z"
ROW = b'{"type":"user","uuid":"u1","message":{"content":"hello"}}\n'


@pytest.fixture
def projects(tmp_path: Path) -> Path:
    folder = tmp_path / "projects"
    (folder / "p").mkdir(parents=True)
    (folder / "p" / f"{SESSION}.jsonl").write_bytes(ROW)
    return folder


def test_new_sessions_land_once(sessionmill: Command, projects: Path) -> None:
    done = sessionmill("land", projects, "zone", "--now", NOW)
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith(f"1 session, 1 file landed with 1 record from {len(ROW)} bytes, no problems\n")
    assert [path.name for path in Path("zone").rglob("*.sd")] == ["transcript-20260807T100000.123456789Z-000001.sd"]
    again = sessionmill("land", projects, "zone")
    assert again.code == 0
    assert "0 files landed" in again.out
    assert sessionmill("assemble", "zone").code == 0
    assert sessionmill("verify", "zone").code == 0


def test_source_that_is_none_leaves_no_zone_behind(sessionmill: Command, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    done = sessionmill("land", tmp_path / "nothing", "zone")
    assert (done.code, "no sessions of a known kind lie there" in done.err) == (2, True)
    assert not Path("zone").exists()


def test_what_is_wrong_is_named_and_ends_with_exit_code_1(sessionmill: Command, projects: Path) -> None:
    (projects / "p" / f"{SESSION}.jsonl").write_bytes(ROW + b"\x1b[31m\n")
    done = sessionmill("land", projects, "zone")
    assert done.code == 1
    assert f"p/{SESSION}.jsonl line 2: not_understood: the record is not valid JSON" in done.out
    (projects / "p" / f"{SESSION}.jsonl").write_bytes(b"")
    cut = sessionmill("land", projects, "zone")
    assert cut.code == 1
    assert "conflict: truncated: size 0 < offset" in cut.out


def test_what_was_wrong_before_is_still_shown(sessionmill: Command, projects: Path) -> None:
    (projects / "p" / f"{SESSION}.jsonl").write_bytes(ROW + b"no\n")
    assert sessionmill("land", projects, "zone", "--now", NOW).code == 1
    again = sessionmill("land", projects, "zone", "--json")
    assert again.code == 0
    (note,) = again.json["noted"]
    assert note["first_seen"] == NOW
    assert (note["problem"]["row"], note["problem"]["off"]) == (2, len(ROW))
    assert "1 noted in _quarantine/landing/" in sessionmill("land", projects, "zone").out


def test_json_has_the_totals_and_each_session(sessionmill: Command, projects: Path) -> None:
    shown = json.loads(sessionmill("land", projects, "zone", "--json", "--kind", "claude-code").out)
    assert (shown["kind"], shown["files"], shown["records"], shown["problems"]) == ("claude-code/1", 1, 1, 0)
    assert [each["session"] for each in shown["sessions"]] == [SESSION]


def test_source_of_several_machines(sessionmill: Command, projects: Path, tmp_path: Path) -> None:
    machines = tmp_path / "machines"
    (machines / "one/.claude").mkdir(parents=True)
    projects.rename(machines / "one/.claude/projects")
    assert sessionmill("land", machines, "zone").code == 0
    assert len(list(Path("zone").rglob("*.sd"))) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--kind", "codes"], "none of auto, claude-code"),
        (["--now", "yesterday"], "is no time"),
        (["--max-delta-bytes", "0"], "--max-delta-bytes"),
    ],
)
def test_wrong_options(sessionmill: Command, projects: Path, options: list[str], said: str) -> None:
    done = sessionmill("land", projects, "zone", *options)
    assert done.code == 2
    assert said in done.err


def test_places_that_cannot_be_meant(sessionmill: Command, projects: Path, tmp_path: Path) -> None:
    assert "no such folder" in sessionmill("land", tmp_path / "nothing", "zone").err
    assert "the same place" in sessionmill("land", projects, projects).err
    (tmp_path / "empty").mkdir()
    for options in ([], ["--kind", "claude-code"]):
        done = sessionmill("land", tmp_path / "empty", "zone", *options)
        assert done.code == 2
        assert "no sessions of" in done.err


@pytest.mark.parametrize("options", [[], ["--kind", "claude-code"]])
def test_source_whose_sessions_have_all_been_deleted_is_no_wrong_use(
    sessionmill: Command, projects: Path, options: list[str]
) -> None:
    assert sessionmill("land", projects, "zone").code == 0
    (projects / "p" / f"{SESSION}.jsonl").unlink()
    done = sessionmill("land", projects, "zone", *options, "--json")
    assert (done.code, done.json["files"], done.json["kind"]) == (0, 0, "claude-code/1")
    assert "source_gone" in Path(f"zone/{SESSION}/streams/main/transcript.cursor").read_text()
    assert sessionmill("land", projects, "zone", *options).code == 0


@pytest.mark.parametrize(
    ("kind", "place"),
    [("claude-code", "a folder `projects` with"), ("dsh", "DeepSeek Harness' `sessions`"), ("codex", "Codex'")],
)
def test_place_without_sessions_of_the_kind_is_told_what_it_should_hold(
    sessionmill: Command, tmp_path: Path, kind: str, place: str
) -> None:
    (tmp_path / "empty").mkdir()
    done = sessionmill("land", tmp_path / "empty", "zone", "--kind", kind)
    assert done.code == 2
    assert f"empty: no sessions of {kind} lie there; it should be, or hold, {place}" in done.err
    assert done.err.count("empty: ") == 1
    assert "check the place and --kind" in done.err
