"""A data set kept up to date is the one that would be built anew, whatever landed when, and whoever was at work."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow.compute as pc
import pyarrow.dataset
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import UsageRejected
from storage.local import LocalStore
from storage.objects import StoreSettings
from storage.usage_dataset import newest_manifest
from tests.memory_store import Killed, MemoryStore, killing
from tests.usage_reference import Seen, reference_calls
from tests.usage_sessions import claude, count, land, rows

DAYS = ("2026-03-01T10:00:00Z", "2026-03-01T23:59:59.999Z", "2026-03-02T00:00:00Z", "2026-03-05T07:00:00Z")
CALLS = st.builds(
    lambda key, output, time, input, read: claude(
        key, output, time=time, usage={"input_tokens": input, "cache_read_input_tokens": read}
    ),
    st.sampled_from([f"m{number}" for number in range(6)]),
    st.integers(1, 3),
    st.sampled_from([*DAYS, ""]),
    st.integers(0, 2),
    st.integers(0, 1),
)
FILES = st.tuples(st.sampled_from("abc"), st.sampled_from(["main", "x1"]), st.lists(CALLS, max_size=4))
LANDINGS = st.lists(st.tuples(FILES, st.booleans()), min_size=1, max_size=9)
FACTS = ("session_id", "input_uncached", "cache_read", "output", "copies_seen")


def data_files(usage: MemoryStore) -> dict[str, bytes]:
    return {key: data for key, data in usage.objects.items() if key.startswith("date=")}


def rebuilt(zone: MemoryStore) -> dict[str, bytes]:
    usage = MemoryStore()
    count(zone, usage)
    return data_files(usage)


@settings(max_examples=25, deadline=None)
@given(LANDINGS, st.randoms(use_true_random=False))
def test_any_runs_over_any_landings_come_to_one_run_and_to_the_plain_count(landings: Any, chance: Any) -> None:
    zone, usage = MemoryStore(), MemoryStore()
    seen: list[Seen] = []
    sequences: dict[str, list[int]] = {name: list(range(1, 10)) for name in "abc"}
    for name in sequences:
        chance.shuffle(sequences[name])  # a file may land after one with a higher sequence
    for (session, stream, calls), is_counted in landings:
        seq = sequences[session].pop()
        land(zone, session, calls, seq=seq, stream=stream)
        seen += [Seen(session, seq, row, call) for row, call in enumerate(calls, 1)]
        if is_counted:
            count(zone, usage, batch_rows=chance.choice([1, 3, 1_000_000]))
    count(zone, usage)
    assert data_files(usage) == rebuilt(zone)
    before = dict(usage.objects)
    assert not count(zone, usage).changed
    assert usage.objects == before
    expected = reference_calls(seen)
    found = {row["call_key"]: row for row in rows(usage)}
    assert found.keys() == expected.keys()
    for key, row in found.items():
        assert {name: row[name] for name in FACTS} == {name: expected[key][name] for name in FACTS}
        evidence = expected[key]["evidence"]
        assert (row["evidence_key"].partition("/")[0], row["evidence_seq"], row["evidence_row"]) == evidence
        time = expected[key]["call_time"]
        assert row["call_time"] == (datetime.fromisoformat(time).astimezone(UTC) if time else None)


def test_new_evidence_writes_only_the_days_that_it_changes() -> None:
    zone, usage = MemoryStore(), MemoryStore()
    land(zone, "a", [claude("m1", 1, time=DAYS[0]), claude("m2", 1, time=DAYS[2]), claude("m3", 1, time=DAYS[3])])
    count(zone, usage)
    first = data_files(usage)
    land(zone, "a", [claude("m2", 9, time=DAYS[2]), claude("m1", 1, time=DAYS[0])], seq=2)
    assert count(zone, usage).days_written == 2
    second = data_files(usage)
    kept = {key for key in first if "date=2026-03-05" in key}
    assert first.keys() & second.keys() == kept
    assert rows(usage, "call_key", "output", "copies_seen") == [("m1", 1, 2), ("m2", 9, 2), ("m3", 1, 1)]


def test_a_call_that_turns_out_to_be_of_another_day_leaves_the_first() -> None:
    zone, usage = MemoryStore(), MemoryStore()
    land(zone, "a", [claude("m1", 1, time=DAYS[0])])
    count(zone, usage)
    land(zone, "a", [claude("m1", 2, time=DAYS[2])], seq=2)
    count(zone, usage)
    assert [key.partition("/")[0] for key in data_files(usage)] == ["date=2026-03-02"]


def test_only_the_wanted_session_is_counted() -> None:
    zone, usage = MemoryStore(), MemoryStore()
    for name in "ab":
        land(zone, name, [claude(f"m-{name}", 1)])
    count(zone, usage, sessions=("b",))
    assert rows(usage, "call_key") == ["m-b"]
    count(zone, usage)
    assert data_files(usage) == rebuilt(zone)


def test_one_session_is_not_all_that_is_left_when_the_state_is_lost() -> None:
    zone, usage = MemoryStore(), MemoryStore()
    for name in "ab":
        land(zone, name, [claude(f"m-{name}", 1)])
    count(zone, usage)
    for key in [key for key in usage.objects if key.startswith("_state/")]:
        del usage.objects[key]
    count(zone, usage, sessions=("b",))
    assert rows(usage, "call_key") == ["m-a", "m-b"]


@pytest.mark.parametrize("gone", ["date=", "_state/candidates", "_state/sessions", "_manifest/"])
def test_what_is_lost_of_a_data_set_comes_back_byte_for_byte(gone: str) -> None:
    zone, usage = MemoryStore(), MemoryStore()
    land(zone, "a", [claude("m1", 1, time=DAYS[0]), claude("m2", 1, time=DAYS[2])])
    count(zone, usage)
    whole = data_files(usage)
    for key in [key for key in usage.objects if key.startswith(gone)]:
        del usage.objects[key]
    count(zone, usage)
    assert data_files(usage) == whole
    assert not count(zone, usage).changed


def test_a_file_that_is_not_as_it_was_written_is_named_and_can_be_taken_out() -> None:
    zone, usage = MemoryStore(), MemoryStore()
    land(zone, "a", [claude("m1", 1, time=DAYS[0])])
    count(zone, usage)
    (key,) = data_files(usage)
    usage.objects[key] = usage.objects[key][:-1] + b"?"
    land(zone, "a", [claude("m2", 1, time=DAYS[0])], seq=2)
    with pytest.raises(UsageRejected, match="digest: it does not hold what was written; delete it"):
        count(zone, usage)
    del usage.objects[key]
    count(zone, usage)
    assert data_files(usage) == rebuilt(zone)


def test_a_data_set_of_another_schema_version_is_left_alone() -> None:
    zone, usage = MemoryStore(), MemoryStore()
    land(zone, "a", [claude("m1", 1)])
    count(zone, usage)
    key = "_manifest/m000001.json"
    usage.objects[key] = usage.objects[key].replace(b'"schema_version": 1,', b'"schema_version": 99,')
    before = dict(usage.objects)
    with pytest.raises(UsageRejected, match="its schema version is 99"):
        count(zone, usage)
    assert usage.objects == before


def test_many_runs_leave_few_files() -> None:
    zone, usage = MemoryStore(), MemoryStore()
    for seq in range(1, 25):
        land(zone, "a", [claude(f"m{seq}", 1, time=DAYS[seq % 4])], seq=seq)
        count(zone, usage)
    assert len(data_files(usage)) == 3
    assert len([key for key in usage.objects if key.startswith("_state/candidates")]) <= 5
    assert len([key for key in usage.objects if key.startswith("_manifest/")]) <= 16
    assert data_files(usage) == rebuilt(zone)


def test_a_day_of_many_calls_is_divided_and_put_together_the_same() -> None:
    zone, usage = MemoryStore(), MemoryStore()
    land(zone, "a", [claude(f"m{number}", 1) for number in range(7)])
    count(zone, usage, part_rows=3)
    assert len(data_files(usage)) == 3
    assert rows(usage, "call_key") == [f"m{number}" for number in range(7)]
    land(zone, "a", [claude("m3", 5)], seq=2)
    count(zone, usage, part_rows=3)
    assert rows(usage, "output") == [1, 1, 1, 5, 1, 1, 1]


def test_a_run_that_dies_anywhere_leaves_a_whole_data_set_and_the_next_one_the_right_one() -> None:
    zone = MemoryStore()
    land(zone, "a", [claude("m1", 1, time=DAYS[0]), claude("m2", 1, time=DAYS[2])])
    start = MemoryStore()
    count(zone, start)
    land(zone, "a", [claude("m1", 5, time=DAYS[2]), claude("m3", 1, time=DAYS[3])], seq=2)
    expected = rebuilt(zone)
    states = [rows(start, "call_key", "output")]
    after = MemoryStore()
    count(zone, after)
    states.append(rows(after, "call_key", "output"))
    for at in range(1, 200, 2):
        usage = MemoryStore()
        usage.objects = dict(start.objects)
        dying = usage.beside(killing(at))
        try:
            count(zone, dying)
        except Killed:
            assert rows(usage, "call_key", "output") in states
        else:
            break
        count(zone, usage)
        assert data_files(usage) == expected
    assert at > 10


@pytest.mark.parametrize("at", range(1, 40, 3))
def test_another_writer_in_between_is_neither_lost_nor_counted_twice(at: int) -> None:
    zone, usage = MemoryStore(), MemoryStore()
    land(zone, "a", [claude("m1", 1, time=DAYS[0])])
    count(zone, usage)
    land(zone, "a", [claude("m2", 1, time=DAYS[0])], seq=2)

    def other() -> None:
        land(zone, "b", [claude("m3", 1, time=DAYS[0]), claude("m1", 4, time=DAYS[0])])
        count(zone, usage)

    count(zone, usage.beside(killing(10_000, other, at)))
    count(zone, usage)
    assert data_files(usage) == rebuilt(zone)
    manifest = newest_manifest(usage)
    assert manifest is not None
    assert {each.key for each in manifest.files} == set(data_files(usage))


def test_folders_on_a_disk_hold_what_the_manifest_names(tmp_path: Path) -> None:
    zone, usage = MemoryStore(), LocalStore(str(tmp_path), StoreSettings())
    land(zone, "a", [claude("m1", 1, time=DAYS[0])])
    count(zone, usage)
    land(zone, "a", [claude("m2", 1, time=DAYS[0])], seq=2)
    count(zone, usage)
    (part,) = tmp_path.glob("date=*/source=*/*.parquet")
    assert part.parent == tmp_path / "date=2026-03-01/source=claude-code"
    manifest = newest_manifest(usage)
    assert manifest is not None
    assert [each.key for each in manifest.files] == [str(part.relative_to(tmp_path))]


def test_all_parquet_files_below_a_data_set_are_rows_of_calls_to_any_engine(tmp_path: Path) -> None:
    zone, usage = MemoryStore(), LocalStore(str(tmp_path), StoreSettings())
    land(zone, "a", [claude("m1", 2, time=DAYS[0]), claude("m2", 3, time=DAYS[3], model="my-local-1")])
    count(zone, usage)  # a day with a cost, and one on which nothing is known of any
    pattern = f"{tmp_path}/**/*.parquet"
    calls = pl.scan_parquet(pattern, hive_partitioning=True).collect()
    by_polars = calls.select(pl.len(), pl.col("output").sum(), pl.col("cost_microusd").count()).row(0)
    with duckdb.connect() as connection:
        question = "SELECT count(*), sum(output), count(cost_microusd) FROM read_parquet(?, hive_partitioning = true)"
        by_duckdb = connection.execute(question, [pattern]).fetchone()
    table = pyarrow.dataset.dataset(tmp_path, partitioning="hive").to_table()
    by_pyarrow = (table.num_rows, pc.sum(table["output"]).as_py(), table.num_rows - table["cost_microusd"].null_count)
    assert by_polars == by_duckdb == by_pyarrow == (2, 5, 1)
