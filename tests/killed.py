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
    started = time.perf_counter()
    _assemble(_landed(undisturbed))
    duration = time.perf_counter() - started
    expected = _chain(undisturbed)
    assert len(expected) > 5
    killed = between = 0
    moments = random.Random(7)
    for number in range(times):
        root = folder / f"z{number}"
        zone = _landed(root)
        child = os.fork()
        if child == 0:
            _assemble(zone)
            os._exit(0)
        time.sleep(moments.uniform(0, duration))
        os.kill(child, signal.SIGKILL)
        killed += os.waitpid(child, 0)[1] == signal.SIGKILL
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
