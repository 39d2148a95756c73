"""Golden Codex rollouts: landed and assembled, they come to what a correct reader must find in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard

from schemas.call_facts import read_call_facts
from schemas.session_data import Record, read_session_data, text_of
from storage.landings import calls_key
from storage.objects import open_store
from storage.zone import Zone
from tasks.assemble import AssembleOptions, assemble_session
from tasks.export.conversation import read_conversation
from tasks.export.exchanges import exchanges_of
from tasks.land.archive import land_archive
from tasks.land.codex import Codex
from tasks.land.outcome import LandOptions, SessionLanding
from tasks.verify import verify_session
from tests.golden import golden_cases

CASES = golden_cases("codex")
NOW = 1_800_000_000_000_000_000
OUTCOMES = {True: {"failed", "aborted"}, False: {"ok"}, None: {"unknown"}}
Facts = dict[str, Any]


def land(case: Path, zone: Zone, **options: int) -> list[SessionLanding]:
    codex = Codex(open_store(case))
    found = codex.discover(codex.source)
    return list(land_archive(zone, codex.source, codex, found, LandOptions(now=NOW, **options)))


def landed(zone: Zone, session: str) -> Iterator[tuple[str, Record, Facts]]:
    """Every record with its thread, and what stands beside it."""
    for ref in zone.landed_files(session):
        beside = zone.store.stat(calls_key(session, ref.seq))
        data = b"" if beside is None else zstandard.ZstdDecompressor().decompress(zone.store.read(beside.key))
        facts = {each.ord: each for each in read_call_facts(data, name=ref.key)}
        for record in read_session_data(zone.store.read(ref.key), name=ref.key).records:
            found = facts.get(record.ord)
            thread = session if ref.place == "main" else ref.place
            usage = {} if found is None else json.loads(bytes(found.usage))
            yield thread, record, {"key": (found and found.request_id) or None, **usage}


class Found:
    """One thread as its records tell it, under the names of the golden set."""

    def __init__(self) -> None:
        self.turns: dict[str, dict[str, Any]] = {}
        self.compactions = 0
        self.children: dict[str, str] = {}
        self._spoken: tuple[str, str, str | None] = ("", "", None)

    def add(self, record: Record, facts: Facts) -> None:
        empty: dict[str, Any] = {"prompts": [], "delegated": [], "final": None, "tools": {}, "usage": []}
        turn = self.turns.setdefault(record.run, empty) if record.run else empty
        texts = [text_of(part) for part in record.parts if part.k == "text"]
        if "external_input" in record.flags:
            turn["prompts"] += texts
        elif record.from_ == "external" and record.parts[0].k == "text" and not texts[0].startswith(("<", "# AGENTS")):
            turn["delegated"] += texts
        elif record.from_ == "agent" and texts:
            self._spoken = record.run, record.call, turn["final"]
            turn["final"] = texts[-1]
        for part in record.parts:
            if part.k == "call":
                turn["tools"][part.id] = [part.name, {"missing"}]
            elif part.k == "result":
                where = next(each for each in self.turns.values() if part.of in each["tools"])
                where["tools"][part.of][1] = OUTCOMES[part.failed]
        if record.child and "notification" not in record.trigger:
            self.children[record.child] = next(part.of for part in record.parts if part.k == "result")
        if record.usage is not None:
            turn["usage"].append(self._row(record, facts))
        if "context_reset" in record.flags:
            self._compacted()

    @staticmethod
    def _row(record: Record, facts: Facts) -> dict[str, Any]:
        assert record.usage is not None
        return {
            "key": facts["key"],
            "kind": "response",
            "model": record.model,
            "input_uncached": record.usage.in_,
            "cache_read": record.usage.cache_read,
            "cache_write": record.usage.cache_write,
            "output": record.usage.out,
            "reasoning": facts["reasoning_output_tokens"],
        }

    def _compacted(self) -> None:
        self.compactions += 1
        run, _, final = self._spoken
        self.turns[run]["final"] = final
        self.turns[run]["usage"][-1]["kind"] = "compaction"


def threads(zone: Zone) -> dict[str, Found]:
    found: dict[str, Found] = {}
    for session in zone.sessions():
        for thread, record, facts in landed(zone, session):
            found.setdefault(thread, Found()).add(record, facts)
    return found


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


def zone_at(path: Path) -> Zone:
    path.mkdir()
    return Zone(open_store(path))


def check(zone: Zone, expected: dict[str, Any]) -> None:
    found = threads(zone)
    assert sorted(found) == [each["thread"] for each in expected["threads"]]
    for thread in expected["threads"]:
        mine = found[thread["thread"]]
        assert mine.compactions == thread["compactions"]
        assert len(mine.turns) == len(thread["turns"])
        for (run, turn), wanted in zip(mine.turns.items(), thread["turns"], strict=True):
            assert wanted["turn"] in (run, None)
            assert {key: turn[key] for key in ("prompts", "delegated", "final", "usage")} == {
                key: wanted[key] for key in ("prompts", "delegated", "final", "usage")
            }
            assert [(call, name) for call, (name, _) in turn["tools"].items()] == [
                (tool["call_id"], tool["name"]) for tool in wanted["tools"]
            ]
            for tool in wanted["tools"]:
                assert tool["outcome"] in turn["tools"][tool["call_id"]][1]
        if call := thread["lineage"]["spawn_call"]:
            assert found[thread["lineage"]["parent_thread"]].children == {thread["thread"]: call}


def test_what_lands_is_what_the_rollouts_say(case: Path, tmp_path: Path) -> None:
    expected = json.loads((case / "expected.json").read_text())
    zone = zone_at(tmp_path / "zone")
    assert [problem for each in land(case, zone) for problem in each.problems] == []
    check(zone, expected)
    assert sorted(zone.sessions()) == sorted({each["session"] for each in expected["threads"]})
    assert not any(each.files for each in land(case, zone))


def test_passes_that_cut_anywhere_land_the_same(case: Path, tmp_path: Path) -> None:
    zone = zone_at(tmp_path / "zone")
    for _ in range(9):
        land(case, zone, max_delta_bytes=1500)
    whole = zone_at(tmp_path / "whole")
    land(case, whole)
    for session in whole.sessions():
        assert list(landed(zone, session)) == list(landed(whole, session))


def test_what_lands_assembles_and_verifies(case: Path, tmp_path: Path) -> None:
    expected = json.loads((case / "expected.json").read_text())
    zone = zone_at(tmp_path / "zone")
    land(case, zone)
    calls = 0
    started = set()
    for session in zone.sessions():
        assemble_session(zone, session, AssembleOptions(now=NOW))
        assert verify_session(zone, session).problems == []
        view = zone.chain(session).fold()
        facts = [json.loads(each.facts) for each in view.nodes.values()]
        calls += sum(each["kind"] == "llm.call" and each["attrs"]["usage"] == "observed_replayable" for each in facts)
        started |= {each for each in view.relations if each.startswith("rel/starts/")}
    assert calls == expected["calls"]
    spawned = [each for each in expected["threads"] if each["lineage"]["spawn_call"]]
    assert started == {f"rel/starts/tool_{each['lineage']['spawn_call']}/stream_{each['thread']}" for each in spawned}


def test_conversations_are_the_turns_that_people_had(case: Path, tmp_path: Path) -> None:
    expected = json.loads((case / "expected.json").read_text())
    zone = zone_at(tmp_path / "zone")
    land(case, zone)
    for session in zone.sessions():
        assemble_session(zone, session, AssembleOptions(now=NOW))
    for thread in expected["threads"]:
        if thread["kind"] not in ("root", "fork"):
            continue
        conversation = read_conversation(zone, thread["thread"])
        assert conversation is not None
        found = exchanges_of(conversation)
        turns = [turn for turn in thread["turns"] if turn["prompts"] and not turn["superseded"]]
        assert [[text for said in each.said for text in said.texts] for each in found] == [
            turn["prompts"] for turn in turns
        ]
        for exchange, turn in zip(found, turns, strict=True):
            answer = exchange.answer(last=False)
            stopped = turn["state"] in ("aborted", "failed")
            assert exchange.interrupted == stopped
            assert (answer and answer.texts[-1]) == (None if stopped else turn["final"])
            assert [call.tool.id for call in exchange.calls] == [tool["call_id"] for tool in turn["tools"]]


def told(record: Record) -> Facts:
    """The line that stands in a record as it is, or what is kept of it."""
    data = [part.data for part in record.parts if part.k == "data"]
    value = json.loads(bytes(data[0])) if data and isinstance(data[0], msgspec.Raw) else {}
    return value if isinstance(value, dict) else {}


def state_of(run: str, records: list[Record], thread: str) -> str:
    """How a turn ended, by the lines that are its own."""
    for record in records:
        if record.run == run and "turn_duration" in record.flags:
            return "completed"
        if record.run == run and record.flags and told(record).get("payload", {}).get("type") == "task_complete":
            return "failed"
        if record.run == run and told(record).get("payload", {}).get("type") == "turn_aborted":
            return "aborted"
    return "unknown" if run.startswith(thread) else "open"


def test_what_threads_say_of_themselves_and_how_their_turns_ended(case: Path, tmp_path: Path) -> None:
    expected = json.loads((case / "expected.json").read_text())
    zone = zone_at(tmp_path / "zone")
    problems = [(each.file, each.row) for outcome in land(case, zone) for each in outcome.problems]
    of_threads: dict[str, list[Record]] = {}
    sources: dict[str, set[str]] = {}
    torn: dict[str, int] = {}
    for session in zone.sessions():
        for thread, record, _ in landed(zone, session):
            of_threads.setdefault(thread, []).append(record)
        for ref in zone.landed_files(session):
            if ref.prefix.startswith("transcript"):
                place = session if ref.place == "main" else ref.place
                sources.setdefault(place, set()).add(
                    read_session_data(zone.store.read(ref.key), name=ref.key).header.src
                )
        for cursor in zone.cursors(session):
            if cursor.prefix.startswith("transcript"):
                place = session if cursor.place == "main" else cursor.place
                torn[place] = torn.get(place, 0) + int(cursor.values["size"]) - int(cursor.values["offset"])
    for thread in expected["threads"]:
        name, records = thread["thread"], of_threads[thread["thread"]]
        meta = told(records[0])
        base = meta.get("history_base") or {}
        assert sources[name] == set(thread["files"])
        assert (meta.get("cli_version"), meta.get("cwd")) == (thread["client"], thread["cwd"])
        assert meta.get("forked_from_id") == thread["lineage"]["forked_from"]
        assert base.get("end_ordinal_exclusive") == thread["lineage"]["fork_ordinal"]
        assert (meta.get("parent_thread_id") or None) == thread["lineage"]["parent_thread"]
        assert sorted({each.model for each in records if each.model}) == sorted(thread["models"])
        runs = list(dict.fromkeys(each.run for each in records if each.run))
        assert [state_of(run, records, name) for run in runs] == [turn["state"] for turn in thread["turns"]]
        assert [row for file, row in problems if file in thread["files"]] == thread["damaged_lines"]
        assert torn[name] == thread["torn_tail_bytes"]
        used = [each.usage for each in records if each.usage is not None]
        assert [sum(each.in_ for each in used), sum(each.cache_read for each in used)] == [
            thread["totals"]["input_uncached"],
            thread["totals"]["cache_read"],
        ]
        assert [sum(each.cache_write for each in used), sum(each.out for each in used), len(used)] == [
            thread["totals"]["cache_write"],
            thread["totals"]["output"],
            thread["calls"],
        ]
