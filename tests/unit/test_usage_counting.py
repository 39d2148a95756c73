"""Which calls are counted, once each, and what of: the reports that people filed about counters that were wrong."""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime
from typing import Any

import pytest
import zstandard

from schemas.session_data import Usage
from storage.landings import calls_key
from tasks.usage import RateCard, load_price_table
from tests.memory_store import MemoryStore
from tests.usage_sessions import claude, codex, count, dsh, land, land_bare, rows, sd_name

TOKENS = ("input_uncached", "cache_read", "cache_write_5m", "cache_write_1h", "cache_write_unknown", "output")


@pytest.fixture
def zone() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def usage() -> MemoryStore:
    return MemoryStore()


def test_two_blocks_of_one_message_are_one_call(zone: MemoryStore, usage: MemoryStore) -> None:
    land(zone, "a", [claude("m1", 9, id="u1", request_id="r1"), claude("m1", 9, id="u2", request_id="r1")])
    count(zone, usage)
    assert rows(usage, "call_key", "request_id", "output", "copies_seen") == [("m1", "r1", 9, 2)]


@pytest.mark.parametrize("order", list(itertools.permutations([1, 1, 260])))
def test_growing_output_counts_with_its_greatest_whatever_the_order(
    order: tuple[int, ...], zone: MemoryStore, usage: MemoryStore
) -> None:
    land(zone, "a", [claude("m1", output) for output in order])
    count(zone, usage)
    assert rows(usage, "call_key", "output", "copies_seen") == [("m1", 260, 3)]
    (row,) = rows(usage)
    assert row["evidence_row"] == order.index(260) + 1


def test_the_later_of_equal_rows_is_kept_whole(zone: MemoryStore, usage: MemoryStore) -> None:
    land(zone, "a", [claude("m1", 5, usage={"input_tokens": 90}), claude("m1", 5, usage={"input_tokens": 3})])
    land(zone, "a", [claude("m2", 5, usage={"input_tokens": 3})], seq=2)
    land(zone, "a", [claude("m2", 5, usage={"input_tokens": 90})], seq=3)
    count(zone, usage)
    assert rows(usage, "input_uncached", "evidence_seq", "evidence_row") == [(3, 1, 2), (90, 3, 1)]


def test_without_request_ids_a_message_is_still_one_call(zone: MemoryStore, usage: MemoryStore) -> None:
    land(zone, "a", [claude("m2", 4), claude("m2", 4, request_id=""), claude("m2", 4, request_id="r")])
    count(zone, usage)
    assert rows(usage, "call_key", "copies_seen") == [("m2", 3)]


def test_a_row_without_a_message_id_falls_back_to_what_it_has(zone: MemoryStore, usage: MemoryStore) -> None:
    land(zone, "a", [claude("", 1, request_id="r1", id="u1"), claude("", 2, id="u2"), claude("", 3), claude("", 3)])
    count(zone, usage)
    assert rows(usage, "call_key", "output") == [("a/1/3", 3), ("a/1/4", 3), ("r1", 1), ("u2", 2)]


def test_records_that_tell_neither_an_id_nor_their_row_are_calls_too(zone: MemoryStore, usage: MemoryStore) -> None:
    land(zone, "a", [claude("", 3), claude("m1", 4), claude("", 3)])
    facts = zstandard.decompress(zone.objects[calls_key("a", 1)])
    zone.objects[calls_key("a", 1)] = zstandard.compress(facts.replace(b'"row":', b'"line":'))
    assert count(zone, usage).problems == []
    assert rows(usage, "output", "evidence_row") == [(3, None), (3, None), (4, None)]


