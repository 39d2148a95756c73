"""`python -m tests.bench [--repeat N]`: assemble and verify against `json.loads`, and the price of one more file."""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from storage.objects import open_store
from storage.zone import Zone
from tests.bench.archive import append_file, landed_root, session_of_length

LENGTHS = (1_500, 15_000)


def work(name: str, root: Path, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.bench.work", name, str(root), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def forget(root: Path) -> None:
    """Remove what assembly derived and published."""
    shutil.rmtree(root / "_conversations", ignore_errors=True)
    for index in root.glob("*/index"):
        shutil.rmtree(index)


def throughput(folder: Path, repeat: int) -> None:
    root = landed_root(folder)
    files = list(root.glob("*/streams/*/*.sd"))
    total = sum(path.stat().st_size for path in files)
    largest = max(sum(path.stat().st_size for path in session.glob("streams/*/*.sd")) for session in root.iterdir())
    print(f"{total / 1e6:.0f} MB in {len(files)} landed files, the largest session {largest / 1e6:.0f} MB")
    ratios: dict[str, list[float]] = {"assemble, 1 process": [], "assemble, 2 processes": [], "verify, 1 process": []}
    peaks: dict[str, float] = dict.fromkeys(ratios, 0)
    for _ in range(repeat):
        baseline = work("loads", root)["seconds"]
        for name, (task, *arguments) in {
            "assemble, 1 process": ("assemble", "1"),
            "assemble, 2 processes": ("assemble", "2"),
            "verify, 1 process": ("verify",),
        }.items():
            if task == "assemble":
                forget(root)
            measured = work(task, root, *arguments)
            ratios[name].append(measured["seconds"] / baseline)
            peaks[name] = max(peaks[name], measured["peak"])
    print(
        f"{'against json.loads of every line':34}{'median':>8}{'min':>8}{'max':>8}{'peak memory / largest session':>32}"
    )
    for name, found in ratios.items():
        median = statistics.median(found)
        print(f"{name:34}{median:8.2f}{min(found):8.2f}{max(found):8.2f}{peaks[name] / largest:32.1f}")


def appending(folder: Path, repeat: int) -> None:
    """One more file of 200 records: the assembly alone, and the whole command with the start of its process."""
    alone: dict[int, float] = {}
    command: dict[int, list[float]] = {length: [] for length in LENGTHS}
    for length in LENGTHS:
        root = folder / f"append-{length}"
        root.mkdir()
        zone = Zone(open_store(root))
        session_of_length(zone, "long", length)
        work("assemble", root)
        alone[length] = float(work("append", root, "7")["said"])
    for _ in range(repeat + 2):
        for length in LENGTHS:
            root = folder / f"append-{length}"
            zone = Zone(open_store(root))
            append_file(zone, "long", zone.landed_files("long")[-1].seq + 1, 200)
            started = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "flows", "assemble", str(root)], check=True, capture_output=True, timeout=60
            )
            command[length].append(time.perf_counter() - started)
    short, long = LENGTHS
    medians = {length: statistics.median(found) * 1000 for length, found in command.items()}
    print(f"{'appending 200 records to':34}{short:>10,}{long:>10,}{'ratio':>8}")
    print(f"{'assembly alone, ms':34}{alone[short]:10.1f}{alone[long]:10.1f}{alone[long] / alone[short]:8.2f}")
    ratio = medians[long] / medians[short]
    print(f"{'sessionmill assemble, ms':34}{medians[short]:10.1f}{medians[long]:10.1f}{ratio:8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=3)
    repeat = parser.parse_args().repeat
    with tempfile.TemporaryDirectory(prefix="sessionmill-bench-") as folder:
        throughput(Path(folder), repeat)
        appending(Path(folder), repeat)


if __name__ == "__main__":
    main()
