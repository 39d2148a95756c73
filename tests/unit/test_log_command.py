"""`sessionmill log`: a listing, one session's events, a repair; and what is no such thing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from schemas.dsh import Event, write_event
from storage.session_logs import JsonlSessions, SqliteSessions
from tests.command import Command
from tests.dsh_logs import answer, header, mark, numbered, turn, user

WHOLE = numbered(*turn(1, user("hi"), answer("hello")))
LAST = WHOLE[-1]["time"]
OPEN: list[Event] = [*WHOLE, {"type": "turn/start", "seq": 6, "time": LAST, "data": {"turn": 2}}]
CLOSER = {"type": "turn/end", "seq": 7, "time": LAST, "data": {"turn": 2, "reason": {"kind": "interrupted"}}}
CLOSED: list[Event] = [*OPEN, CLOSER]


@pytest.fixture(params=["frames", "lines", "database"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A root with one whole session and one that was interrupted."""
    path = tmp_path / ("sessions.db" if request.param == "database" else "logs")
    compressed = request.param == "frames"
    opened = SqliteSessions(path) if request.param == "database" else JsonlSessions(path, compressed=compressed)
    with opened as sessions:
        for session, events in (("whole", WHOLE), ("open", OPEN)):
            sessions.create(header(id=session, parent_session="whole" if session == "open" else None))
            sessions.append(session, events)
    return path


def lines(events: list[Event]) -> str:
    return b"".join(map(write_event, events)).decode()


def test_sessions_are_listed(sessionmill: Command, root: Path) -> None:
    said = sessionmill("log", root)
    assert said.code == 0
    assert said.out.splitlines()[0].split() == ["session", "created", "folder", "parent", "origin", "version"]
    assert {tuple(line.split()) for line in said.out.splitlines()[1:]} == {
        ("open", "2026-11-30T00:53:20Z", "/srv/proj", "whole", "fork", "0"),
        ("whole", "2026-11-30T00:53:20Z", "/srv/proj", "-", "-", "0"),
    }
    listed = json.loads(sessionmill("log", root, "--json").out)
    assert {each["header"]["id"] for each in listed["sessions"]} == {"open", "whole"}
    assert listed["unreadable"] == []


def test_events_are_printed_as_json_lines_with_the_turn_closed(sessionmill: Command, root: Path) -> None:
    assert sessionmill("log", root, "whole").out == lines(WHOLE)
    said = sessionmill("log", root, "open")
    assert (said.code, said.out) == (0, lines(CLOSED))
    assert sessionmill("log", root, "open", "--from", "6").out == lines(CLOSED[6:])
    assert sessionmill("log", root, "open", "--from", "99").out == ""
    whole = json.loads(sessionmill("log", root, "open", "--json", "--from", "7").out)
    assert whole == {"header": header(id="open", parent_session="whole").as_json(), "events": CLOSED[7:]}


def test_looking_changes_nothing_and_a_repair_is_durable(sessionmill: Command, root: Path) -> None:
    sessionmill("log", root, "open")
    with reopened(root) as sessions:
        assert sessions.read_from("open", 0).events == OPEN
    assert sessionmill("log", root, "open", "--repair").out == lines(CLOSED)
    with reopened(root) as sessions:
        assert sessions.read_from("open", 0).events == CLOSED


def test_all_sessions_are_repaired(sessionmill: Command, root: Path) -> None:
    said = sessionmill("log", root, "--repair")
    assert (said.code, said.out) == (0, "repaired  events added\nopen                 1\n")
    again = sessionmill("log", root, "--repair", "--json")
    assert json.loads(again.out) == {"sessions": 2, "repaired": [], "rejected": []}
    assert sessionmill("log", root, "--repair").out == "nothing to repair\n"


def reopened(root: Path) -> JsonlSessions | SqliteSessions:
    return SqliteSessions(root) if root.is_file() else JsonlSessions(root, compressed=None)