HISTORY = [claude("m1", 5, time="2026-03-01T10:00:00Z"), claude("m2", 6, time="2026-03-01T11:00:00Z")]
OWN = claude("m3", 7, time="2026-03-02T09:00:00Z")


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("b", "a")])
@pytest.mark.parametrize("copy_is_counted_first", [False, True])
def test_copies_in_a_resumed_session_belong_to_the_earliest_one(
    first: str, second: str, copy_is_counted_first: bool, zone: MemoryStore, usage: MemoryStore
) -> None:
    sessions = [(first, HISTORY), (second, [*HISTORY, OWN])]
    for session, calls in reversed(sessions) if copy_is_counted_first else sessions:
        land(zone, session, calls)
        count(zone, usage)
    columns = ("call_key", "session_id", "parent_session_id", "copies_seen", "evidence_key")
    assert rows(usage, *columns) == [
        ("m1", first, None, 2, sd_name(first, 1)),
        ("m2", first, None, 2, sd_name(first, 1)),
        ("m3", second, first, 1, sd_name(second, 1)),
    ]


def test_rows_that_name_another_session_are_its_copies(zone: MemoryStore, usage: MemoryStore) -> None:
    land(zone, "a-copy", [claude("m1", 5, session="z-origin")])
    count(zone, usage)
    assert rows(usage, "session_id") == ["a-copy"]
    land(zone, "z-origin", [claude("m1", 5, session="z-origin"), claude("m2", 5, time="2026-03-09T00:00:00Z")])
    count(zone, usage)
    assert rows(usage, "call_key", "session_id") == [("m1", "z-origin"), ("m2", "z-origin")]


def test_a_fork_of_a_fork_goes_on_from_the_nearer_one(zone: MemoryStore, usage: MemoryStore) -> None:
    land(zone, "a", HISTORY)
    land(zone, "b", [*HISTORY, OWN])
    land(zone, "c", [*HISTORY, OWN, claude("m4", 8, time="2026-03-03T09:00:00Z")])
    count(zone, usage)
    assert rows(usage, "call_key", "session_id", "parent_session_id") == [
        ("m1", "a", None),
        ("m2", "a", None),
        ("m3", "b", "a"),
        ("m4", "c", "b"),
    ]


def test_sub_agents_are_told_from_their_parent_and_each_call_counts_once(zone: MemoryStore, usage: MemoryStore) -> None:
    land(zone, "a", [claude("m1", 5)])
    land(zone, "a", [claude("m1", 5, side_chain=True), claude("m2", 6, side_chain=True)], seq=2, stream="a1")
    land(zone, "a", [claude("m3", 7, side_chain=True)], seq=3)
    count(zone, usage)
    columns = ("call_key", "stream_id", "is_subagent", "session_id", "parent_session_id")
    assert rows(usage, *columns) == [
        ("m1", "main", False, "a", None),
        ("m2", "a1", True, "a", "a"),
        ("m3", "main", True, "a", "a"),
    ]


def test_a_sub_agents_log_without_its_parents_is_still_a_sub_agents(zone: MemoryStore, usage: MemoryStore) -> None:
    alone = dsh("child:t1.s1", 10, 5, session="child", agent="child", forked_from="gone")
    forked = dsh("fork:t1.s1", 10, 5, session="fork", forked_from="gone")
    land(zone, "child", [alone], dialect="deepseek-harness/1")
    land(zone, "fork", [forked], dialect="deepseek-harness/1")
    count(zone, usage)
    assert rows(usage, "session_id", "parent_session_id", "is_subagent") == [
        ("child", "gone", True),
        ("fork", "gone", False),
    ]


def test_a_sub_agents_log_that_landed_by_itself_as_well_is_the_sessions_it_worked_for(
    zone: MemoryStore, usage: MemoryStore
) -> None:
    """It names itself in both places, and is a copy in neither."""
    work = dsh("child:t1.s1", 10, 5, session="child", agent="child", time="2026-03-02T10:00:00Z")
    land(zone, "top", [dsh("top:t1.s1", 20, 6, time="2026-03-02T09:00:00Z")], dialect="deepseek-harness/1")
    land(zone, "top", [work], dialect="deepseek-harness/1", seq=2, stream="child")
    land(zone, "child", [work], dialect="deepseek-harness/1")
    count(zone, usage)
    assert rows(usage, "call_key", "session_id") == [("child:t1.s1", "top"), ("top:t1.s1", "top")]


