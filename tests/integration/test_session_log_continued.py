"""Logs of the current generation that we repaired or continued are opened and continued by the program that began them.

The program is the one in the SDK, with a model server on loopback; it refuses a log that breaks a rule.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from schemas.dsh import read_log
from storage.session_logs import JsonlSessions
from tasks.agents import dsh, dsh_program
from tests import stub_llm
from tests.dsh_logs import keys_of
from tests.stub_llm import Answer, StubLlm, ToolCall

OFF = [{"id": name, "disabled": True} for name in dsh._SENT_BY_DEFAULT]


def turn(home: Path, workspace: Path, stub: StubLlm, resume: str | None = None) -> tuple[int, list[dict[str, Any]]]:
    """One turn of the real program, which sends nothing to anybody else: its exit code, and what it said."""
    patch = home / "patch.json"
    patch.parent.mkdir(parents=True, exist_ok=True)
    patch.write_text(json.dumps(OFF))
    options = {"dsh_home": str(home), "cwd": str(workspace), "model": "deepseek-v4-flash", "patches": [str(patch)]}
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "DSH_TELEMETRY_MODE": "DISABLED",
        "DSH_PERMISSION_MODE": "danger-full-access",
        "DO_NOT_TRACK": "1",
        "DEEPSEEK_API_KEY": "sk-stub",
        "DEEPSEEK_BASE_URL": stub.url,
    }
    done = subprocess.run(
        [sys.executable, "-P", dsh_program.__file__],
        input=json.dumps({"options": options, "prompt": "Go on.", "resume": resume}),
        cwd=workspace,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def cut_after(path: Path, kind: str) -> None:
    """Cut the log within the frame that follows the last one with an event of this kind."""
    data = path.read_bytes()
    log = read_log(data, name=path.name)
    seq = max(event["seq"] for event in log.events if event["type"] == kind)
    place = log.lines[seq].end
    starts = [start for start, offset in log.frames if offset >= place] or [len(data)]
    path.write_bytes(data[: starts[0] + 9])


@pytest.mark.parametrize("way", ["repaired", "continued"])
def test_a_log_that_we_wrote_to_goes_on(way: str, tmp_path: Path) -> None:
    workspace, home = tmp_path / "work", tmp_path / "home"
    workspace.mkdir()
    with stub_llm.running() as stub:
        command = ToolCall("bash", {"command": "echo 1", "description": "a command"})
        stub.script(Answer(tools=(command,)), Answer("Done."))
        code, said = turn(home, workspace, stub)
        assert code == 0, said[-1:]
        session = str(next(each["session"] for each in said if "session" in each))
        [key] = [key for key in keys_of(home / "sessions") if key.endswith(".zstd")]
        path = home / "sessions" / key
        with JsonlSessions(home / "sessions") as sessions:
            if way == "repaired":
                cut_after(path, "tool/call")
            mended = list(sessions.load(session).events)
            if way == "continued":
                with sessions.prepare(session) as prepared, prepared.publish(now=mended[-1]["time"]) as live:
                    live.record("todo/write", {"todos": []}, now=mended[-1]["time"])
                    mended = list(live.inspection().events)
                    code, said = turn(home, workspace, stub, session)
                    assert code == 1, "a session that is open for writing is opened by nobody else"
        before = path.read_bytes()
        stub.script(Answer("And on."))
        code, said = turn(home, workspace, stub, session)
        assert code == 0, said[-1:]
        assert path.read_bytes().startswith(before)
        with JsonlSessions(home / "sessions") as sessions:
            events = sessions.load(session).events
        assert list(events[: len(mended)]) == mended
        assert events[len(mended)]["type"] == "session/end-seed"
        assert events[-1]["data"]["reason"] == {"kind": "completed"}
