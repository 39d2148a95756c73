"""`python -m tests.bench.bench_export`: sessions a second, against PyYAML's C dumper on the same documents in one run.

Three measures: the emitter alone; the export of a session that was read (projection, document, emitter); and the export
from its JSON, which the dumper does not do. Relavium's own exporter is at 0.58 of the dumper.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import yaml

from schemas.relavium import read_messages, read_record, write_yaml
from tasks.export import scaffold, workflow_of
from tests.relavium_sessions import AGENT, call, message, record_value, result, said

SESSIONS = 200
REPEAT = 5
WORDS = [
    "harbour",
    "tide:",
    "pilot",
    "#",
    "lantern",
    "'crane'",
    '"winch"',
    "anchor",
    "{{berth}}",
    "fathom",
    "https://example.com/chart",
    "日本",
    "😀",
]


def session(seed: int) -> tuple[bytes, bytes]:
    """An invented session of 4 to 16 turns, with tool calls, as its two JSON files."""
    choose = random.Random(seed)

    def words() -> str:
        lines = (
            " ".join(choose.choices(WORDS, k=choose.randint(1, 25))) for _ in range(choose.choice((1, 1, 1, 3, 12)))
        )
        return "\n".join(lines)

    rows: list[dict[str, Any]] = []
    for _ in range(choose.randint(4, 16)):
        rows.append(message(len(rows), "user", said(words())))
        if choose.random() < 0.6:
            calls = [call(choose.choice(("read_file", "mcp_tides_get")), slot) for slot in range(choose.randint(1, 3))]
            rows.append(message(len(rows), "assistant", calls, modelId="m-1"))
            rows.append(message(len(rows), "tool", [result(slot) for slot in range(len(calls))]))
        rows.append(message(len(rows), "assistant", said(words()), modelId="m-1"))
    record = record_value(id=f"session-{seed}", title=words()[:60], agentSnapshot=AGENT)
    return json.dumps(record).encode(), json.dumps(rows).encode()


def dump(document: dict[str, Any]) -> None:
    yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=True, allow_unicode=True, default_flow_style=False)


def main() -> None:
    files = [session(seed) for seed in range(SESSIONS)]
    read = [(read_record(record, name="record"), read_messages(rows, name="messages")) for record, rows in files]
    documents = [workflow_of(*each) for each in read]
    written = sum(len(write_yaml(document)) for document in documents)
    print(f"{SESSIONS} sessions, {written / 1e6:.1f} MB of YAML")

    def each(work: Callable[[Any], object], values: list[Any]) -> float:
        started = time.perf_counter()
        for value in values:
            work(value)
        return time.perf_counter() - started

    measures: dict[str, Callable[[], float]] = {
        "the emitter": lambda: each(write_yaml, documents),
        "export of a session that was read": lambda: each(lambda one: scaffold(*one), read),
        "export from JSON": lambda: each(
            lambda one: scaffold(read_record(one[0], name="record"), read_messages(one[1], name="messages")), files
        ),
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in measures}
    for _ in range(REPEAT):
        baseline = each(dump, documents)
        for name, measure in measures.items():
            seconds = measure()
            found[name].append((SESSIONS / seconds, baseline / seconds))
    print(f"{'':36}{'sessions/s':>12}{'of the C dumper':>18}{'min':>8}{'max':>8}")
    for name, results in found.items():
        rates, ratios = zip(*results, strict=True)
        median = statistics.median(ratios)
        print(f"{name:36}{statistics.median(rates):12.0f}{median:18.2f}{min(ratios):8.2f}{max(ratios):8.2f}")


if __name__ == "__main__":
    main()
