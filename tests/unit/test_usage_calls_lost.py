"""Companions that are gone while their claims stay: their files' records count, and it is said until they are back."""

from __future__ import annotations

import pytest

from schemas.session_data import Usage
from storage.landings import calls_key
from storage.zone import Zone
from tasks.usage.lost import counted_sessions, lost_evidence
from tests.memory_store import MemoryStore
from tests.usage_sessions import claude, count, dsh, land, land_bare, rows, sd_name

CALLS = [
    claude("m1", 100, usage={"cache_creation": {"ephemeral_1h_input_tokens": 40}, "cache_creation_input_tokens": 40}),
    claude("m2", 50, cwd="/srv/app"),
]
TOKENS = ("call_key", "input_uncached", "cache_write_1h", "cache_write_unknown", "output", "project", "source")
BY_COMPANION = [
    ("m1", 10, 40, 0, 100, None, "claude-code"),
    ("m2", 10, 0, 0, 50, "/srv/app", "claude-code"),
]
BY_RECORDS = [
    ("m1", 10, 0, 40, 100, None, "claude-code"),
    ("m2", 10, 0, 0, 50, None, "claude-code"),
]


def data_files(usage: MemoryStore) -> dict[str, bytes]:
    return {key: data for key, data in usage.objects.items() if key.startswith("date=")}


def rebuilt(zone: MemoryStore) -> dict[str, bytes]:
    usage = MemoryStore()
    count(zone, usage)
    return data_files(usage)


def test_without_its_companion_a_files_records_count_and_the_companion_is_named_every_time() -> None:
    zone, usage = MemoryStore(), MemoryStore()
    land(zone, "a", CALLS)
    del zone.objects[calls_key("a", 1)]
    outcome = count(zone, usage)
    (problem,) = outcome.problems
    assert (problem.session, problem.file, problem.rule) == ("a", "_calls/a/000001.jsonl.zst", "calls_lost")
    assert "put it back from a copy of the zone" in problem.detail
    assert f"without it the records of {sd_name('a', 1)} count" in problem.detail
    assert rows(usage, *TOKENS) == BY_RECORDS
    before = dict(usage.objects)
    again = count(zone, usage)
    assert (again.changed, again.problems, again.exit_code) == (False, [problem], 1)
    assert usage.objects == before


@pytest.mark.parametrize("is_counted_between", [False, True])
def test_a_companion_that_comes_back_sets_the_count_right(is_counted_between: bool) -> None:
    zone, usage = MemoryStore(), MemoryStore()
    land(zone, "a", CALLS)
    land(zone, "a", [claude("m1", 90), claude("m3", 5)], seq=2)
    lost = {seq: zone.objects.pop(calls_key("a", seq)) for seq in (1, 2)}
    count(zone, usage)
    zone.objects[calls_key("a", 2)] = lost[2]
    if is_counted_between:
        (problem,) = count(zone, usage).problems
        assert problem.file == calls_key("a", 1)
        assert data_files(usage) == rebuilt(zone)
    land(zone, "b", [*CALLS, claude("m4", 7, time="2026-03-02T00:00:00Z")])
    zone.objects[calls_key("a", 1)] = lost[1]
    assert count(zone, usage).problems == []
    assert rows(usage, *TOKENS)[:2] == BY_COMPANION
    assert rows(usage, "call_key", "copies_seen") == [("m1", 3), ("m2", 2), ("m3", 1), ("m4", 1)]
    assert data_files(usage) == rebuilt(zone)
    before = dict(usage.objects)
    assert not count(zone, usage).changed
    assert usage.objects == before


def test_a_companion_that_is_lost_after_it_was_counted_is_named_by_who_compares() -> None:
    zone, usage = MemoryStore(), MemoryStore()
    land(zone, "a", CALLS)
    land(zone, "a", [], seq=2)
    land_bare(zone, "a", [("m3", "2026-03-01T12:00:00Z", Usage(in_=5, out=7))], seq=3)
    count(zone, usage)
    marks = counted_sessions(usage).values()
    assert lost_evidence(Zone(zone), marks) == []
    del zone.objects[calls_key("a", 1)]
    (problem,) = lost_evidence(Zone(zone), marks)
    assert (problem.file, problem.rule) == (calls_key("a", 1), "calls_lost")
    count(zone, usage)
    assert rows(usage, *TOKENS)[:2] == BY_COMPANION


def test_a_call_with_and_without_its_companion_is_one_call() -> None:
    zone, usage = MemoryStore(), MemoryStore()
    land(zone, "s", [dsh("s:t1.s1", 10, 3)], dialect="deepseek-harness/1")
    land(zone, "s", [dsh("s:t1.s1", 10, 5)], seq=2, dialect="deepseek-harness/1")
    del zone.objects[calls_key("s", 2)]
    count(zone, usage)
    columns = ("call_key", "source", "output", "copies_seen")
    assert rows(usage, *columns) == [("s:t1.s1", "deepseek-harness", 5, 2)]


def test_a_file_without_usage_lacks_nothing_and_its_claim_is_not_read_again() -> None:
    zone, usage = MemoryStore(), MemoryStore()
    land(zone, "a", [])
    assert count(zone, usage).problems == []
    zone.objects["_landing/a/000001.claim"] = b"?"
    assert count(zone, usage).problems == []


def test_a_claim_that_does_not_read_may_have_had_a_companion() -> None:
    zone, usage = MemoryStore(), MemoryStore()
    land(zone, "a", CALLS)
    lost, claim = zone.objects.pop(calls_key("a", 1)), zone.objects["_landing/a/000001.claim"]
    zone.objects["_landing/a/000001.claim"] = b"?"
    for _ in range(2):
        assert [(each.file, each.rule) for each in count(zone, usage).problems] == [
            ("_landing/a/000001.claim", "claim")
        ]
        assert rows(usage, *TOKENS) == BY_RECORDS
    zone.objects |= {calls_key("a", 1): lost, "_landing/a/000001.claim": claim}
    assert count(zone, usage).problems == []
    assert rows(usage, *TOKENS) == BY_COMPANION


def test_a_file_whose_records_do_not_read_either_is_counted_once_they_do() -> None:
    zone, usage = MemoryStore(), MemoryStore()
    land(zone, "a", CALLS)
    del zone.objects[calls_key("a", 1)]
    whole = zone.objects[sd_name("a", 1)]
    zone.objects[sd_name("a", 1)] = whole.replace(b'"out":50', b'"out":51')
    assert [each.rule for each in count(zone, usage).problems] == ["calls_lost", "digest"]
    assert rows(usage) == []
    zone.objects[sd_name("a", 1)] = whole
    assert [each.rule for each in count(zone, usage).problems] == ["calls_lost"]
    assert rows(usage, *TOKENS) == BY_RECORDS
