"""Append to session logs in a forked process and kill it at some moment: `python -m tests.killed_appends FOLDER TIMES`.

A process of its own, without threads, because it forks. What was acknowledged is counted in memory that both share.
"""

from __future__ import annotations

import mmap
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from schemas.dsh import Event, closing_events
from storage.session_logs import SessionPersistence
from tests.dsh_logs import header
from tests.random_logs import random_log
from tests.session_logs import KEPT, Kept

META = header()
EVENTS = 250


def main(folder: Path, times: int) -> None:
    """Prints how many processes were killed, how many of them in the middle of their log, and how many batches under
    way were found whole; a wrong log is an error.
    """
    moments = random.Random(11)
    killed = within = unacknowledged = 0
    durations = dict.fromkeys(KEPT, 60.0)  # until the first of each kind has ended undisturbed
    for number in range(20 * times):
        if killed == times:
            break
        kept = KEPT[number % len(KEPT)]
        batches = list(_batches(number))
        root = folder / f"{number}"
        root.mkdir(mode=0o700)
        disturbed = durations[kept] < 60
        started = time.perf_counter()
        moment = moments.uniform(0, durations[kept]) if disturbed else durations[kept]
        acknowledged, status = _killed(kept, root, batches, moment)
        if status == 0:
            durations[kept] = time.perf_counter() - started
        assert status in (0, signal.SIGKILL), f"{kept} {number} failed by itself"
        killed += status == signal.SIGKILL
        stored = _checked(kept, root, batches, acknowledged, f"{kept} {number}")
        within += 0 < stored < len(batches)
        unacknowledged += stored > acknowledged
        shutil.rmtree(root)
    print(killed, within, unacknowledged)


def _batches(number: int) -> Iterator[list[Event]]:
    """The batches of several random logs in a row, numbered on."""
    chance = random.Random(number)
    events: list[Event] = []
    while len(events) < EVENTS:
        events += [event for event in random_log(chance.randrange(10**6)).events if "surfaceOp" not in event]
    for seq, event in enumerate(events):
        event["seq"] = seq
    position = 0
    while position < len(events):
        size = chance.choice((1, 2, 5, 40))
        yield events[position : position + size]
        position += size


def _killed(kept: Kept, root: Path, batches: list[list[Event]], moment: float) -> tuple[int, int]:
    """How many batches were acknowledged until then, and how the process ended."""
    shared = mmap.mmap(-1, 8)
    child = os.fork()
    if child == 0:
        with kept.open(root) as sessions:
            sessions.create(META)
            for number, batch in enumerate(batches, 1):
                sessions.append("s", batch)
                shared[:8] = number.to_bytes(8, "little")
        os._exit(0)
    started = time.perf_counter()
    ended = status = 0
    while not ended and time.perf_counter() - started < moment:
        time.sleep(0.0005)
        ended, status = os.waitpid(child, os.WNOHANG)
    if not ended:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    return int.from_bytes(shared[:8], "little"), status


def _checked(kept: Kept, root: Path, batches: list[list[Event]], acknowledged: int, name: str) -> int:
    """How many batches are stored: all that were acknowledged, and perhaps the one under way."""
    with kept.open(root) as sessions:
        if not sessions.list():
            assert acknowledged == 0, f"{name}: the whole log is gone"
            sessions.create(META)  # and it can be begun again
            sessions.append("s", batches[0])
            return 0
        found = list(sessions.read_from("s", 0).events)
        ends = [0]
        for batch in batches:
            ends.append(ends[-1] + len(batch))
        written = [event for batch in batches for event in batch]
        assert ends[acknowledged] <= len(found) <= ends[min(acknowledged + 1, len(batches))], f"{name}: events are gone"
        assert found == written[: len(found)], f"{name}: events are not those that were written"
        closing = closing_events(found, 0)
        assert list(sessions.inspect("s").events) == found + closing, f"{name}: it is inspected wrongly"
        _continued(sessions, found + closing, name)
        return acknowledged + (len(found) > ends[acknowledged])


def _continued(sessions: SessionPersistence, found: list[Event], name: str) -> None:
    """The log is repaired by going on."""
    event = {"type": "plan/mode", "seq": len(found), "time": 1, "data": {"active": True}}
    sessions.append("s", [event])
    assert list(sessions.load("s").events) == [*found, event], f"{name}: it does not go on where it ended"


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
