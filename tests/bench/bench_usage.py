"""`python -m tests.bench.bench_usage [--calls N] [--times K] [--reference]`: a zone of provider calls counted.

Says how many MB of usage are read in a second, what a run costs that finds nothing new or one session more, what memory
it takes, and how long engines take to add the rows up; and checks that a run changes nothing and that a rebuild is
equal. `--reference` also adds everything up row by row, in plain Python.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import polars as pl
import zstandard

from storage.objects import open_store
from storage.usage_marks import SessionMark
from storage.zone import Zone
from tasks.usage import RateCard, UsageOptions, count_usage, shipped_price_table
from tasks.usage.evidence import evidence_of
from tasks.usage.reading import candidates_in
from tests.bench.usage_archive import write_usage_zone

MORE = 2_000
SAMPLE = 60


def count(zone: Path, usage: Path) -> dict[str, Any]:
    """One run in a process of its own."""
    command = [sys.executable, "-m", "tests.bench.bench_usage", "--count", str(zone), str(usage)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def count_here(zone: str, usage: str) -> None:
    started = time.perf_counter()
    outcome = count_usage(
        Zone(open_store(zone)), open_store(usage), RateCard(shipped_price_table()), UsageOptions(now=0)
    )
    assert outcome.problem_count == 0
    facts = {"changed": outcome.changed, "records": outcome.records, "calls": outcome.calls}
    facts["seconds"] = time.perf_counter() - started  # type: ignore[assignment]
    facts["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(facts))


def reference(zone: Path) -> dict[str, Any]:
    """The totals, as plainly as they can be counted: of each message the row with the greatest output, a later one
    wins."""
    best: dict[str, tuple[int, int, int, int]] = {}
    rows = 0
    for line in _lines(zone):
        rows += 1
        usage = line["usage"]
        found = (usage["output_tokens"], usage["input_tokens"], usage["cache_read_input_tokens"])
        if line["call"] not in best or found[0] >= best[line["call"]][0]:
            best[line["call"]] = (*found, usage["cache_creation_input_tokens"])
    output, uncached, read, written = (sum(each[place] for each in best.values()) for place in range(4))
    return {"calls": len(best), "output": output, "uncached": uncached, "read": read, "written": written, "rows": rows}


def totals(usage: Path) -> dict[str, Any]:
    written = pl.col("cache_write_5m") + pl.col("cache_write_1h") + pl.col("cache_write_unknown")
    sums = pl.scan_parquet(f"{usage}/date=*/source=*/*.parquet", hive_partitioning=True).select(
        pl.len().alias("calls"),
        pl.col("output").sum(),
        pl.col("input_uncached").sum().alias("uncached"),
        pl.col("cache_read").sum().alias("read"),
        written.sum().alias("written"),
        pl.col("copies_seen").sum().alias("rows"),
    )
    return sums.collect().to_dicts()[0]


def digests(usage: Path) -> dict[str, str]:
    files = sorted(path for path in usage.rglob("*") if path.is_file())
    return {str(path.relative_to(usage)): sha256(path.read_bytes()).hexdigest() for path in files}


def add_up(usage: Path) -> None:
    """Seconds to sums by day and model."""
    pattern = f"{usage}/date=*/source=*/*.parquet"
    started = time.perf_counter()
    pl.scan_parquet(pattern, hive_partitioning=True).group_by("date", "model").agg(
        pl.len(), pl.col("output").sum(), pl.col("cost_microusd").sum()
    ).collect(engine="streaming")
    print(f"polars: by day and model in {time.perf_counter() - started:.2f} s")
    started = time.perf_counter()
    duckdb.connect().execute(
        "SELECT date, model, count(*), sum(output), sum(cost_microusd) "
        f"FROM read_parquet('{pattern}', hive_partitioning=true) GROUP BY ALL"
    ).fetchall()
    print(f"DuckDB: by day and model in {time.perf_counter() - started:.2f} s")


def extraction(zone: Path) -> None:
    """MB of usage made candidates in a second, and in one of a processor, beside `json.loads` of the same lines."""
    store = Zone(open_store(zone))
    found = [evidence_of(store, name, SessionMark(session=name)) for name in store.sessions()[:SAMPLE]]
    wanted = [each for one in found for each in one.wanted]
    lines = [line for each in wanted for line in zstandard.decompress(store.store.read(each.key)).split(b"\n")[:-1]]
    size = sum(map(len, lines)) / 1e6
    started, used = time.perf_counter(), time.process_time()
    for line in lines:
        json.loads(line)
    plain = size / (time.perf_counter() - started), size / (time.process_time() - used)
    started, used = time.perf_counter(), time.process_time()
    for _ in candidates_in(store, wanted, lambda file, error, is_whole: None):
        pass
    speed = size / (time.perf_counter() - started), size / (time.process_time() - used)
    for name, ours, theirs in zip(("extraction", "a processor's second"), speed, plain, strict=True):
        print(f"{name}: {ours:.0f} MB/s, {ours / theirs:.1f} times json.loads ({theirs:.0f} MB/s)")


def say(name: str, run: dict[str, Any], size: int | None = None) -> None:
    speed = f", {size / 1e6 / run['seconds']:.0f} MB/s" if size is not None else ""
    print(f"{name}: {run['records']} rows in {run['seconds']:.1f} s{speed}, peak {run['peak'] / 1e9:.2f} GB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=4)
    parser.add_argument("--reference", action="store_true")
    parser.add_argument("--count", nargs=2, metavar=("ZONE", "USAGE"), help="One run here; what came of it as JSON.")
    options = parser.parse_args()
    gc.set_threshold(50_000)  # as the command does
    if options.count:
        count_here(*options.count)
        return
    with tempfile.TemporaryDirectory(prefix="sessionmill-bench-") as name:
        zone, usage = Path(name) / "zone", Path(name) / "usage"
        size = write_usage_zone(zone, options.calls, options.times)
        print(f"{options.calls} calls, {options.times} rows each, {size / 1e6:.0f} MB of usage")
        extraction(zone)
        say("first run", count(zone, usage), size)
        before = digests(usage)
        again = count(zone, usage)
        assert not again["changed"]
        assert digests(usage) == before
        print(f"nothing new: {again['seconds']:.1f} s, not a byte changed")
        add_up(usage)
        if options.reference:
            started = time.perf_counter()
            assert totals(usage) == reference(zone)
            print(f"totals equal those of a plain count, which took {time.perf_counter() - started:.0f} s")
        write_usage_zone(zone, MORE, options.times, first=options.calls + MORE)
        say("one session more", count(zone, usage))
        anew = Path(name) / "anew"
        say("all of it anew", count(zone, anew))
        parts = {key: digest for key, digest in digests(usage).items() if key.startswith("date=")}
        assert parts == {key: digest for key, digest in digests(anew).items() if key.startswith("date=")}
        print(f"both data sets have the same {len(parts)} files")


def _lines(zone: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(zone.glob("_calls/*/*.jsonl.zst")):
        for line in zstandard.decompress(path.read_bytes()).split(b"\n")[:-1]:
            yield msgspec.json.decode(line)


if __name__ == "__main__":
    main()
