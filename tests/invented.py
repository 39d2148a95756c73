"""An invented session for tests that need one of some size: talks with tools and child agents, in many landed files."""

from __future__ import annotations

from msgspec import Raw

from schemas.session_data import Part, Record, SessionDataHeader, write_session_data
from schemas.times import format_time
from storage.zone import Zone

__all__ = ["SESSION", "land_session", "landed_file"]

SESSION = "invented"
LINES = 5
"""Records of a talk."""

_START = 1_786_000_000_000_000_000
_STEP = 37_000_000_000


def land_session(zone: Zone, files: int, *, first: int = 1, session: str = SESSION) -> None:
    """Land files `first` to `first + files - 1`; every fourth tells of a child agent, every seventh starts an epoch."""
    for seq in range(first, first + files):
        stream = "agent" if seq % 4 == 0 else "main"
        key = f"{session}/streams/{stream}/transcript-20260901T000000.000000000Z-{seq:06d}.sd"
        zone.store.create(key, landed_file(seq, stream, session=session))


def landed_file(seq: int, stream: str, *, session: str = SESSION, talks: int = 2) -> bytes:
    header = SessionDataHeader(
        h=1, schema="sd/1", seq=seq, at="2026-09-01T00:00:00Z", kind="transcript", adapter="test/1", dialect="test/1",
        src=f"{stream}.jsonl", session=session, stream=stream,
    )  # fmt: skip
    records: list[Record] = []
    before = (seq // 4 - 1 if stream == "agent" else seq - 1 - seq // 4) * talks * LINES
    for talk in range(talks):
        run = f"p{seq}-{talk}"
        for n, fields in enumerate(_talk(seq, talk, run, stream)):
            line = before + len(records)
            place = {"ord": line + 1, "off": 100 * line, "sha": "0" * 12, "bytes": 99}
            time = format_time(_START + (seq * 100 + talk * 20 + n) * _STEP)
            records.append(Record(**place, id=f"r{seq}-{talk}-{n}", run=run, time=time, **fields))  # type: ignore[arg-type]
    return write_session_data(header, records)


def _talk(seq: int, talk: int, run: str, stream: str) -> list[dict[str, object]]:
    call, tool = f"msg_{seq}_{talk}", f"toolu_{seq}_{talk}"
    prompt: dict[str, object] = {
        "from_": "external",
        "flags": ("external_input",),
        "trigger": "external",
        "parts": (_text("go"),),
    }
    if seq % 7 == 0 and not talk:
        prompt = {**prompt, "flags": ("context_reset", "external_input")}
    use = Part(k="call", id=tool, name="Bash", data=Raw(b'{"command":"ls"}'))
    result: dict[str, object] = {"from_": "external", "parts": (Part(k="result", of=tool, text=Raw(b'"ok"')),)}
    if seq % 4 == 3 and stream == "main":
        result = {**result, "child": "agent", "tool": tool}
    return [
        prompt,
        {"from_": "agent", "call": call, "parts": (_text("thinking about <it>"),)},
        {"from_": "agent", "call": call, "flags": ("finished",), "parts": (use,)},
        result,
        {"from_": "agent", "call": call + "b", "flags": ("finished",), "parts": (_text("done"),)},
    ]


def _text(text: str) -> Part:
    return Part(k="text", text=Raw(f'"{text}"'.encode()))
