"""One measured piece of work in a process of its own: `python -m tests.bench.work NAME ROOT [ARGUMENT]`.

Prints one JSON line: seconds by the clock, peak memory in bytes, and what the work says of itself.
"""

from __future__ import annotations

import gc
import json
import resource
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from storage.objects import open_store
from storage.zone import Zone
from tasks.assemble import AssembleOptions, assemble_session
from tasks.verify import verify_session
from tests.bench.archive import append_file


def loads(root: Path) -> str:
    """The yardstick: `json.loads` of every line of every landed file."""
    lines = 0
    for path in sorted(root.glob("*/streams/*/*.sd")):
        for line in path.read_bytes().split(b"\n"):
            if line:
                json.loads(line)
                lines += 1
    return f"{lines} lines"


def assemble(root: Path, processes: str = "1") -> str:
    """Every session, without what an earlier run derived."""
    sessions = Zone(open_store(root)).sessions()
    sessions.sort(key=lambda name: -sum(ref.size for ref in Zone(open_store(root)).landed_files(name)))
    if processes == "1":
        rounds = [_assemble_one(root, session) for session in sessions]
    else:
        with ProcessPoolExecutor(int(processes), mp_context=get_context("forkserver")) as pool:
            rounds = list(pool.map(_assemble_one, [root] * len(sessions), sessions))
    return f"{sum(rounds)} rounds"


def _assemble_one(root: Path, session: str) -> int:
    return assemble_session(Zone(open_store(root)), session, AssembleOptions(now=1)).rounds_written


def verify(root: Path) -> str:
    zone = Zone(open_store(root))
    found = [verify_session(zone, session) for session in zone.sessions()]
    problems = sum(len(each.problems) for each in found)
    return f"{sum(each.records for each in found)} records, {problems} problems"


def append(root: Path, times: str) -> str:
    """Appends one file at a time and assembles; the median of the assemblies alone, in milliseconds."""
    zone = Zone(open_store(root))
    [session] = zone.sessions()
    took = []
    for _ in range(int(times)):
        append_file(zone, session, zone.landed_files(session)[-1].seq + 1, 200)
        started = time.perf_counter()
        assert _assemble_one(root, session) == 1
        took.append(time.perf_counter() - started)
    return f"{sorted(took)[len(took) // 2] * 1000:.1f}"


WORK: dict[str, Callable[..., str]] = {"loads": loads, "assemble": assemble, "verify": verify, "append": append}


def main() -> None:
    name, root, *arguments = sys.argv[1:]
    gc.set_threshold(50_000)  # as the command line and the workers do
    started = time.perf_counter()
    said = WORK[name](Path(root), *arguments)
    seconds = time.perf_counter() - started
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) * 1024
    print(json.dumps({"seconds": seconds, "peak": peak, "said": said}))


if __name__ == "__main__":
    main()
