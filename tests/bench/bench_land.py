"""`python -m tests.bench.bench_land`: MB of Claude Code transcripts landed in a second, against `json.loads` of every
line in one run; a pass in which nothing is new; and the memory that a line of 300 MB takes.
"""

from __future__ import annotations

import json
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from storage.objects import open_store
from storage.zone import Zone
from tasks.land.archive import land_archive
from tasks.land.claude_code import ClaudeCode
from tasks.land.outcome import LandOptions, SessionLanding

REPEAT = 3
SESSIONS = 8
ROWS = 2_000
LONG_LINE = 300_000_000


def rows(number: int, chance: random.Random) -> Iterator[dict[str, Any]]:
    """Calls of a tool and their results, as the client writes them: an answer in text, a call, what came of it."""
    for row in range(number):
        same = {
            "parentUuid": f"u{row - 1}",
            "isSidechain": False,
            "cwd": "/srv/app",
            "sessionId": "s",
            "version": "2.1.0",
            "uuid": f"u{row}",
            "timestamp": "2026-03-01T10:00:00.123Z",
        }
        usage = {"input_tokens": 3, "output_tokens": chance.randrange(900), "cache_read_input_tokens": 9_000}
        if row % 3 == 2:
            text = "".join(f'{line}\tprint("{chance.random()}")\n' for line in range(120))
            content = [{"type": "tool_result", "tool_use_id": f"t{row - 1}", "content": text}]
            file = {"filePath": "/srv/app/a.py", "content": text, "numLines": 120}
            message: dict[str, Any] = {"role": "user", "content": content}
            yield {**same, "type": "user", "message": message, "toolUseResult": {"type": "text", "file": file}}
            continue
        block: dict[str, Any] = {"type": "text", "text": "Some words, and why.\n" * chance.randrange(1, 40)}
        if row % 3 == 1:
            block = {"type": "tool_use", "id": f"t{row}", "name": "Read", "input": {"file_path": "/srv/app/a.py"}}
        message = {"id": f"m{row}", "model": "claude-x", "stop_reason": None, "content": [block], "usage": usage}
        yield {**same, "type": "assistant", "requestId": f"r{row}", "message": message}


def transcript(session: int, number: int) -> bytes:
    found = rows(number, random.Random(session))
    return b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in found)


def land(source: Path, zone: Path) -> list[SessionLanding]:
    dialect, store = ClaudeCode(), open_store(source)
    options = LandOptions(now=1_772_359_200_000_000_000)
    return list(land_archive(Zone(open_store(zone)), store, dialect, dialect.discover(store), options))


def path_of(source: Path, session: int) -> Path:
    return source / "p" / f"{session:08x}-0000-4000-8000-000000000000.jsonl"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="sessionmill-bench-") as name:
        folder = Path(name)
        (folder / "source/p").mkdir(parents=True)
        contents = [transcript(session, ROWS) for session in range(SESSIONS)]
        for session, content in enumerate(contents):
            path_of(folder / "source", session).write_bytes(content)
        size = sum(map(len, contents)) / 1e6
        speeds, ratios = [], []
        for number in range(REPEAT):
            started = time.perf_counter()
            for content in contents:
                for line in content.splitlines():
                    json.loads(line)
            loads = time.perf_counter() - started
            started = time.perf_counter()
            land(folder / "source", folder / f"zone{number}")
            taken = time.perf_counter() - started
            speeds.append(size / taken)
            ratios.append(taken / loads)
        started = time.perf_counter()
        assert all(each.unchanged for each in land(folder / "source", folder / "zone0"))
        again = (time.perf_counter() - started) * 1000
        speed, ratio = statistics.median(speeds), statistics.median(ratios)
        print(
            f"{size:.0f} MB in {SESSIONS} sessions: {speed:.0f} MB/s, {ratio:.1f} of json.loads; again {again:.0f} ms"
        )
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with path_of(folder / "source", SESSIONS).open("wb") as file:
            file.write(b'{"type":"file-history-snapshot","x":"')
            for _ in range(LONG_LINE // 1_000_000):
                file.write(b"x" * 1_000_000)
            file.write(b'"}\n' + contents[0])
        started = time.perf_counter()
        landed = sum(each.records for each in land(folder / "source", folder / "zone0"))
        taken = time.perf_counter() - started
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(
            f"a line of {LONG_LINE / 1e6:.0f} MB and {landed - 1:,} others: {taken:.1f} s, {grown:.0f} MB more memory"
        )


if __name__ == "__main__":
    main()
