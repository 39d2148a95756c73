"""The command line: what each command answers, and with which exit code. No command of this file needs Prefect."""

import logging
import re
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from flows.demo import command_again
from storage.objects import open_store
from tests.command import Command
from tests.demo_zone import first_files, later_files

NOW = "2026-08-07T10:00:00.123456789Z"


@pytest.fixture
def zone(tmp_path: Path) -> Path:
    """The demo's archive, all of it landed."""
    land(tmp_path / "zone", first_files() + later_files())
    return tmp_path / "zone"


def land(root: Path, files: list[tuple[str, bytes]]) -> None:
    root.mkdir(exist_ok=True)
    store = open_store(root)
    for key, data in files:
        store.create(key, data)


def damage(zone: Path, session: str) -> Path:
    """Change one byte of the session's first landed file."""
    path = min(zone.joinpath(session).rglob("*.sd"), key=lambda path: path.name[-9:])
    data = path.read_bytes().replace(b"external", b"internal", 1)
    path.chmod(0o644)
    path.write_bytes(data)
    return path


def rounds(zone: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in zone.glob("_conversations/*/rounds/*.sf")}


def test_assemble_writes_a_round_for_each_session_and_then_no_more(sessionmill: Command, zone: Path) -> None:
    first = sessionmill("assemble", zone, "--now", NOW, "--json")
    assert first.code == 0
    assert [(s["session"], s["rounds_written"], s["round"]) for s in first.json["sessions"]] == [
        ("bakery-orders", 1, 1),
        ("bicycle-repair", 1, 1),
        ("kite-festival", 1, 1),
    ]
    published = rounds(zone)
    again = sessionmill("assemble", zone, "--json")
    assert [s["rounds_written"] for s in again.json["sessions"]] == [0, 0, 0]
    assert rounds(zone) == published


def test_assemble_shows_the_clock_to_the_nanosecond_in_the_state_alone(sessionmill: Command, zone: Path) -> None:
    sessionmill("assemble", zone, "--now", NOW)
    state = (zone / "_conversations/kite-festival/conversation.state").read_text()
    assert f"updated_at   {NOW}\n" in state
    assert not any(NOW.encode() in data for data in rounds(zone).values())


def test_assemble_of_one_session_leaves_the_others_alone(sessionmill: Command, zone: Path) -> None:
    done = sessionmill("assemble", zone, "--session", "kite-festival")
    assert done.code == 0
    assert re.search(r"^kite-festival +1 +1 +2 ", done.out, re.MULTILINE)
    assert [path.name for path in zone.glob("_conversations/*")] == ["kite-festival"]


def test_small_round_budget_makes_more_rounds(sessionmill: Command, zone: Path) -> None:
    done = sessionmill("assemble", zone, "--session", "bakery-orders", "--max-round-bytes", "1", "--json")
    assert done.json["sessions"][0]["rounds_written"] == 4


def test_damaged_session_is_named_and_the_others_are_assembled(sessionmill: Command, zone: Path) -> None:
    path = damage(zone, "bicycle-repair")
    done = sessionmill("assemble", zone, "--json")
    assert done.code == 1
    assert [s["session"] for s in done.json["sessions"]] == ["bakery-orders", "kite-festival"]
    (rejected,) = done.json["rejected"]
    assert (rejected["session"], rejected["error"], rejected["rule"]) == (
        "bicycle-repair",
        "SessionDataRejected",
        "digest",
    )
    assert path.name in done.err


def test_verify_counts_what_it_checked(sessionmill: Command, zone: Path) -> None:
    sessionmill("assemble", zone)
    done = sessionmill("verify", zone)
    assert done.code == 0
    assert "checked 3 sessions, 4 streams, " in done.out
    assert ", 3 rounds\n" in done.out
    assert done.out.endswith("all landed data is contiguous and matches its digests\n")


def test_verify_names_file_and_rule_of_what_is_wrong(sessionmill: Command, zone: Path) -> None:
    sessionmill("assemble", zone)
    path = damage(zone, "kite-festival")
    text = sessionmill("verify", zone)
    assert text.code == 1
    assert path.name in text.out
    found = sessionmill("verify", zone, "--session", "kite-festival", "--json")
    assert found.code == 1
    assert found.json["problems"] == len(found.json["sessions"][0]["problems"]) > 0
    assert any(problem["rule"] == "digest" for problem in found.json["sessions"][0]["problems"])


def test_fold_prints_the_tree(sessionmill: Command, zone: Path) -> None:
    sessionmill("assemble", zone)
    done = sessionmill("fold", zone, "kite-festival")
    assert done.code == 0
    assert "rounds        1, head " in done.out
    assert "through sequence 2\n" in done.out
    tree = done.out[done.out.index("\ntree\n") :]
    assert re.findall(r"\S+", tree)[1:7] == [
        "session/kite-festival",
        "session",
        "stream/main",
        "stream",
        "epoch/main/0",
        "epoch",
    ]


