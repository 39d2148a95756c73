"""`python -m tests.bench.bench_session_logs`: session logs decoded and appended to, against `json` and `zlib` doing the
same work with the same events in one run. 51,200 events of a streamed answer, 40 in a frame or block.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from schemas.dsh import Event, read_log, write_batch, write_first_batch
from storage.session_logs import JsonlSessions
from tests.dsh_logs import header, keys_of

EVENTS = 51_200
A_FRAME = 40
APPENDS = 200
REPEAT = 5
WORDS = (
    "The ",
    "quick ",
    "brown ",
    "fox ",
    "jumps ",
    "over ",
    "the ",
    "lazy ",
    "dog",
    ".\n",
    " \u00e9t\u00e9 ",
    "1,024 ",
)


def events() -> list[Event]:
    """A long answer, piece by piece, with its turn around it."""
    piece = {"type": "text-delta", "index": 0}
    chunks: list[Event] = [
        {
            "type": "assistant/chunk",
            "seq": seq,
            "time": 1_796_000_000_000 + 17 * seq,
            "data": {
                "turn": 1,
                "step": 1,
                "chunk": {**piece, "text": WORDS[seq % len(WORDS)]},
            },
        }
        for seq in range(EVENTS)
    ]
    for seq, kind, data in ((0, "turn/start", {"turn": 1}), (1, "step/start", {"turn": 1, "step": 1})):
        chunks[seq] = {"type": kind, "seq": seq, "time": 1_796_000_000_000, "data": data}
    return chunks


def seconds(work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """The median of some runs: of the processor's time, where no disk is waited for."""
    took = []
    for _ in range(REPEAT):
        started = clock()
        work()
        took.append(clock() - started)
    return statistics.median(took)


def decoding(written: list[list[Event]]) -> None:
    blocks = [zlib.compress(write_batch(batch, compressed=False, packed=False)) for batch in written]

    def plain() -> None:
        for block in blocks:
            for line in zlib.decompress(block).splitlines():
                json.loads(line)

    yardstick = seconds(plain)
    print(f"{'zlib, one event a line':28}{sum(map(len, blocks)):>12,} bytes")
    for packed in (True, False):
        log = write_first_batch(header(), [], packed=packed)
        log += b"".join(write_batch(batch, packed=packed) for batch in written)

        def ours(log: bytes = log) -> None:
            assert len(read_log(log, name="session.jsonl.zstd").events) == EVENTS

        name = "packed" if packed else "one event a line"
        print(f"{f'zstd, {name}':28}{len(log):>12,} bytes")
        told(f"decode, {name}", EVENTS, seconds(ours), yardstick)


def encoding(written: list[list[Event]]) -> None:
    def ours() -> None:
        for batch in written:
            write_batch(batch)

    def plain() -> None:
        for batch in written:
            text = "".join(json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n" for event in batch)
            zlib.compress(text.encode())

    told("encode, packed", EVENTS, seconds(ours), seconds(plain))


def appending(written: list[list[Event]], folder: Path) -> None:
    """Batches made durable one by one: the disk's own time is in both."""
    batches = written[:APPENDS]

    def ours(root: Path) -> None:
        with JsonlSessions(root) as sessions:
            sessions.create(header())
            for batch in batches:
                sessions.append("s", batch)
        assert len(keys_of(root)) == 1

    def plain(path: Path) -> None:
        with path.open("ab", buffering=0) as file:
            for batch in batches:
                text = "".join(json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n" for event in batch)
                file.write(zlib.compress(text.encode()))
                os.fsync(file.fileno())

    numbers = iter(range(10**6))
    taken = seconds(lambda: ours(folder / f"root{next(numbers)}"), time.perf_counter)
    yardstick = seconds(lambda: plain(folder / f"plain{next(numbers)}"), time.perf_counter)
    told("append and fsync, packed", APPENDS * A_FRAME, taken, yardstick)
    with mock.patch("os.fsync"):
        taken = seconds(lambda: ours(folder / f"root{next(numbers)}"))
        yardstick = seconds(lambda: plain(folder / f"plain{next(numbers)}"))
    told("append, not made durable", APPENDS * A_FRAME, taken, yardstick)


def told(name: str, number: int, taken: float, yardstick: float) -> None:
    rate = number / taken
    print(f"{name:28}{taken:12.3f} s{rate:14,.0f} events/s{taken / yardstick:8.2f} of json and zlib")


def main() -> None:
    gc.set_threshold(50_000)  # as the command line and the workers do
    every = events()
    written = [every[start : start + A_FRAME] for start in range(0, EVENTS, A_FRAME)]
    decoding(written)
    encoding(written)
    with tempfile.TemporaryDirectory(prefix="sessionmill-bench-") as folder:
        appending(written, Path(folder))


if __name__ == "__main__":
    main()
