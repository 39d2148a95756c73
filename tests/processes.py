"""Processes that race each other, and what each of them said: one that dies fails the test instead of stalling it."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from typing import TypeVar

__all__ = ["what_they_said"]

T = TypeVar("T")


def what_they_said(
    processes: Sequence[BaseProcess], results: multiprocessing.SimpleQueue[T], *, within: float = 300
) -> list[T]:
    """Start the processes and wait for one result of each, in the order they come.

    Raises AssertionError, with the others killed, when one ends without a result or takes longer than ``within``
    seconds.
    """
    for process in processes:
        process.start()
    said: list[T] = []
    deadline = time.monotonic() + within
    try:
        while len(said) < len(processes):
            ended = [process for process in processes if process.exitcode is not None]
            if not results.empty():
                said.append(results.get())
                continue
            failed = [f"{process.name} exited with {process.exitcode}" for process in ended if process.exitcode]
            assert not failed, f"{', '.join(failed)}; its own error is on standard error"
            assert len(ended) <= len(said), f"{len(ended)} processes ended, and {len(said)} of them said something"
            assert time.monotonic() < deadline, f"no answer within {within:.0f} seconds"
            time.sleep(0.01)
    finally:
        for process in processes:
            if len(said) < len(processes):
                process.kill()
            process.join()
    return said