def test_fold_as_json_holds_whole_frames(sessionmill: Command, zone: Path) -> None:
    sessionmill("assemble", zone)
    folded = sessionmill("fold", zone, "bicycle-repair", "--json").json
    assert (folded["conversation"], folded["round"], folded["through_seq"]) == ("bicycle-repair", 1, 2)
    assert folded["nodes"]["tool/t2"]["attrs"]["result"] == "unavailable"
    assert [entry["kind"] for entry in folded["unresolved"].values()] == ["tool_result"]


def test_check_accepts_and_rejects_by_the_bytes_alone(sessionmill: Command, zone: Path) -> None:
    sessionmill("assemble", zone)
    (good,) = zone.glob("_conversations/bakery-orders/rounds/*.sf")
    bad = damage(zone, "bakery-orders")
    done = sessionmill("check", good, bad, "--json")
    assert done.code == 1
    accepted, rejected = done.json["files"]
    assert accepted["accepted"] is True
    assert accepted["detail"].startswith(good.name[8:20])
    assert (rejected["accepted"], rejected["rule"]) == (False, "digest")
    assert sessionmill("check", good).code == 0
    assert ": reject: digest: " in sessionmill("check", bad).out


def test_check_of_a_file_that_is_not_there_still_judges_the_others(sessionmill: Command, zone: Path) -> None:
    good, bad = min(zone.rglob("*.sd")), damage(zone, "kite-festival")
    done = sessionmill("check", "missing.sd", bad, good, "README.md")
    assert done.code == 2
    assert [line.rpartition("/")[2].partition(":")[2][:8] for line in done.out.splitlines()] == [" reject:", " accept:"]
    assert done.err.count("sessionmill: ") == 2
    found = sessionmill("check", good, "missing.sd", "--json")
    assert (found.code, len(found.json["files"])) == (2, 1)
    assert [(each["file"], each["error"]) for each in found.json["unread"]] == [("missing.sd", "WrongUse")]


def test_check_reads_what_a_url_names(sessionmill: Command, zone: Path) -> None:
    path = min(zone.rglob("*.sd"))
    done = sessionmill("check", f"file://{path}")
    assert (done.code, done.out) == (0, f"file://{path}: accept: {re.findall('[0-9]+ records?', done.out)[0]}\n")


def test_numbers_agree_with_their_nouns(sessionmill: Command, zone: Path) -> None:
    sessionmill("assemble", zone, "--session", "kite-festival")
    assert (
        "checked 1 session, 1 stream, 4 records, 1 round\n"
        in sessionmill("verify", zone, "--session", "kite-festival").out
    )
    assert " 1 relation, " in sessionmill("fold", zone, "kite-festival").out


