"""A line of a DeepSeek Harness log that is far too long: it stays in its source, and costs no other line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from schemas.dsh import write_header
from tests.dsh_logs import answer, header, mark, numbered, turn, user

MEASURED = """
import resource, sys
from pathlib import Path
from tests.dsh_zone import land, problems, records, told, zone_at

root, zone = Path(sys.argv[1]) / "logs", zone_at(Path(sys.argv[1]) / "zone")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = [problem.rule for problem in problems(land(root, zone))]
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
landed = [record for _, record in records(zone, "s")]
longest = max(landed, key=lambda record: record.bytes)
print([text for _, text in told(landed).human], found, longest.parts[0].k, longest.bytes, grown, sep="|")
"""


def write_log(path: Path, million_bytes: int) -> None:
    """Two turns in plain lines, and between them a line that is as long as that."""
    note = mark("todo/write", todos=[{"content": "@", "status": "pending"}])
    events = numbered(*turn(1, user("one"), answer("1")), note, *turn(2, user("two"), answer("2", turn=2)))
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.write(write_header(header(0)))
        for event in events:
            before, at, after = json.dumps(event).encode().partition(b"@")
            file.write(before)
            for _ in range(million_bytes if at else 0):
                file.write(b"x" * 1_000_000)
            file.write(after + b"\n")


def test_line_of_320_mb_costs_a_log_no_other_line_and_a_bounded_multiple_of_memory(tmp_path: Path) -> None:
    write_log(tmp_path / "logs" / "--srv-proj--" / "s" / "session.jsonl", 320)
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(tmp_path)],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said, found, kind, size, megabytes = done.stdout.strip().split("|")
    assert (said, found, kind) == ("['one', 'two']", "['not_understood']", "unknown")
    assert int(size) > 320_000_000
    # Unlike other sources a log is judged whole before any of it lands: a few copies of its text.
    assert int(megabytes) < 4 * 320
