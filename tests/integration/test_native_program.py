"""The native agent's own process: told to end, killed at any point, taken up again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.agents.native.conversation import Usage
from tests.native_live import KEY, MODELS, Place
from tests.stub_llm import HANG, Answer, StubLlm, Tokens, ToolCall

OURS = Path(__file__).parents[2]


@pytest.fixture
def place(stub_llm: StubLlm, tmp_path: Path) -> Place:
    place = Place(stub_llm, tmp_path)
    place.workspace.mkdir()
    return place


class Program:
    """A running program and the lines it has printed."""

    def __init__(self, place: Place, **task: Any) -> None:
        agent = {"id": "helper", "provider": "openai", "model": MODELS["openai"], "system_prompt": "Help."}
        given = {
            "agent": agent,
            "prompt": "Do it.",
            "workspace": str(place.workspace),
            "sessions": str(place.sessions),
            "access": {"openai": {"key": KEY, "base_url": f"{place.stub.url}/v1"}},
            **task,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tasks.agents.native"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=place.workspace,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(OURS), "HOME": str(place.root)},
            start_new_session=True,
        )
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(given).encode())
        self.process.stdin.close()
        self.process.stdin = None

    def end(self) -> tuple[int, list[dict[str, Any]]]:
        """Its exit code and its lines, once it has ended."""
        out, error = self.process.communicate(timeout=60)
        assert error == b""
        return self.process.returncode, [json.loads(line) for line in out.splitlines()]

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate(timeout=20)


def _until(true: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 40
    while not true():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def _session(place: Place) -> str:
    [log] = place.sessions.rglob("session.jsonl.zstd")
    return log.parent.name


def test_it_prints_what_it_stores_and_ends_with_its_result(place: Place) -> None:
    place.stub.script(Answer("", (ToolCall("list_files"),)), Answer("Nothing here."))
    code, lines = Program(place).end()
    session = lines[0]["session"]
    assert code == 0
    assert lines[-1]["result"]["text"] == "Nothing here."
    assert [line["event"] for line in lines if "event" in line] == place.events(session)
    told = [Usage.of_event(line["event"]["data"].get("usage")) for line in lines if "event" in line]
    assert sum(used.total for used in told if used is not None) == 2 * 130


def test_told_to_end_it_stores_that_and_goes(place: Place) -> None:
    place.stub.script(HANG)
    program = Program(place)
    _until(place.stub.requests)
    program.process.send_signal(signal.SIGTERM)
    code, lines = program.end()
    assert code == 1
    assert lines[-1]["result"]["stop"] == "cancelled"
    end = place.events(lines[0]["session"])[-1]
    assert (end["type"], end["data"]["reason"]["kind"]) == ("turn/end", "aborted")


def _while_it_asks(place: Place) -> bool:
    return bool(place.stub.requests())


def _while_a_command_runs(place: Place) -> bool:
    return (place.workspace / "begun").exists()


def _while_it_asks_again(place: Place) -> bool:
    return len(place.stub.requests()) > 1


SLOW = ToolCall("run_command", {"command": "sh", "args": ["-c", "touch begun; sleep 60"]})
QUICK = ToolCall("list_files")


@pytest.mark.parametrize(
    ("answers", "when", "told"),
    [
        ((HANG,), _while_it_asks, 0),
        ((Answer("", (SLOW,), Tokens(10, output=1)),), _while_a_command_runs, 11),
        ((Answer("", (QUICK,), Tokens(10, output=1)), HANG), _while_it_asks_again, 11),
    ],
    ids=["asking", "in-a-tool", "asking-again"],
)
def test_killed_anywhere_it_is_taken_up_with_what_was_told(
    place: Place, answers: tuple[Answer, ...], when: Callable[[Place], bool], told: int
) -> None:
    place.stub.script(*answers)
    program = Program(place)
    _until(lambda: when(place))
    program.kill()
    session = _session(place)
    cut = place.events(session)
    assert cut[-1]["data"]["reason"]["kind"] == "interrupted"
    place.stub.script(Answer("Here I am.", usage=Tokens(20, output=2)))
    code, lines = Program(place, resume=session, prompt="Still there?").end()
    assert (code, lines[-1]["result"]["text"]) == (0, "Here I am.")
    sent = place.stub.requests()[-1].request.body["messages"]
    assert [message["content"] for message in sent] == ["Help.", "Still there?"]
    used = [Usage.of_event(event["data"].get("usage")) for event in place.events(session)]
    assert sum(each.total for each in used if each is not None) == told + 22


def test_a_session_that_is_not_there_is_one_sentence(place: Place) -> None:
    code, lines = Program(place, resume="session-nowhere").end()
    assert code == 3
    assert "session-nowhere" in lines[-1]["error"]


def test_no_key_reaches_a_command_a_command_line_or_a_file(place: Place) -> None:
    show = ToolCall("run_command", {"command": "sh", "args": ["-c", "env; tr '\\0' ' ' < /proc/$PPID/environ"]})
    place.stub.script(Answer("", (show,)), HANG)
    program = Program(place, mode="full")
    _until(lambda: _while_it_asks_again(place))
    assert KEY.encode() not in Path(f"/proc/{program.process.pid}/cmdline").read_bytes()
    assert KEY.encode() not in Path(f"/proc/{program.process.pid}/environ").read_bytes()
    assert KEY.encode() not in place.stub.requests()[-1].request.raw
    program.kill()
    for path in place.root.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()
    assert KEY not in str(place.events(_session(place)))