def test_a_refused_log_is_said_and_does_not_keep_the_others(sessionmill: Command, tmp_path: Path) -> None:
    root = tmp_path / "logs"
    with JsonlSessions(root, compressed=False) as sessions:
        for session in ("good", "bad", "headless"):
            sessions.create(header(id=session))
            sessions.append(session, OPEN)
    bad, headless = (root / f"--srv-proj--/{name}/session.jsonl" for name in ("bad", "headless"))
    bad.write_bytes(bad.read_bytes().replace(b'"seq":2', b'"seq":3'))
    headless.write_bytes(b"nothing\n")
    said = sessionmill("log", root, "bad")
    assert (said.code, said.out) == (1, "")
    assert "line" in said.err
    listed = sessionmill("log", root)
    assert listed.code == 1
    assert "headless/session.jsonl: its first line is no session header" in listed.err
    repaired = sessionmill("log", root, "--repair", "--json")
    assert repaired.code == 1
    told = json.loads(repaired.out)
    assert told["repaired"] == [{"session": "good", "events_added": 1}]
    assert [each["session"] for each in told["rejected"]] == ["bad"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["absent"], 2),
        ([""], 2),
        (["logs", "--from", "3"], 2),
        (["logs", "whole", "--from", "-1"], 2),
        (["ftp://x/y"], 2),
        (["s3://bucket/prefix", "whole", "--repair"], 2),
        (["logs", "nobody"], 2),
        (["logs", "nobody", "--repair"], 2),
        (["notes.txt"], 1),
        (["notes.txt", "--repair"], 1),
    ],
)
def test_what_cannot_be_meant_or_read_is_told_apart(
    sessionmill: Command, tmp_path: Path, arguments: list[str], code: int
) -> None:
    here = tmp_path / "here"
    with JsonlSessions(here / "logs") as sessions:
        sessions.create(header(id="whole"))
        sessions.append("whole", WHOLE)
    (here / "notes.txt").write_text("no database, but text that is long enough " * 20)
    (here / "notes.txt").chmod(0o600)
    said = sessionmill("log", *arguments)
    assert (said.code, said.out) == (code, "")
    assert said.err


def test_a_session_that_is_not_there_is_said_with_where_to_look(sessionmill: Command, tmp_path: Path) -> None:
    with JsonlSessions(tmp_path / "logs") as sessions:
        sessions.create(header(id="whole"))
        sessions.append("whole", WHOLE)
    said = sessionmill("log", tmp_path / "logs", "nobody")
    assert said.code == 2
    assert (
        f"{tmp_path}/logs: no session 'nobody' there; `sessionmill log {tmp_path}/logs` lists its sessions" in said.err
    )


def test_a_harness_home_and_a_file_url_will_do(sessionmill: Command, tmp_path: Path) -> None:
    with JsonlSessions(tmp_path / "home/sessions") as sessions:
        sessions.create(header(id="whole"))
        sessions.append("whole", WHOLE)
    assert sessionmill("log", tmp_path / "home", "whole").out == lines(WHOLE)
    assert sessionmill("log", f"file://{tmp_path}/home", "whole").out == lines(WHOLE)


def test_a_reader_that_goes_away_is_no_failure(tmp_path: Path) -> None:
    events = numbered(*(mark("todo/write", todos=["x" * 1000]) for _ in range(2000)))
    with JsonlSessions(tmp_path) as sessions:
        sessions.create(header(id="long"))
        sessions.append("long", events)
    command = [sys.executable, "-m", "flows", "log", str(tmp_path), "long"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == write_event(events[0])
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


def test_folder_that_holds_a_database_shows_its_sessions(sessionmill: Command, tmp_path: Path) -> None:
    folder = tmp_path / "copied"
    folder.mkdir()
    with SqliteSessions(folder / "sessions.db") as sessions:
        sessions.create(header(id="whole"))
        sessions.append("whole", WHOLE)
    (folder / "events-1.json").write_text("{}")
    listed = sessionmill("log", folder, "--json").json["sessions"]
    assert [each["header"]["id"] for each in listed] == ["whole"]
    assert sessionmill("log", folder, "whole").out == lines(WHOLE)
    (tmp_path / "home").mkdir()
    folder.rename(tmp_path / "home" / "sessions")
    assert "whole" in sessionmill("log", tmp_path / "home").out


@pytest.mark.parametrize("options", [[], ["--json"], ["--repair"]])
def test_place_without_any_log_is_wrong_use(sessionmill: Command, tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.png").write_bytes(b"")
    said = sessionmill("log", tmp_path / "photos", *options)
    assert said.code == 2
    assert f"no logs here: {tmp_path / 'photos'}" in said.err