def test_what_a_client_made_up_makes_no_row(zone: MemoryStore, usage: MemoryStore) -> None:
    land(zone, "a", [claude("m1", 3, model="<synthetic>"), claude("m2", 0, usage={"input_tokens": 0})])
    outcome = count(zone, usage)
    assert (rows(usage), outcome.problem_count) == ([], 0)


def test_reasoning_is_part_of_output_and_never_added(zone: MemoryStore, usage: MemoryStore) -> None:
    land(
        zone,
        "a",
        [dsh("S:t1.s1", 10, 5, read=2, write=3, usage={"reasoningTokens": 2, "totalTokens": 20})],
        dialect="deepseek-harness/1",
    )
    count(zone, usage)
    (row,) = rows(usage)
    assert [row[name] for name in TOKENS] == [10, 2, 0, 0, 3, 5]
    assert (row["input_total"], row["reasoning"], row["input_total"] + row["output"]) == (15, 2, 20)
    assert row["source"] == "deepseek-harness"


def test_no_more_of_an_output_is_reasoning_than_there_is(zone: MemoryStore, usage: MemoryStore) -> None:
    land(zone, "a", [dsh("S:t1.s1", 10, 5, usage={"reasoningTokens": 9})], dialect="deepseek-harness/1")
    count(zone, usage)
    assert rows(usage, "output", "reasoning") == [(5, 5)]


def test_one_turn_and_step_of_two_sessions_are_two_calls(zone: MemoryStore, usage: MemoryStore) -> None:
    for session in ("s1", "s2"):
        land(zone, session, [dsh(f"{session}:t1.s1", 10, 5)] * 2, dialect="deepseek-harness/1")
    count(zone, usage)
    assert rows(usage, "call_key", "session_id", "copies_seen") == [("s1:t1.s1", "s1", 2), ("s2:t1.s1", "s2", 2)]


def test_both_conventions_of_input_come_to_one(zone: MemoryStore, usage: MemoryStore) -> None:
    cached = {"input_tokens": 5, "cache_read_input_tokens": 128955, "cache_creation_input_tokens": 1253}
    land(zone, "a", [claude("m1", 1, usage=cached)])
    land(zone, "c", [codex("c#1", 100, 80, 7, 3)], dialect="codex/1")
    count(zone, usage)
    assert rows(usage, *TOKENS, "input_total", "reasoning") == [
        (20, 80, 0, 0, 0, 7, 100, 3),
        (5, 128955, 0, 0, 1253, 1, 130213, None),
    ]


@pytest.mark.parametrize(
    ("written", "split", "counted"),
    [
        (3904, {"ephemeral_1h_input_tokens": 3904}, (0, 3904, 0)),
        (100, {"ephemeral_1h_input_tokens": 40}, (0, 40, 60)),
        (100, {"ephemeral_5m_input_tokens": 60, "ephemeral_1h_input_tokens": 40}, (60, 40, 0)),
        (0, {"ephemeral_5m_input_tokens": 60, "ephemeral_1h_input_tokens": 40}, (60, 40, 0)),
        (100, {"ephemeral_5m_input_tokens": 90, "ephemeral_1h_input_tokens": 40}, (0, 40, 60)),
        (100, None, (0, 0, 100)),
    ],
)
def test_cache_writes_are_split_as_far_as_the_split_agrees_with_the_whole(
    written: int, split: Any, counted: tuple[int, ...], zone: MemoryStore, usage: MemoryStore
) -> None:
    land(zone, "a", [claude("m1", 1, usage={"cache_creation_input_tokens": written, "cache_creation": split})])
    count(zone, usage)
    assert rows(usage, *TOKENS[2:5]) == [counted]


