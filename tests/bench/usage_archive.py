"""A zone of many provider calls, written as landing leaves them: what landed files hold beside usage is left out.

A line has the members that Claude Code 2.1.332 was seen to write, and is as long as one of its own.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import zstandard

__all__ = ["write_usage_zone"]

MODELS = ("claude-sonnet-4-5-20250929", "claude-opus-4-5", "claude-haiku-4-5", "my-local-1")
START = datetime(2026, 1, 1, tzinfo=UTC)
CALLS_A_SESSION = 2_000
STAMP = "20260801T000000.000000000Z"


def write_usage_zone(root: Path, calls: int, times: int, *, first: int = 0) -> int:
    """`calls` calls from number `first` on, in sessions of two thousand, over half a year; bytes of usage, unpacked.

    Each call is reported `times` times: while it streams, with growing counts, and the last two times with all of them;
    of four or more, the last one in another session, which goes on from the first.
    """
    packer = zstandard.ZstdCompressor(level=3)
    size = 0
    for start in range(first, first + calls, CALLS_A_SESSION):
        numbers = range(start, min(start + CALLS_A_SESSION, first + calls))
        chance = random.Random(start)
        session = f"{start:08x}-0000-4000-8000-000000000000"
        own = max(1, times - 1) if times >= 4 else times
        lines: list[str] = []
        copied: list[str] = []
        for number in numbers:
            for row, line in enumerate(_lines(number, times, chance, session), 1):
                (lines if row <= own else copied).append(line)
        size += _land(root, session, lines, packer)
        if copied:
            resumed = f"{start:08x}-0000-4000-8000-00000000000f"
            own_call = next(_lines(10**9 + start, 1, chance, resumed))
            size += _land(root, resumed, [*copied, own_call], packer)
    return size


def _lines(number: int, times: int, chance: random.Random, session: str) -> Iterator[str]:
    at = (START + timedelta(seconds=number % 15_000_000, microseconds=number)).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
    final, read, written = chance.randrange(2, 2_000), chance.randrange(90_000), chance.randrange(4_000)
    hour = written // 3
    model = MODELS[number % 50 % 4] if number % 50 < 4 else MODELS[number % 3]
    for time in range(1, times + 1):
        output = final if time >= times - 1 else max(1, final * time // times)
        yield (
            f'"id":"{number:08x}-0000-4000-8000-{time:012d}","call":"msg_01{number:022d}",'
            f'"run":"{number // 9:08x}-0000-4000-8000-000000000001","time":"{at}Z","model":"{model}",'
            f'"request_id":"req_01{number:022d}","usage":{{"input_tokens":{number % 97},'
            f'"cache_creation_input_tokens":{written},"cache_read_input_tokens":{read},"output_tokens":{output},'
            f'"output_tokens_details":{{"thinking_tokens":{output // 3}}},'
            '"server_tool_use":{"web_search_requests":0,"web_fetch_requests":0},"service_tier":"standard",'
            f'"cache_creation":{{"ephemeral_1h_input_tokens":{hour},"ephemeral_5m_input_tokens":{written - hour}}},'
            f'"inference_geo":"","iterations":[],"speed":"standard","fallback_credit":null}},"finished":true,'
            f'"side_chain":false,"session":"{session}","cwd":"/home/ada/app-{number // 100_000}",'
            '"client_version":"2.1.332"}\n'
        )


def _land(root: Path, session: str, lines: list[str], packer: zstandard.ZstdCompressor) -> int:
    calls = "".join(f'{{"dialect":"claude-code/1","ord":{row},"row":{row},{line}' for row, line in enumerate(lines, 1))
    for folder in (f"_calls/{session}", f"_landing/{session}", f"{session}/streams/main"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    header = (
        f'{{"h":1,"schema":"sd/1","seq":1,"at":"2026-08-01T00:00:00Z","kind":"transcript","adapter":"bench/1",'
        f'"dialect":"claude-code/1","src":"p/{session}.jsonl","session":"{session}","stream":"main"}}\n'
    ).encode()
    end = f'{{"t":"end","records":0,"digest":"{hashlib.sha256(header).hexdigest()}"}}\n'.encode()
    (root / session / f"streams/main/transcript-{STAMP}-000001.sd").write_bytes(header + end)
    (root / f"_landing/{session}/000001.claim").write_bytes(b"{}\n")
    data = calls.encode()
    (root / f"_calls/{session}/000001.jsonl.zst").write_bytes(packer.compress(data))
    return len(data)
