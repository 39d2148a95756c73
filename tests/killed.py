"""Assemble in a forked process, kill it at some moment, finish the work: `python -m tests.killed FOLDER TIMES`.

A process of its own, without threads, because it forks: the 200 children then start in milliseconds.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

from storage.objects import open_store
from storage.zone import Zone
from tasks.assemble import AssembleOptions, assemble_session
from tests.invented import SESSION, land_session

BUDGET = 6_000
FILES = 12


def main(folder: Path, times: int) -> None:
    """Prints how many runs were killed, and how many of them in the middle of the chain; a difference is an error."""
    undisturbed = folder / "undisturbed"
    _assemble(_landed(undisturbed))
    expected = _chain(undisturbed)
    assert len(expected) > 5
    killed = between = 0
    duration = 1.0
    moments = random.Random(7)
    for number in range(10 * times):
        if killed == times:
            break
        root = folder / f"z{number}"
        zone = _landed(root)
        started = time.perf_counter()
        child = os.fork()
        if child == 0:
            _assemble(zone)
            os._exit(0)
        # Sleeping in slices notices a child that ends first: then the moments were spread too wide for this machine.
        moment = moments.uniform(0, duration)
        ended, status = 0, 0
        while not ended and time.perf_counter() - started < moment:
            time.sleep(0.0005)
            ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            duration = time.perf_counter() - started
        else:
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
        assert status in (0, signal.SIGKILL), f"run {number} failed by itself"
        killed += status == signal.SIGKILL
        names = set(_chain(root))
        between += 0 < len(names) < len(expected)
        assert names <= set(expected), f"run {number} left {names - set(expected)}"
        _assemble(Zone(open_store(root)))
        assert _chain(root) == expected, f"run {number} ended differently"
        shown = [stat.key for stat in zone.store.list("")]
        assert not any(".tmp" in key for key in shown), shown
        shutil.rmtree(root)
    print(f"{killed} {between}")


def _landed(root: Path) -> Zone:
    root.mkdir()
    zone = Zone(open_store(root))
    land_session(zone, FILES)
    return zone


def _assemble(zone: Zone) -> None:
    assemble_session(zone, SESSION, AssembleOptions(now=1, max_round_bytes=BUDGET))


def _chain(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in root.glob("_conversations/*/rounds/r*") if path.suffix == ".sf"}


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
