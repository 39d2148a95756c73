"""What text of the data becomes on a terminal, and in a pipe."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from flows.agent_summary import DueSummary
from tests.terminal import on_terminal

ANSWER = "A \x1b[31mRED\x1b]0;pwn\x07 \u202etxt\r\nlines\tand tabs, ünï 😀\rover\nend"
WRITES = f"from flows.console import write_answer; write_answer({ANSWER!a})"


def test_an_answer_cannot_steer_a_terminal() -> None:
    shown = on_terminal(80, "-c", WRITES).decode()
    assert shown.split("\r\n") == [
        r"A \x1b[31mRED\x1b]0;pwn\x07 \u202etxt",
        "lines\tand tabs, ünï 😀\\rover",
        "end",
        "",
    ]


def test_an_answer_comes_through_a_pipe_as_it_is() -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", WRITES], capture_output=True, check=True, cwd=root, env={"LC_ALL": "C"}
    )
    assert done.stdout == f"{ANSWER}\n".encode()


def test_why_a_specification_was_refused_cannot_steer_a_terminal_either() -> None:
    summary = DueSummary(agents=1, runs=[], refused=["a.yaml: {{\x1b[31m\n}} names no declared variable"])
    assert summary.sentence == r"0 of 1 agents were due; a.yaml: {{\x1b[31m\n}} names no declared variable"