def test_small_servers_repeat_response_ids_and_a_turn_of_a_thread_tells_them_apart(
    zone: MemoryStore, usage: MemoryStore
) -> None:
    calls = [
        codex("t1#5", 10, 0, 1, request_id="r1", run="turn1"),
        codex("t1#6", 10, 0, 2, request_id="r1", run="turn1"),
        codex("t1#9", 10, 0, 3, request_id="r1", run="turn2"),
        codex("t1#12", 10, 0, 4, run="turn2"),
    ]
    land(zone, "t1", calls, dialect="codex/1")
    count(zone, usage)
    assert rows(usage, "call_key", "output") == [("t1#12", 4), ("t1/turn1/r1", 2), ("t1/turn2/r1", 3)]


def test_landed_by_somebody_else_only_session_data_speaks(zone: MemoryStore, usage: MemoryStore) -> None:
    used = Usage(in_=5, out=7, cache_read=11, cache_write=13)
    land_bare(zone, "a", [("m1", "2026-03-01T00:00:00Z", used), ("m1", "2026-03-01T00:00:01Z", used)])
    count(zone, usage)
    (row,) = rows(usage)
    assert [row[name] for name in TOKENS] == [5, 11, 0, 0, 13, 7]
    assert (row["source"], row["project"], row["copies_seen"]) == ("sessionizer", None, 2)


def test_a_message_landed_here_and_by_somebody_else_is_one_call(zone: MemoryStore, usage: MemoryStore) -> None:
    land(zone, "a", [claude("m1", 9)])
    land_bare(zone, "b", [("m1", "2026-03-01T12:00:00Z", Usage(in_=10, out=9))])
    count(zone, usage)
    assert rows(usage, "call_key", "session_id", "source", "copies_seen") == [("m1", "a", "claude-code", 2)]


def test_a_call_counts_on_its_utc_day(zone: MemoryStore, usage: MemoryStore) -> None:
    land(
        zone,
        "a",
        [claude("m1", 1, time="2026-03-08T07:30:00.25Z"), claude("m2", 1, time="2026-03-07T23:30:00.1234567-08:00")],
    )
    count(zone, usage)
    assert rows(usage, "date", "call_time") == [
        (date(2026, 3, 8), datetime(2026, 3, 8, 7, 30, 0, 250000, UTC)),
        (date(2026, 3, 8), datetime(2026, 3, 8, 7, 30, 0, 123456, UTC)),
    ]


def test_without_a_time_a_call_counts_on_the_first_day_of_its_session(zone: MemoryStore, usage: MemoryStore) -> None:
    land(zone, "a", [claude("m1", 1, time="2026-03-05T00:00:00Z"), claude("m2", 1, time="")])
    land(zone, "b", [claude("m3", 1, time="yesterday")])
    count(zone, usage)
    assert rows(usage, "call_key", "date", "call_time", "cost_status", "cost_microusd")[1:] == [
        ("m2", date(2026, 3, 5), None, "no_time", None),
        ("m3", date(2026, 3, 1), None, "no_time", None),
    ]


