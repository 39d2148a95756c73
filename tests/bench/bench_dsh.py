"""`python -m tests.bench.bench_dsh`: the time to decode 51,200 events (packed, compressed, 40 a frame), and MB of
DeepSeek Harness text landed in a second, of version 4 and of version 0 with its chunks, against `json.loads` of every
line in one run; a pass in which nothing is new, and one in which each log has grown by one turn.
"""

from __future__ import annotations

import gc
import json
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from schemas.dsh import Event, LogHeader, read_log, write_batch, write_first_batch
from schemas.dsh_root import log_key
from storage.objects import open_store
from storage.zone import Zone
from tasks.land.archive import land_archive
from tasks.land.dsh import DeepSeekHarness
from tasks.land.outcome import LandOptions, SessionLanding

REPEAT = 5
SESSIONS = 6
TURNS = 250
TIME = 1_796_000_000_000
USAGE = {"inputTokens": 10, "outputTokens": 5, "cacheReadTokens": 2, "cacheWriteTokens": 3}


def header(version: int, session: str) -> LogHeader:
    return LogHeader(
        version=version,
        id=session,
        created_at=TIME,
        cwd="/srv/app",
        delegation_depth=0,
        is_seeded=False if version >= 2 else None,
    )


class Numbering:
    """Gives events their numbers."""

    def __init__(self) -> None:
        self.next = 0

    def event(self, kind: str, data: Any, **more: Any) -> Event:
        self.next += 1
        return {"type": kind, "seq": self.next - 1, "time": TIME + self.next, "data": data, **more}


def pieces(number: Numbering, words: list[str]) -> list[Event]:
    delta = [{"type": "text-delta", "index": 0, "text": word} for word in words]
    return [number.event("assistant/chunk", {"turn": 1, "step": 1, "chunk": each}) for each in delta]


def many_pieces(events: int, a_frame: int) -> bytes:
    number, chance = Numbering(), random.Random(1)
    batches = [
        pieces(number, [chance.choice(["There", " are", " some", " words"]) for _ in range(a_frame)])
        for _ in range(events // a_frame)
    ]
    return write_first_batch(header(0, "s"), []) + b"".join(write_batch(batch) for batch in batches)


def batches(version: int, turns: int, chance: random.Random) -> Iterator[list[Event]]:
    """Turns with a command each, its output some pages of text; batches as the program writes them."""
    number = Numbering()
    for turn in range(1, turns + 1):
        at = {"turn": turn, "step": 1}
        yield [number.event("turn/start", {"turn": turn}), number.event("step/start", at)]
        said = [{"type": "text", "text": f"Please look at {chance.random()}"}]
        user = {"content": said, "source": {"kind": "user"}, "role": "user", "id": f"u{turn}"}
        yield [number.event("user/message", user, surfaceOp="append")]
        words = ["Some words, and why.\n"] * chance.randrange(10, 60)
        content = [
            {"type": "text", "text": "".join(words)},
            {"type": "tool-call", "id": f"c{turn}", "name": "bash", "arguments": '{"command":"cat a.py"}'},
        ]
        source = {"kind": "model", "provider": "deepseek-official", "model": "deepseek-v4-flash"}
        message = {"role": "assistant", "content": content, "source": source, "id": f"a{turn}"}
        answer: Event = {**at, "message": message, "usage": USAGE}
        if version >= 2:
            chunks = {"type": "text-chunks", "time0": TIME, "index": 0, "dt": [1] * (len(words) - 1), "texts": words}
            finish = {"type": "finish", "reason": {"kind": "tool-calls"}}
            answer["stream"] = [chunks, {"type": "chunk", "time": TIME, "chunk": finish}]
        else:
            for place in range(0, len(words), 40):
                yield pieces(number, words[place : place + 40])
        call = {**at, "callId": f"c{turn}", "name": "bash", "arguments": '{"command":"cat a.py"}'}
        yield [number.event("assistant/message", answer, surfaceOp="append"), number.event("tool/call", call)]
        text = "".join(f'{line}\tprint("{chance.random()}")\n' for line in range(200))
        output: list[Any] = [{"type": "text", "text": text}]
        given: Event = {"id": f"r{turn}", "role": "tool", "toolCallId": f"c{turn}", "isError": False}
        if version < 4:
            output = [{"type": "tool-result", "toolCallId": f"c{turn}", "content": output, "isError": False}]
            given = {"id": f"r{turn}", "role": "user"}
        given |= {"source": {"kind": "tool", "callId": f"c{turn}"}, "content": output}
        yield [number.event("tool/result", {**at, "message": given}, surfaceOp="append")]
        ended = {"turn": turn, "reason": {"kind": "completed"}}
        yield [number.event("step/end", at), number.event("turn/end", ended)]


def write(root: Path, version: int, session: int, turns: int) -> list[bytes]:
    """One log, and its decompressed lines."""
    head = header(version, f"session-{session}")
    found = list(batches(version, turns, random.Random(session)))
    data = write_first_batch(head, [], packed=version < 2)
    data += b"".join(write_batch(batch, packed=version < 2) for batch in found)
    path = root / log_key(head)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    lines = b"".join(write_batch(batch, compressed=False, packed=version < 2) for batch in found)
    return lines.splitlines()


def land(source: Path, zone: Path) -> list[SessionLanding]:
    dialect = DeepSeekHarness(open_store(source))
    found = dialect.discover(open_store(source))
    zone.mkdir(exist_ok=True)
    return list(land_archive(Zone(open_store(zone)), dialect.source, dialect, found, LandOptions(now=TIME)))


def timed(work: Any, *arguments: Any) -> float:
    started = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - started


def main() -> None:
    gc.set_threshold(50_000)  # as the command line and the workers do
    packed = many_pieces(51_200, 40)
    seconds = [timed(lambda: read_log(packed, name="p/s/session.jsonl.zstd")) for _ in range(REPEAT)]
    print(f"decode of 51,200 events, 40 a frame, {len(packed):,} bytes: {statistics.median(seconds):.3f} s")
    for version in (4, 0):
        with tempfile.TemporaryDirectory(prefix="sessionmill-bench-") as name:
            folder = Path(name)
            lines = [line for session in range(SESSIONS) for line in write(folder / "root", version, session, TURNS)]
            size = sum(map(len, lines)) / 1e6
            speeds, ratios = [], []
            for number in range(REPEAT):
                loads = timed(list, map(json.loads, lines))
                taken = timed(land, folder / "root", folder / f"zone{number}")
                speeds.append(size / taken)
                ratios.append(taken / loads)
            again = timed(land, folder / "root", folder / "zone0") * 1000
            for session in range(SESSIONS):
                write(folder / "root", version, session, TURNS + 1)
            grown = timed(land, folder / "root", folder / "zone0") * 1000
            speed, ratio = statistics.median(speeds), statistics.median(ratios)
            print(
                f"version {version}, {size:.0f} MB in {SESSIONS} sessions: {speed:.0f} MB/s, "
                f"{ratio:.1f} of json.loads; again {again:.0f} ms, one turn more {grown:.0f} ms"
            )


if __name__ == "__main__":
    main()
