"""A race in which a process dies ends at once, and says so."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time

import pytest

from tests.processes import what_they_said

CONTEXT = multiprocessing.get_context("spawn")


def _say(results: multiprocessing.SimpleQueue[int], number: int) -> None:
    results.put(number)


def _die(results: multiprocessing.SimpleQueue[int], number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _leave(results: multiprocessing.SimpleQueue[int], number: int) -> None:
    pass


def _wait(results: multiprocessing.SimpleQueue[int], number: int) -> None:
    time.sleep(600)


def started(*targets: object) -> tuple[list[multiprocessing.process.BaseProcess], multiprocessing.SimpleQueue[int]]:
    results: multiprocessing.SimpleQueue[int] = CONTEXT.SimpleQueue()
    return [
        CONTEXT.Process(target=target, args=(results, n), name=f"p{n}")  # type: ignore[arg-type]
        for n, target in enumerate(targets)
    ], results


def test_every_process_says_something() -> None:
    processes, results = started(_say, _say)
    assert sorted(what_they_said(processes, results)) == [0, 1]


@pytest.mark.parametrize(
    ("target", "said"), [(_die, "p1 exited with -9"), (_leave, "1 processes ended, and 0 of them said something")]
)
def test_one_that_ends_without_a_word_fails_and_the_others_are_killed(target: object, said: str) -> None:
    processes, results = started(_wait, target)
    begun = time.monotonic()
    with pytest.raises(AssertionError, match=said):
        what_they_said(processes, results)
    assert time.monotonic() - begun < 60
    assert processes[0].exitcode == -signal.SIGKILL


def test_none_waits_forever() -> None:
    processes, results = started(_wait)
    with pytest.raises(AssertionError, match="no answer within 0 seconds"):
        what_they_said(processes, results, within=0.1)
    assert processes[0].exitcode == -signal.SIGKILL
