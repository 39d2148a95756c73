"""`python -m tests.bench.bench_report [ROWS]`: a report on a data set, against polars adding up one column of it.

A million rows by default, a year of days, 50 calls a session, 500 models, 10,000 projects. Each measure is a process of
its own, so that its peak memory is its own.
"""

from __future__ import annotations

import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from datetime import date, timedelta
from hashlib import sha256
from pathlib import Path

import polars as pl

from schemas.usage import CALL_FILE_SCHEMA, SCHEMA_VERSION
from storage.local import LocalStore
from storage.objects import StoreSettings
from storage.usage_dataset import CallFile, Manifest, manifest_key, parquet_bytes

DAYS = 365
FIRST = date(2025, 3, 1)


def calls(first: int, number: int, day: date) -> pl.DataFrame:
    """Rows of one day."""
    n, session = pl.col("n"), pl.col("n") // 50
    start = pl.lit(day).cast(pl.Datetime("us", "UTC"))
    plain = {
        name: pl.lit(None, pl.String)
        for name in CALL_FILE_SCHEMA.names
        if CALL_FILE_SCHEMA.field(name).type == "string"
    } | {name: pl.lit(1) for name in CALL_FILE_SCHEMA.names if CALL_FILE_SCHEMA.field(name).type == "int64"}
    chosen = {
        "call_key": pl.format("msg_{}", n),
        "project": pl.format("/srv/project/{}", session * 7919 % 10_000),
        "session_id": pl.format("session-{}", session),
        "conversation_id": pl.format("session-{}", session),
        "stream_id": pl.lit("main"),
        "evidence_key": pl.format("session-{}/streams/main/000001.sd", session),
        "is_subagent": n % 9 == 0,
        "call_time": start + pl.duration(microseconds=(n - first) * (86_000_000_000 // number)),
        "model": pl.format("model-{}", session * 31 % 500),
        "input_uncached": n % 4_000,
        "cache_read": n % 90_000,
        "output": n % 900,
        "finished": pl.lit(True),
        "cost_microusd": pl.when(n % 97 > 0).then(n % 50_000),
        "cost_status": pl.when(n % 97 > 0).then(pl.lit("priced")).otherwise(pl.lit("unknown_model")),
        "schema_version": pl.lit(SCHEMA_VERSION, pl.Int32),
    }
    rows = pl.DataFrame({"n": pl.int_range(first, first + number, eager=True)})
    return rows.select(**{name: {**plain, **chosen}[name] for name in CALL_FILE_SCHEMA.names})


def write(folder: str, rows: int) -> int:
    """A data set of about so many rows; bytes."""
    store = LocalStore(folder, StoreSettings())
    files = []
    for number in range(DAYS):
        day, a_day = FIRST + timedelta(days=number), rows // DAYS
        data = parquet_bytes(calls(number * a_day, a_day, day).to_arrow().cast(CALL_FILE_SCHEMA))
        digest = sha256(data).hexdigest()
        key = f"date={day}/source=claude-code/part-{digest[:16]}.parquet"
        store.create(key, data)
        files.append(CallFile(key=key, rows=a_day, size=len(data), digest=digest, date=day, source="claude-code"))
    whole = Manifest(
        schema_version=SCHEMA_VERSION, generation=1, rows=rows, price_version="invented", files=tuple(files)
    )
    store.create(manifest_key(1), whole.to_bytes())
    return sum(file.size for file in files)


def measure(name: str, folder: str) -> None:
    """One measure in this process, as JSON on standard output."""
    from tasks.report import json_of, read_report, scope_of

    gc.set_threshold(50_000)  # as the command line does
    start = time.perf_counter()
    if name == "sum":
        pl.scan_parquet(f"{folder}/date=*/source=*/*.parquet").select(pl.col("output").sum()).collect()
    else:
        found = read_report(LocalStore(folder, StoreSettings()), scope_of(zone="America/Los_Angeles"))
        assert found is not None
        if name == "page":
            from tasks.report.page import page_of

            page_of(found)
        elif name == "json":
            json.dumps(json_of(found))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": time.perf_counter() - start, "peak": peak}))


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        size = write(folder, rows)
        print(f"{rows:,} rows in {size / 1e6:.0f} MB, {DAYS} files")
        print(f"{'':8}{'seconds':>9}{'rows a second':>16}{'against a sum':>15}{'peak':>10}")
        base = 0.0
        for name in ("sum", "report", "page", "json"):
            command = [sys.executable, "-m", "tests.bench.bench_report", "--measure", name, folder]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            base = base or found["seconds"]
            times = f"{found['seconds']:9.2f}{rows / found['seconds']:16,.0f}{found['seconds'] / base:14.1f}x"
            print(f"{name:8}{times}{found['peak'] / 1e6:7.0f} MB")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(*sys.argv[2:4])
    else:
        assert Path.cwd().joinpath("tests").is_dir(), "run it from the repository's folder"
        main()