@pytest.mark.parametrize("far", ["2300-01-01T00:00:00Z", "1600-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_a_time_that_nanoseconds_do_not_hold_is_none_and_moves_no_other_call(
    far: str, zone: MemoryStore, usage: MemoryStore
) -> None:
    land(zone, "a", [claude("m1", 1, time=far), claude("m2", 1, time=""), claude("m3", 1, time="2026-03-05T00:00:00Z")])
    land(zone, "b", [claude("m4", 1, time=far)])
    count(zone, usage)
    assert rows(usage, "call_key", "date", "call_time", "cost_status") == [
        ("m1", date(2026, 3, 5), None, "no_time"),
        ("m2", date(2026, 3, 5), None, "no_time"),
        ("m3", date(2026, 3, 5), datetime(2026, 3, 5, tzinfo=UTC), "priced"),
        ("m4", date(2026, 3, 1), None, "no_time"),
    ]


@pytest.mark.parametrize("project", ["007", "123", "abc", "None", "__HIVE_DEFAULT_PARTITION__", "a/b=c%20\n"])
def test_projects_stay_the_text_they_are(project: str, zone: MemoryStore, usage: MemoryStore) -> None:
    land(zone, "a", [claude("m1", 1, cwd=project), claude("m2", 1, cwd="")])
    count(zone, usage)
    assert rows(usage, "project") == [project, None]
    assert all(project not in key or project == "a" for key in usage.objects)


def test_a_damaged_file_is_named_and_the_others_are_counted(zone: MemoryStore, usage: MemoryStore) -> None:
    land(zone, "a", [claude("m1", 1)])
    land(zone, "a", [claude("m2", 2)], seq=2)
    good = zone.objects[calls_key("a", 2)]
    zone.objects[calls_key("a", 2)] = good[:-3]
    for _ in range(2):
        outcome = count(zone, usage)
        assert [(problem.file, problem.rule) for problem in outcome.problems] == [(calls_key("a", 2), "calls")]
        assert (rows(usage, "call_key"), outcome.exit_code) == (["m1"], 1)
    zone.objects[calls_key("a", 2)] = good
    assert count(zone, usage).problems == []
    assert rows(usage, "call_key") == ["m1", "m2"]


def test_a_damaged_line_costs_nothing_but_itself(zone: MemoryStore, usage: MemoryStore) -> None:
    land(zone, "a", [claude("m1", 1), claude("m2", 2), claude("m3", 3, usage={"cache_creation": "none", "speed": 7})])
    lines = zstandard.decompress(zone.objects[calls_key("a", 1)]).split(b"\n")
    lines[1] = lines[1][:-9]
    zone.objects[calls_key("a", 1)] = zstandard.compress(b"\n".join(lines))
    outcome = count(zone, usage)
    assert [(problem.row, problem.rule) for problem in outcome.problems] == [(2, "undecodable")]
    assert rows(usage, "call_key") == ["m1", "m3"]


def test_landed_file_that_is_not_whole_is_not_counted(zone: MemoryStore, usage: MemoryStore) -> None:
    land_bare(zone, "a", [("m1", "2026-03-01T00:00:00Z", Usage(in_=5, out=7))])
    zone.objects[sd_name("a", 1)] = zone.objects[sd_name("a", 1)].replace(b'"out":7', b'"out":9')
    outcome = count(zone, usage)
    assert ([problem.rule for problem in outcome.problems], rows(usage)) == (["digest"], [])


def test_numbers_that_cannot_be_are_none_and_are_named(zone: MemoryStore, usage: MemoryStore) -> None:
    odd = {"input_tokens": -5, "output_tokens": 2**70, "cache_read_input_tokens": 4}
    land(zone, "a", [claude("m1", 1, usage=odd), claude("m2", 2**48, usage={"input_tokens": 2**62})])
    (first, second) = count(zone, usage).problems
    assert (first.file, first.row, first.rule) == (calls_key("a", 1), 1, "number")
    assert first.detail == "usage.output_tokens: no number is that large"
    assert (second.row, second.detail) == (2, "usage.input_tokens, usage.output_tokens: no number is that large")
    assert rows(usage, *TOKENS, "cost_microusd", "cost_status") == [
        (0, 4, 0, 0, 0, 0, None, "impossible_count"),
        (0, 0, 0, 0, 0, 0, None, "impossible_count"),
    ]


def test_the_largest_numbers_that_can_be_add_up(zone: MemoryStore, usage: MemoryStore) -> None:
    most = 2**48 - 1
    split = {"ephemeral_5m_input_tokens": most, "ephemeral_1h_input_tokens": most}
    large = {"input_tokens": most, "cache_read_input_tokens": most, "cache_creation": split}
    land(zone, "a", [claude("m1", most, usage=large, model="m")])
    rate = "'4000'"
    table = f"prices: [{{model: m, provider: p, rates: {{input: {rate}, output: {rate}}}}}]"
    assert count(zone, usage, RateCard(load_price_table([("prices.yaml", table.encode())]))).problems == []
    assert rows(usage, *TOKENS, "input_total", "cost_microusd", "cost_status") == [
        (most, most, most, most, 0, most, 4 * most, 5 * most * 4000, "priced")
    ]
