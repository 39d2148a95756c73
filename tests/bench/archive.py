"""The landed roots that the benches work on: about 200 MB in twelve sessions, and single sessions of a given length."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from msgspec import Raw

from schemas.session_data import Part, Record, SessionDataHeader, write_session_data
from storage.objects import open_store
from storage.zone import Zone

__all__ = ["append_file", "landed_root", "records_in", "session_of_length"]

_TOOL = Path(__file__).parents[3] / "shared" / "tools" / "make_landed_root.py"
_WORDS = "harbour tide ledger crane pilot buoy mooring manifest berth lantern winch anchor signal chart fathom " * 40


def landed_root(folder: Path) -> Path:
    """Twelve sessions; from the shared tool where it is at hand, else of this module's own making."""
    root = folder / "landed"
    if _TOOL.exists():
        command = [sys.executable, str(_TOOL), str(root), "--sessions", "12", "--talks", "250"]
        subprocess.run(command, check=True)
    else:
        root.mkdir()
        zone = Zone(open_store(root))
        for number in range(12):
            session_of_length(zone, f"bench-{number:02d}", 9_000 + 700 * number)
    return root


def session_of_length(zone: Zone, session: str, records: int) -> None:
    """A session of one stream, in landed files of 1,000 records."""
    for seq, start in enumerate(range(0, records, 1_000), 1):
        append_file(zone, session, seq, min(1_000, records - start))


def append_file(zone: Zone, session: str, seq: int, records: int) -> None:
    """One more landed file of a session's main stream: calls with a tool use each, and their results."""
    header = SessionDataHeader(
        h=1, schema="sd/1", seq=seq, at="2026-09-01T00:00:00Z", kind="transcript", adapter="bench/1", dialect="bench/1",
        src="bench.jsonl", session=session, stream="main",
    )  # fmt: skip
    body = [_record(seq, n) for n in range(records)]
    name = f"transcript-20260901T000000.000000000Z-{seq:06d}.sd"
    zone.store.create(f"{session}/streams/main/{name}", write_session_data(header, body))


def _record(seq: int, n: int) -> Record:
    run, call, tool = f"prompt_{seq}_{n // 40}", f"msg_{seq}_{n // 2}", f"toolu_{seq}_{n // 2}"
    line = (seq - 1) * 1_000 + n
    text = Raw(b'"%b"' % _WORDS[n % 97 : n % 97 + 200 + n * 53 % 3_000].encode())
    minute, second = divmod(line % 3_600, 60)
    time = f"2026-08-{1 + line // 86_400:02d}T{line // 3_600 % 24:02d}:{minute:02d}:{second:02d}.{n % 1000:03d}Z"
    shared = {"ord": line + 1, "off": line * 100, "sha": "0" * 12, "bytes": 99, "id": f"rec_{seq}_{n}", "run": run}
    if n % 2:
        part = Part(k="result", of=tool, text=text)
        return Record(**shared, parent=f"rec_{seq}_{n - 1}", from_="external", time=time, parts=(part,))  # type: ignore[arg-type]
    parts = (Part(k="text", text=text), Part(k="call", id=tool, name="Bash", data=Raw(b'{"command":"ls"}')))
    return Record(**shared, call=call, from_="agent", time=time, flags=("finished",), parts=parts)  # type: ignore[arg-type]


def records_in(root: Path) -> int:
    return sum(path.read_bytes().count(b"\n") - 2 for path in root.glob("*/streams/*/*.sd"))