@pytest.mark.parametrize("command", [("assemble",), ("verify",), ("export", "--to", "out"), ("usage", "--to", "out")])
def test_archive_of_agents_runs_is_no_session_and_the_folder_above_it_no_zone(
    sessionmill: Command, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "above/archive/runs/nightly/20260101T000000Z-1").mkdir(parents=True)
    (tmp_path / "above/archive/runs/nightly/20260101T000000Z-1/started.json").write_text("{}")
    name, *options = command
    done = sessionmill(name, tmp_path / "above", *options)
    assert (done.code, "its folders hold no landed files" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["assemble"], "Missing argument"),
        (["assemble", "ZONE", "--no-such-option"], "No such option"),
        (["no-such-command"], "No such command"),
        (["assemble", "nowhere"], "nowhere"),
        (["assemble", "ftp://host/zone"], "no store for ftp://"),
        (["assemble", "ZONE", "--session", "nobody"], "no session nobody"),
        (["assemble", "ZONE", "--now", "yesterday"], "'yesterday' is no time"),
        (["assemble", "ZONE", "--max-round-bytes", "many"], "Invalid value"),
        (["verify", "ZONE", "--session", "../zone"], "no session ../zone"),
        (["fold", "ZONE", "nobody"], "no rounds for conversation nobody"),
        (["fold", "ZONE", "../../etc"], "no rounds for conversation ../../etc"),
        (["check", "missing.sf"], "missing.sf: no such file"),
        (["check", "ZONE"], "only files ending in"),
        (["verify", "ZONE/kite-festival/FILE"], "it is a file, not a folder"),
        (["verify", ""], "ZONE is empty"),
        (["check", "file:///nowhere/at/all.sf"], "file:///nowhere/at/all.sf: no such object"),
        (["assemble", "EMPTY"], "no sessions in "),
        (["assemble", "ABOVE"], "its folders hold no landed files"),
        (["verify", "ABOVE"], "its folders hold no landed files"),
        (["export", "ABOVE", "--to", "ABOVE/_exports"], "its folders hold no landed files"),
        (["run", "verify", "-p", "zone=ABOVE"], "its folders hold no landed files"),
        (["run", "ingest", "-p", "zone=ABOVE"], "its folders hold no landed files"),
        (["verify", "EMPTY"], "no sessions in "),
        (["export", "EMPTY", "--to", "exports"], "no sessions in "),
        (["usage", "EMPTY", "--to", "usage"], "no sessions in "),
        (["run", "usage", "-p", "zone=EMPTY", "-p", "to=usage"], "no sessions in "),
        (["run", "verify", "-p", "zone=EMPTY"], "no sessions in "),
        (["run", "verify", "-p", "zone=ZONE", "-p", "to=x"], "there are: zone, sessions, shard_bytes, workers)"),
        (["run", "ingest", "-p", "zone=EMPTY"], "no sessions in "),
        (["run", "ingest", "-p", "zone=ZONE", "-p", "sessions=x*"], "do not match any of its 3 sessions"),
        (["run", "export", "-p", "zone=EMPTY", "-p", "to=exports"], "no sessions in "),
        (["run", "export", "-p", "zone=ZONE", "-p", "to=exports", "-p", "sessions=x*"], "do not match any of its 3"),
        (["run", "ingest", "-p", "zone="], "-p zone: it is empty"),
        (["run", "ingest", "-p", "zone=ZONE", "-p", "workers=many"], "-p workers: 'many' is not a whole number"),
        (["run", "ingest", "-p", "zone=ZONE", "-p", "workers=0"], "-p workers: '0' is less than 1"),
        (["run", "ingest", "-p", "zone=ZONE", "-p", "sessions=[1]"], "-p sessions.0: 1 is not text"),
        (["run", "ingest", "-p", "zone=ZONE", "-p", "zoen=a"], "no such parameter (there are: zone, sessions, "),
        (["run", "export", "-p", "zone=ZONE", "-p", "to=x", "-p", "keep_secrets=7"], "'7' is neither true nor false"),
        (["demo", "s3://zone/demo"], "the demo needs a folder"),
        (["demo", "ZONE"], "not of an earlier demo"),
        (["demo", "ZONE/bakery-orders"], "not of an earlier demo"),
        (["run", "ingest"], "give -p zone=ZONE"),
        (["run", "ingest", "-p", "zone"], "NAME=VALUE"),
        (["run", "ingest", "-p", "zone=ZONE", "-p", "zoen=a"], "zoen"),
        (["run", "ingest", "-p", "zone=ZONE", "-p", "now=noon"], "is no time"),
        (["run", "ingest", "-p", "zone=ZONE", "-p", "sessions=[a"], "not a JSON list"),
        (["run", "ingest", "-p", "zone=nowhere"], "nowhere"),
    ],
)
def test_wrong_use_is_said_in_a_sentence(
    sessionmill: Command, zone: Path, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    (tmp_path / "empty").mkdir()
    (zone / "kite-festival" / "FILE").touch()
    places = {"ZONE": str(zone), "EMPTY": str(tmp_path / "empty"), "ABOVE": str(tmp_path)}
    done = sessionmill(*(re.sub("ZONE|EMPTY|ABOVE", lambda word: places[word[0]], argument) for argument in arguments))
    assert done.code == 2
    assert sentence in done.err
    assert done.out == ""
    assert not Path("usage").exists()


def test_demo_that_is_refused_leaves_everything_as_it_was(sessionmill: Command, zone: Path) -> None:
    before = sorted(zone.rglob("*"))
    assert sessionmill("demo", zone).code == 2
    assert sessionmill("demo", "s3://zone/demo").code == 2
    assert sorted(zone.rglob("*")) == before
    assert list(Path().iterdir()) == []


def test_wrong_use_is_json_where_json_is_asked_for(sessionmill: Command, zone: Path) -> None:
    done = sessionmill("fold", zone, "nobody", "--json")
    assert (done.code, done.json["error"]) == (2, "WrongUse")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["verify", "ZONE", "--json", "--no-such-option"], "No such option: --no-such-option"),
        (["verify", "--json"], "Missing argument 'ZONE'"),
        (["assemble", "ZONE", "--json", "--max-round-bytes", "many"], "Invalid value for '--max-round-bytes'"),
        (["no-such-command", "--json"], "No such command 'no-such-command'"),
    ],
)
def test_wrong_option_is_json_where_json_is_asked_for(
    sessionmill: Command, arguments: list[str], sentence: str
) -> None:
    done = sessionmill(*arguments)
    assert (done.code, done.json["error"]) == (2, "WrongUse")
    assert sentence in done.json["message"]
    assert done.err == f"sessionmill: {done.json['message']}\n"


def test_version_is_that_of_the_package(sessionmill: Command) -> None:
    done = sessionmill("--version")
    assert (done.code, done.out) == (0, f"sessionmill {version('sessionmill')}\n")


