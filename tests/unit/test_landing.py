"""Landing from a source that grows, tears, shrinks and goes, into a zone where anything may stop at any time."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest
import zstandard

from schemas.call_facts import CallFacts, read_call_facts
from schemas.session_data import LandedFile, Record, read_session_data
from storage.landings import calls_key
from storage.objects import open_store
from storage.zone import Zone
from tasks.land.archive import land_archive
from tasks.land.claude_code import ClaudeCode
from tasks.land.cursors import root_name
from tasks.land.outcome import LandOptions, SessionLanding
from tasks.land.quarantine import note_key, read_notes
from tests.memory_store import Killed, MemoryStore

SESSION = "3758e554-dd3c-4170-89f8-eb139d3f8c97"
AGENT = "ad44dfacb6876bcad"
MAIN = f"p/{SESSION}.jsonl"
CHILD = f"p/{SESSION}/subagents/agent-{AGENT}.jsonl"
META = f"p/{SESSION}/subagents/agent-{AGENT}.meta.json"
NOW = 1_772_359_200_000_000_000


def land(
    zone: MemoryStore, source: MemoryStore, delta: int = 1 << 20, line: int = 1 << 20, now: int = NOW
) -> list[SessionLanding]:
    options = LandOptions(now=now, max_delta_bytes=delta, max_line_bytes=line)
    dialect = ClaudeCode()
    return list(land_archive(Zone(zone), source, dialect, dialect.discover(source), options))


def land_folder(zone: MemoryStore, folder: Path) -> list[SessionLanding]:
    dialect, source = ClaudeCode(), open_store(folder)
    return list(land_archive(Zone(zone), source, dialect, dialect.discover(source), LandOptions(now=NOW)))


def files(zone: MemoryStore) -> list[LandedFile]:
    found = Zone(zone).landed_files(SESSION)
    assert [ref.seq for ref in found] == list(range(1, len(found) + 1))
    landed = [read_session_data(zone.read(ref.key), name=ref.key) for ref in found]
    assert [file.header.seq for file in landed] == [ref.seq for ref in found]
    return landed


def records(zone: MemoryStore, src: str = MAIN) -> list[Record]:
    """Every record of a source file, which must be its lines without a gap or a repetition."""
    found = [record for file in files(zone) if file.header.src == src for record in file.records]
    assert [record.ord for record in found] == list(range(1, len(found) + 1))
    off = 0
    for record in found:
        assert record.off == off
        off += record.bytes + 1
    return found


def rules(outcomes: list[SessionLanding]) -> list[str]:
    return [problem.rule for outcome in outcomes for problem in outcome.problems]


def lines(*names: str) -> bytes:
    return b"".join(json.dumps({"type": "user", "uuid": name}).encode() + b"\n" for name in names)


@pytest.fixture
def zone() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def source() -> MemoryStore:
    return MemoryStore()


def test_only_what_is_new_lands(zone: MemoryStore, source: MemoryStore) -> None:
    source.objects[MAIN] = lines("a", "b")
    land(zone, source)
    source.objects[MAIN] += lines("c")
    (outcome,) = land(zone, source)
    assert (outcome.files, outcome.records, outcome.source_bytes) == (1, 1, len(lines("c")))
    assert [record.id for record in records(zone)] == ["a", "b", "c"]
    assert [len(file.records) for file in files(zone)] == [2, 1]


def test_half_a_last_line_waits_for_its_rest(zone: MemoryStore, source: MemoryStore) -> None:
    source.objects[MAIN] = lines("a") + b'{"uuid":'
    (outcome,) = land(zone, source)
    assert (outcome.records, outcome.problem_count) == (1, 0)
    source.objects[MAIN] += b'"b"}\n'
    land(zone, source)
    assert [record.id for record in records(zone)] == ["a", "b"]


def test_landing_after_every_byte_gives_the_records_of_landing_once(zone: MemoryStore, source: MemoryStore) -> None:
    whole = b"\xef\xbb\xbf{}\r\n" + lines("a") + b"\n" + b"not json\n" + lines("b", "c") + b'{"uuid":'
    once, full = MemoryStore(), MemoryStore()
    full.objects[MAIN] = whole
    land(once, full)
    for end in range(1, len(whole) + 1):
        source.objects[MAIN] = whole[:end]
        land(zone, source)
    assert records(zone) == records(once)
    assert len(records(zone)) == 6


def test_windows_hold_at_most_so_many_bytes_but_for_a_longer_line(zone: MemoryStore, source: MemoryStore) -> None:
    source.objects[MAIN] = lines("a", "b", "c" * 100, "d")
    land(zone, source, delta=80)
    assert [[record.id[:1] for record in file.records] for file in files(zone)] == [["a", "b"], ["c", "d"]]


def test_line_too_long_for_memory_lands_by_its_digest_and_the_rest_as_it_is(
    zone: MemoryStore, source: MemoryStore
) -> None:
    source.objects[MAIN] = lines("a", "b" * 500, "c")
    (outcome,) = land(zone, source, delta=50, line=200)
    assert rules([outcome]) == ["not_understood"]
    found = records(zone)
    assert [record.id for record in found] == ["a", "", "c"]
    assert found[1].bytes == len(lines("b" * 500)) - 1
    assert found[1].parts[0].state == "unavailable"
    source.objects[MAIN] += lines("d")
    assert rules(land(zone, source, delta=50, line=200)) == []
    assert len(records(zone)) == 4


def test_line_too_long_that_has_no_end_yet_waits(zone: MemoryStore, source: MemoryStore) -> None:
    source.objects[MAIN] = lines("a") + b"x" * 500
    land(zone, source, delta=50, line=200)
    assert [record.id for record in records(zone)] == ["a"]


@pytest.mark.parametrize("changed", [lines("a"), lines("x", "b") + lines("c"), lines("a", "x")])
def test_source_that_was_cut_or_rewritten_is_a_conflict_that_stays(
    zone: MemoryStore, source: MemoryStore, changed: bytes
) -> None:
    source.objects[MAIN] = lines("a", "b")
    land(zone, source)
    source.objects[MAIN] = changed
    assert rules(land(zone, source)) == ["conflict"]
    source.objects[MAIN] = lines("a", "b", "c")
    assert rules(land(zone, source)) == ["conflict"]
    assert [record.id for record in records(zone)] == ["a", "b"]


def test_document_lands_whole_and_again_when_it_changes(zone: MemoryStore, source: MemoryStore) -> None:
    source.objects[META] = b'{"a":1}\r\n\n'
    land(zone, source)
    source.objects[META] = b'{"a":1}'
    land(zone, source)
    source.objects[META] = b'{"a":2}'
    land(zone, source)
    source.objects[META] = b"\n"
    land(zone, source)
    assert [(file.records[0].ord, file.records[0].bytes) for file in files(zone)] == [(1, 7), (1, 7)]


def test_source_file_that_goes_is_marked_and_what_it_landed_stays(zone: MemoryStore, source: MemoryStore) -> None:
    source.objects |= {MAIN: lines("a"), CHILD: lines("b")}
    land(zone, source)
    del source.objects[CHILD]
    assert rules(land(zone, source)) == []
    cursors = {cursor.place: cursor.values["state"] for cursor in Zone(zone).cursors(SESSION)}
    assert cursors == {"main": "active", AGENT: "source_gone"}
    del source.objects[MAIN]
    land(zone, source)
    assert {cursor.values["state"] for cursor in Zone(zone).cursors(SESSION)} == {"source_gone"}
    source.objects |= {MAIN: lines("a", "c")}
    land(zone, source)
    assert [record.id for record in records(zone)] == ["a", "c"]


def test_second_file_of_one_stream_is_named_and_left_alone(zone: MemoryStore, source: MemoryStore) -> None:
    source.objects |= {MAIN: lines("a"), f"q/{SESSION}.jsonl": lines("b")}
    assert rules(land(zone, source)) == ["two_sources"]
    assert [record.id for record in records(zone)] == ["a"]


def test_another_machines_older_copy_is_named_and_does_not_stop_the_owner(
    zone: MemoryStore, source: MemoryStore
) -> None:
    source.objects[MAIN] = lines("a", "b")
    land(zone, source)
    other = MemoryStore()
    other.url = "elsewhere"
    other.objects[MAIN] = lines("a")
    (problem,) = (problem for outcome in land(zone, other) for problem in outcome.problems)
    assert (problem.rule, problem.detail.partition(":")[0]) == ("conflict", "truncated")
    source.objects[MAIN] += lines("c")
    assert rules(land(zone, source)) == []
    assert [record.id for record in records(zone)] == ["a", "b", "c"]


def test_unchanged_session_is_not_looked_at(zone: MemoryStore, source: MemoryStore) -> None:
    source.objects[MAIN] = lines("a")
    land(zone, source)
    asked: list[str] = []
    (outcome,) = land(zone.beside(asked.append), source)
    assert outcome.unchanged
    assert asked == ["read", "read"]  # what had landed, and what was noted of places


@pytest.mark.parametrize("lost", [".cursor", "seen-"])
def test_lost_cursors_and_memory_come_back_without_landing_anything_twice(
    zone: MemoryStore, source: MemoryStore, lost: str
) -> None:
    source.objects |= {MAIN: lines("a", "b"), META: b"{}"}
    land(zone, source, delta=40)
    for key in [key for key in zone.objects if lost in key or "seen-" in key]:
        del zone.objects[key]
    before = dict(zone.objects)
    assert [outcome.files for outcome in land(zone, source, delta=40)] == [0]
    assert before.items() <= zone.objects.items()


def test_claims_give_up_the_file_once_it_has_landed(zone: MemoryStore, source: MemoryStore) -> None:
    source.objects[MAIN] = lines("a")
    land(zone, source)
    (claim,) = [data for key, data in zone.objects.items() if key.endswith(".claim")]
    assert claim.endswith(b"}\n")
    assert claim.count(b"\n") == 1


def test_claim_completes_even_when_its_source_is_gone(zone: MemoryStore, source: MemoryStore) -> None:
    source.objects[MAIN] = lines("a")

    def dies_after_its_claim(operation: str) -> None:
        if operation == "created":
            raise Killed

    with pytest.raises(Killed):
        land(zone.beside(dies_after_its_claim), source)
    assert files(zone) == []
    source.objects[MAIN] = lines("x", "y", "z")
    assert rules(land(zone, source)) == ["conflict"]
    assert [record.id for record in records(zone)] == ["a"]


def test_damaged_claim_is_named_and_the_rest_goes_on(zone: MemoryStore, source: MemoryStore) -> None:
    zone.objects[f"_landing/{SESSION}/000001.claim"] = b"{"
    source.objects[MAIN] = lines("a")
    assert rules(land(zone, source)) == ["claim"]
    assert [ref.seq for ref in Zone(zone).landed_files(SESSION)] == [2]


def test_names_that_cannot_be_keys_are_said_and_the_rest_lands(tmp_path: Path, zone: MemoryStore) -> None:
    for name in (b"p", b"not\xfftext", b"back\\slash"):
        folder = bytes(tmp_path) + b"/" + name
        os.mkdir(folder)
        with open(folder + b"/" + SESSION.encode() + b".jsonl", "wb") as file:
            file.write(lines("a"))
    run = tmp_path / "p" / SESSION / "subagents/workflows/two\nlines"
    run.mkdir(parents=True)
    (run / "journal.jsonl").write_bytes(lines("j"))
    done = land_folder(zone, tmp_path)
    assert sorted(rules(done)) == ["unlisted", "unlisted", "unreadable"]
    assert [record.id for record in records(zone)] == ["a"]
    assert [outcome.model_validate_json(outcome.model_dump_json()) for outcome in done] == done


def noted(zone: MemoryStore, source: MemoryStore) -> list[tuple[str, int | None, str]]:
    notes = read_notes(zone, note_key(SESSION, root_name(source)))
    return [(note.problem.rule, note.problem.row, note.first_seen) for note in notes]


def test_what_is_wrong_stands_in_a_note_until_it_is_right(zone: MemoryStore, source: MemoryStore) -> None:
    first, later = "2026-03-01T10:00:00Z", "2026-03-01T10:00:01Z"
    source.objects |= {MAIN: lines("a") + b"not json\n", f"q/{SESSION}.jsonl": lines("b")}
    land(zone, source)
    assert noted(zone, source) == [("not_understood", 2, first), ("two_sources", None, first)]
    source.objects[MAIN] += b"nor this\n"
    land(zone, source, now=NOW + 1_000_000_000)
    assert sorted(noted(zone, source)) == [
        ("not_understood", 2, first),
        ("not_understood", 3, later),
        ("two_sources", None, first),
    ]
    del source.objects[f"q/{SESSION}.jsonl"]
    land(zone, source, now=NOW + 1_000_000_000)
    assert noted(zone, source) == [("not_understood", 2, first), ("not_understood", 3, later)]


def test_note_goes_when_nothing_is_wrong_any_more(zone: MemoryStore, source: MemoryStore) -> None:
    source.objects |= {MAIN: lines("a"), f"q/{SESSION}.jsonl": lines("b")}
    land(zone, source)
    assert note_key(SESSION, root_name(source)) in zone.objects
    del source.objects[f"q/{SESSION}.jsonl"]
    land(zone, source)
    assert note_key(SESSION, root_name(source)) not in zone.objects
    assert Zone(zone).quarantined() == []


USAGE = '{"input_tokens":1,"cache_creation":{"ephemeral_1h_input_tokens":7}, "service_tier":"x"}'
CALL = (
    '{"type":"assistant","uuid":"u1","requestId":"r1","sessionId":"s","isSidechain":false,"agentId":null,"version":"2.1",'
    f'"cwd":"/srv","timestamp":"t","message":{{"id":"m1","model":"x","usage":{USAGE}}}}}\n'
).encode()


def calls(zone: MemoryStore, seq: int) -> list[CallFacts]:
    compressed = zone.objects[calls_key(SESSION, seq)]
    return read_call_facts(zstandard.ZstdDecompressor().decompress(compressed), name="calls")


def test_what_a_row_says_about_its_call_lies_beside_the_file(zone: MemoryStore, source: MemoryStore) -> None:
    source.objects |= {MAIN: lines("a") + CALL, CHILD: lines("b")}
    land(zone, source)
    assert calls(zone, 1) == [
        CallFacts(
            dialect="claude-code/1",
            ord=2,
            row=2,
            id="u1",
            call="m1",
            time="t",
            model="x",
            request_id="r1",
            usage=msgspec.Raw(USAGE.replace(" ", "").encode()),
            side_chain=False,
            session="s",
            cwd="/srv",
            client_version="2.1",
        )
    ]
    assert calls_key(SESSION, 2) not in zone.objects


def test_calls_of_a_claim_land_even_when_the_source_is_gone(zone: MemoryStore, source: MemoryStore) -> None:
    source.objects[MAIN] = CALL

    def dies_after_its_claim(operation: str) -> None:
        if operation == "created":
            raise Killed

    with pytest.raises(Killed):
        land(zone.beside(dies_after_its_claim), source)
    source.objects[MAIN] = b""
    land(zone, source)
    assert [each.request_id for each in calls(zone, 1)] == ["r1"]


def test_link_out_of_the_source_is_named_and_the_rest_lands(tmp_path: Path, zone: MemoryStore) -> None:
    (tmp_path / "projects/p").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(lines("s"))
    (tmp_path / f"projects/{MAIN}").symlink_to(tmp_path / "secret")
    child = tmp_path / f"projects/{CHILD}"
    child.parent.mkdir(parents=True)
    child.write_bytes(lines("a"))
    done = land_folder(zone, tmp_path / "projects")
    assert rules(done) == ["unreadable"]
    assert [record.id for record in records(zone, CHILD)] == ["a"]


def test_collector_that_listed_the_source_before_it_grew_takes_nothing_for_cut(
    zone: MemoryStore, source: MemoryStore
) -> None:
    source.objects |= {MAIN: lines("a", "b"), CHILD: lines("x")}
    calls: list[str] = []

    def another_comes_first(operation: str) -> None:
        calls.append(operation)
        if len(calls) == 2:
            source.objects |= {MAIN: lines("a", "b", "c"), CHILD: lines("x", "y")}
            land(zone, source)

    assert rules(land(zone.beside(another_comes_first), source)) == []
    assert rules(land(zone, source)) == []
    assert [record.id for record in records(zone)] == ["a", "b", "c"]
    assert [record.id for record in records(zone, CHILD)] == ["x", "y"]
