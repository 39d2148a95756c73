"""Collectors that get in each other's way: processes that land one source into one zone at the same moments, and
`python -m tests.landing_race FOLDER TIMES`, in which one is killed at some moment and another finishes the work.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sys
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path

from storage.objects import ObjectStore, open_store
from storage.zone import Zone
from tasks.land.archive import land_archive
from tasks.land.claude_code import ClaudeCode
from tasks.land.outcome import LandOptions, SessionLanding
from tests.processes import what_they_said

__all__ = ["SESSIONS", "grow", "land", "land_at_once", "landed"]

SESSIONS = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(3)]
AGENT = "a0123456789abcdef"
NOW = 1_772_359_200_000_000_000


def grow(source: ObjectStore, lines: int) -> None:
    """Make each transcript of the source `lines` long, and its sidecar different."""
    for session in SESSIONS:
        rows = [
            json.dumps({"type": "user", "uuid": f"{session[:8]}-{n}", "text": "x" * (n % 70)}) for n in range(lines)
        ]
        whole = "".join(row + "\n" for row in rows).encode()
        source.replace(f"p/{session}.jsonl", whole + b'{"torn":')
        source.replace(f"p/{session}/subagents/agent-{AGENT}.jsonl", whole[: len(whole) // 2])
        source.replace(f"p/{session}/subagents/agent-{AGENT}.meta.json", b'{"description":"%d"}' % lines)


def land(source: str, zone: str, now: int = NOW) -> list[SessionLanding]:
    dialect, store = ClaudeCode(), open_store(source)
    options = LandOptions(now=now, max_delta_bytes=400)
    return list(land_archive(Zone(open_store(zone)), store, dialect, dialect.discover(store), options))


def landed(zone: str) -> dict[str, bytes]:
    """Every landed file, by key; their sequences have no hole."""
    opened = Zone(open_store(zone))
    found = {session: opened.landed_files(session) for session in opened.sessions()}
    for refs in found.values():
        assert [ref.seq for ref in refs] == list(range(1, len(refs) + 1))
    return {ref.key: opened.read(ref) for refs in found.values() for ref in refs}


def land_at_once(source: str, zone: str, processes: int, now: int = NOW) -> list[int]:
    """How many files each of the processes landed."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes), context.SimpleQueue()
    running = [context.Process(target=_run, args=(source, zone, now, barrier, results)) for _ in range(processes)]
    ends = what_they_said(running, results)
    return ends


def _run(source: str, zone: str, now: int, barrier: Barrier, results: multiprocessing.SimpleQueue[int]) -> None:
    open_store(zone).children("")  # connect before the start
    barrier.wait(60)
    results.put(sum(each.files for each in land(source, zone, now)))


def main(folder: Path, times: int) -> None:
    """Prints how many were killed, and how many of them when some files had landed; a difference is an error."""
    source = str(folder / "source")
    grow(open_store(source), 40)
    started = time.perf_counter()
    land(source, str(folder / "undisturbed"))
    duration = time.perf_counter() - started
    expected = landed(str(folder / "undisturbed"))
    moments = random.Random(7)
    killed = between = number = 0
    while killed < times:
        zone = str(folder / f"z{number}")
        number += 1
        child = os.fork()
        if child == 0:
            land(source, zone)
            os._exit(0)
        time.sleep(moments.uniform(0, duration))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert status in (0, signal.SIGKILL), f"run {number} failed by itself"
        killed += status == signal.SIGKILL
        between += 0 < len(list(Path(zone).rglob("*.sd"))) < len(expected)
        land(source, zone)
        assert landed(zone) == expected, f"run {number} ended differently"
    print(f"{killed} {between}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