def test_unknown_setting_is_wrong_use(sessionmill: Command, zone: Path) -> None:
    Path("sessionmill.yaml").write_text("zoen: here\n")
    done = sessionmill("assemble", zone)
    assert (done.code, "zoen: no such setting" in done.err) == (2, True)


def test_text_from_the_data_cannot_steer_a_terminal(sessionmill: Command, tmp_path: Path) -> None:
    files = [(key.replace("kite", "ki\te"), data.replace(b"k1", b"k\\u001b[2J")) for key, data in first_files()]
    root = tmp_path / "hostile"
    for key, data in files:
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        (root / key).write_bytes(data)
    done = sessionmill("verify", root)
    assert done.code == 1
    assert "\x1b" not in done.out
    assert "ki\\te-festival" in done.out


def test_failure_of_the_system_is_json_too(sessionmill: Command, zone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device", "/srv/a")

    monkeypatch.setattr("flows.direct.assemble_session", full)
    done = sessionmill("assemble", zone, "--json")
    assert (done.code, done.json["error"]) == (3, "OSError")
    assert done.json["message"] == "/srv/a: the system refused it: No space left on device"
    assert done.json["message"] in done.err


def test_session_whose_name_no_key_may_hold_is_told_so_once(sessionmill: Command, tmp_path: Path) -> None:
    for key, data in first_files():
        path = tmp_path / "odd" / key.replace("kite", "ki\te")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    why = "its name cannot be part of a key: it holds the character '\\t'; rename it"
    assert f"ki\\te-festival: unreadable: {why}\n" in sessionmill("verify", tmp_path / "odd").out
    assert sessionmill("assemble", tmp_path / "odd").err == f"ki\\te-festival: {why}\n"


def test_damaged_round_is_named_by_its_whole_key_and_can_be_made_again(sessionmill: Command, zone: Path) -> None:
    sessionmill("assemble", zone)
    (path,) = zone.glob("_conversations/kite-festival/rounds/*.sf")
    whole = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(whole[:-30])
    done = sessionmill("fold", zone, "kite-festival")
    assert done.code == 1
    assert str(path.relative_to(zone)) in done.err
    assert "remove it and run `sessionmill assemble`" in done.err
    path.unlink()
    assert sessionmill("assemble", zone).code == 0
    assert path.read_bytes() == whole


@pytest.mark.parametrize("terminal", [False, True])
def test_waiting_for_a_store_is_said_on_a_terminal_alone(
    sessionmill: Command, zone: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    log = logging.getLogger("sessionmill")
    for name, value in (("handlers", []), ("level", logging.NOTSET), ("propagate", True)):
        monkeypatch.setattr(log, name, value)
    monkeypatch.setattr("flows.console._on_a_terminal", lambda: terminal)

    def verify_zone(*arguments: object, **options: object) -> int:
        logging.getLogger("sessionmill.store").info("s3://\x1b does not answer")
        return 0

    monkeypatch.setattr("flows.direct.verify_zone", verify_zone)
    done = sessionmill("verify", zone)
    assert (done.code, done.err) == (0, "sessionmill: s3://\\x1b does not answer\n" if terminal else "")


def test_id_that_begins_with_a_dash_is_given_after_two(sessionmill: Command, zone: Path) -> None:
    (zone / "kite-festival").rename(zone / "-kite")
    assert sessionmill("assemble", zone, "--session=-kite").code == 0
    done = sessionmill("fold", zone, "--", "-kite")
    assert (done.code, done.out.splitlines()[0]) == (0, "conversation  -kite")


def test_session_is_named_by_its_folder_and_not_with_an_underscore_first(sessionmill: Command, zone: Path) -> None:
    (zone / "kite-festival").rename(zone / "renamed")
    (zone / "bicycle-repair").rename(zone / "_bicycle-repair")
    done = sessionmill("assemble", zone, "--json")
    assert [each["session"] for each in done.json["sessions"]] == ["bakery-orders", "renamed"]


@pytest.mark.parametrize(
    ("called", "shown"),
    [("/env/bin/sessionmill", "/env/bin/sessionmill"), ("/code/flows/__main__.py", f"{sys.executable} -m flows")],
)
def test_demo_says_how_to_call_it_again(monkeypatch: pytest.MonkeyPatch, called: str, shown: str) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "argv", [called, "demo"])
    assert command_again() == shown


def test_zone_whose_evidence_is_gone_is_still_one(sessionmill: Command, zone: Path) -> None:
    assert sessionmill("assemble", zone).code == 0
    for session in ("bakery-orders", "bicycle-repair", "kite-festival"):
        for place in ("streams", "index"):
            shutil.rmtree(zone / session / place)
    assert sessionmill("verify", zone).code == 1
