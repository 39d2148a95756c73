"""What people reported of reading sessions, each report by its number with the value that is right.

The numbers are those of the collection of field reports; those on counting, prices and tables have their own tests.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
import zstandard

from schemas.call_facts import CallFacts, read_call_facts
from schemas.session_data import Record, read_session_data
from storage.landings import calls_key
from storage.objects import ObjectStat
from storage.zone import Zone
from tasks.assemble import AssembleOptions, assemble_session
from tasks.export.batch import export_sessions
from tasks.export.conversation import read_conversation
from tasks.export.exchanges import exchanges_of
from tasks.export.outcome import ExportOptions
from tasks.land.archive import land_archive
from tasks.land.kinds import recognise
from tasks.land.outcome import LandOptions, LandProblem
from tasks.verify import verify_session
from tests.memory_store import MemoryStore
from tests.unit.test_codex_records import OLD_TURN, PARENT, event, meta, read, started

S, T = "3758e554-dd3c-4170-89f8-eb139d3f8c97", "4758e554-dd3c-4170-89f8-eb139d3f8c97"
AGENT = "a0123456789abcdef"
MAIN = f"-srv-app/{S}.jsonl"
CODEX = "01a19b8a-7238-7001-8a01-51d0c0de1eef"
ROLLOUT = f"rollout-2026-11-02T09-15-04-{CODEX}.jsonl"
NOW = 1_772_359_200_000_000_000
Row = dict[str, Any]


def answer(uuid: str, message: str, output: int, *, request: str | None = "r", **row: Any) -> Row:
    body: Row = {"id": message, "model": "x", "content": [{"type": "text", "text": uuid}], "stop_reason": "end_turn"}
    body["usage"] = {"input_tokens": 4, "output_tokens": output}
    return {
        "type": "assistant",
        "uuid": uuid,
        "message": body,
        **({} if request is None else {"requestId": request}),
        **row,
    }


def asked(uuid: str, words: str = "go", **row: Any) -> Row:
    message = {"role": "user", "content": words}
    return {"type": "user", "uuid": uuid, "promptId": uuid, "origin": {"kind": "human"}, "message": message, **row}


def lines(*rows: Row) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


class Archive:
    """Files of an archive, and a zone that they land in."""

    def __init__(self, files: dict[str, bytes], kind: str = "claude-code") -> None:
        self.kind, self.source, self.held = kind, MemoryStore(), MemoryStore()
        self.source.objects |= files
        self.zone = Zone(self.held)

    def land(self, **options: int) -> list[LandProblem]:
        dialect, source, found = recognise(self.source, self.kind)
        outcomes = land_archive(self.zone, source, dialect, found, LandOptions(now=NOW, **options))
        return [problem for outcome in outcomes for problem in outcome.problems]

    def records(self, session: str = S, place: str = "main") -> list[Record]:
        refs = [ref for ref in self.zone.landed_files(session) if ref.place == place]
        return [each for ref in refs for each in read_session_data(self.zone.read(ref), name=ref.key).records]

    def facts(self, session: str = S) -> list[CallFacts]:
        keys = [calls_key(session, ref.seq) for ref in self.zone.landed_files(session)]
        there = [self.zone.store.read(key) for key in keys if self.zone.store.stat(key) is not None]
        return [fact for data in there for fact in read_call_facts(zstandard.decompress(data), name="calls")]

    def calls(self, session: str = S) -> list[tuple[str, str]]:
        """Each call of a model with the stream it was made in, once assembled and verified."""
        assemble_session(self.zone, session, AssembleOptions(now=NOW))
        assert verify_session(self.zone, session).problems == []
        nodes = {name: json.loads(node.facts) for name, node in self.zone.chain(session).fold().nodes.items()}
        return sorted((name, node.get("stream", "")) for name, node in nodes.items() if node["kind"] == "llm.call")

    def said(self, session: str = S) -> list[tuple[list[str], str | None]]:
        assemble_session(self.zone, session, AssembleOptions(now=NOW))
        conversation = read_conversation(self.zone, session)
        assert conversation is not None
        found = []
        for each in exchanges_of(conversation):
            last = each.answer(last=False)
            words = [text for said in each.said for text in said.texts]
            found.append((words, None if last is None else last.texts[-1]))
        return found


def test_report_1_and_2_lines_of_one_response_are_one_call_and_each_line_keeps_its_numbers() -> None:
    archive = Archive({MAIN: lines(asked("p"), answer("u1", "m1", 1), answer("u2", "m1", 1), answer("u3", "m1", 260))})
    assert archive.land() == []
    assert len(archive.calls()) == 1
    assert [
        (each.call, each.request_id, json.loads(bytes(each.usage))["output_tokens"]) for each in archive.facts()
    ] == [
        ("m1", "r", 1),
        ("m1", "r", 1),
        ("m1", "r", 260),
    ]


@pytest.mark.parametrize("request_id", [None, ""])
def test_report_3_row_without_a_request_id_has_an_empty_one_and_its_message_id(request_id: str | None) -> None:
    archive = Archive(
        {MAIN: lines(answer("u1", "m2", 9, request=request_id), answer("u2", "m2", 9, request=request_id))}
    )
    assert archive.land() == []
    assert [(each.request_id, each.call) for each in archive.facts()] == [("", "m2"), ("", "m2")]
    assert len(archive.calls()) == 1


def test_report_4_resumed_session_that_repeats_another_lands_whole_and_says_whose_the_lines_were() -> None:
    history = [asked("p", sessionId=S), answer("u1", "m1", 9, sessionId=S)]
    own = answer("u2", "m2", 7, sessionId=T)
    archive = Archive({MAIN: lines(*history), f"-srv-app/{T}.jsonl": lines(*history, own)})
    assert archive.land() == []
    assert [(each.call, each.session) for each in archive.facts(S)] == [("m1", S)]
    assert [(each.call, each.session) for each in archive.facts(T)] == [("m1", S), ("m2", T)]
    assert [each.id for each in archive.records(T)] == ["p", "u1", "u2"]


def count(total: int | None, last: int = 0) -> Row:
    used = {"total_token_usage": {"output_tokens": total}, "last_token_usage": {"output_tokens": last}}
    return event("token_count", info=None if total is None else used)


def outputs(records: list[Record]) -> list[int]:
    return [each.usage.out for each in records if each.usage is not None]


def test_report_5_fork_counts_its_own_tokens_alone() -> None:
    copied = [meta(id=PARENT), started(OLD_TURN), count(1000, 1000), count(2000, 1000)]
    assert outputs(read(meta(forked_from_id=PARENT), *copied, started(), count(3120, 1120))) == [1120]


def test_report_5_work_of_a_fork_in_the_second_of_its_making_is_its_own() -> None:
    assert outputs(read(meta(forked_from_id=PARENT), started(), count(2100, 100), count(2150, 50))) == [100, 50]


def test_report_6_counters_that_repeat_fall_and_are_empty() -> None:
    counts = [count(1000, 1000), count(None), count(1000, 1000), count(2000, 1000), count(400, 100), count(900, 500)]
    assert outputs(read(meta(), started(), *counts)) == [1000, 1000, 500]


def test_report_16_sub_agents_calls_are_its_streams_each_once() -> None:
    side = answer("c1", "m9", 5, isSidechain=True, agentId=AGENT)
    child = f"-srv-app/{S}/subagents/agent-{AGENT}.jsonl"
    archive = Archive({MAIN: lines(asked("p"), answer("u1", "m1", 9, isSidechain=False)), child: lines(side)})
    assert archive.land() == []
    assert [stream for _, stream in archive.calls()] == ["main", AGENT]
    assert [(each.call, each.side_chain, each.agent) for each in archive.facts()] == [
        ("m1", False, ""),
        ("m9", True, AGENT),
    ]


def test_report_20_enormous_line_between_two_calls_costs_neither_and_is_named() -> None:
    snapshot = {"type": "file-history-snapshot", "x": "y" * 10_000}
    archive = Archive({MAIN: lines(asked("p"), answer("u1", "m1", 1), snapshot, answer("u2", "m2", 2))})
    (problem,) = archive.land(max_line_bytes=1000, max_delta_bytes=500)
    assert (problem.rule, problem.row) == ("not_understood", 3)
    assert len(archive.calls()) == 2
    assert archive.records()[2].bytes == len(lines(snapshot)) - 1


@pytest.mark.parametrize("kind", ["claude-code", "codex"])
def test_report_21_mark_carriage_returns_and_half_a_line(kind: str) -> None:
    key = MAIN if kind == "claude-code" else f"sessions/{ROLLOUT}"
    session = S if kind == "claude-code" else CODEX
    rows = [asked("a"), asked("b"), asked("c")]
    one, two, three = (lines(row).replace(b"\n", b"\r\n") for row in rows)
    archive = Archive({key: b"\xef\xbb\xbf" + one + two + three[:30]}, kind)
    archive.land()
    assert [(each.off, each.bytes) for each in archive.records(session)] == [
        (0, len(one) + 2),
        (len(one) + 3, len(two) - 1),
    ]
    archive.source.objects[key] += three[30:]
    archive.land()
    assert [each.off for each in archive.records(session)] == [0, len(one) + 3, len(one) + len(two) + 3]


def test_report_21_bad_line_and_another_encoding_cost_only_themselves() -> None:
    latin = lines(asked("b", "caf?")).replace(b"?", b"\xe9")
    archive = Archive({MAIN: lines(asked("a")) + b"{bad\n" + latin + lines(answer("u", "m", 1))})
    assert [(each.rule, each.row) for each in archive.land()] == [("not_understood", 2)]
    assert archive.said() == [(["go"], None), (["caf\ufffd"], "u")]


def test_report_22_no_secret_of_a_result_or_of_a_broken_line_reaches_an_export() -> None:
    key = "sk-test-" + "a1B2c3D4" * 4
    use = {
        "type": "tool_use",
        "id": f"toolu_{key[8:16]}",
        "name": "Bash",
        "input": {"command": f'psql "password={key}x"'},
    }
    called = answer("u1", "m1", 1)
    called["message"]["content"] = [use]
    result = {"type": "tool_result", "tool_use_id": use["id"], "content": f"KEY={key}"}
    back: Row = {"type": "user", "uuid": "r", "promptId": "p", "message": {"content": [result]}}
    rows = (
        lines(asked("p", f"use KEY={key}"), called, back)
        + b'{"broken":"KEY='
        + key.encode()
        + b"\n"
        + lines(answer("u2", "m2", 1))
    )
    archive = Archive({MAIN: rows})
    assert [each.rule for each in archive.land()] == ["not_understood"]
    assemble_session(archive.zone, S, AssembleOptions(now=NOW))
    exports = MemoryStore()
    far = ExportOptions(as_of=NOW * 2, completed_after=0)
    # No record has a time here, so the session says itself that it is over.
    archive.source.objects[MAIN] += lines({"type": "result", "subtype": "success", "is_error": False})
    archive.land()
    assemble_session(archive.zone, S, AssembleOptions(now=NOW))
    (outcome,) = export_sessions(archive.zone, exports, [S], far)
    assert outcome.state == "written"
    assert outcome.file is not None
    assert sum(outcome.file.withheld.values()) >= 1
    written = b"".join(exports.objects.values())
    assert key.encode() not in written
    notes = b"".join(data for name, data in archive.held.objects.items() if name.startswith("_quarantine"))
    assert key.encode() not in notes


def test_also_seen_folder_worked_in_is_the_rows_word_not_the_projects_name() -> None:
    archive = Archive({MAIN: lines(answer("u1", "m1", 1, cwd="/srv/app-with-dash/x.y"))})
    archive.land()
    assert [each.cwd for each in archive.facts()] == ["/srv/app-with-dash/x.y"]


def test_also_seen_one_session_on_two_machines_is_one_session_and_the_other_copy_is_named() -> None:
    one, two = f"one/projects/{MAIN}", f"two/projects/{MAIN}"
    archive = Archive({one: lines(asked("a")), two: lines(asked("a"), asked("b"))})
    (problem,) = archive.land()
    assert (problem.file, problem.rule) == (two, "two_sources")
    assert problem.detail.startswith(f"{one} and {two} both map to ")
    assert problem.detail.endswith("only the first is read")
    assert archive.zone.sessions() == [S]
    assert [each.id for each in archive.records()] == ["a"]


class Shuffled(MemoryStore):
    """Lists its objects in any order."""

    def list(self, prefix: str) -> list[ObjectStat]:
        found = super().list(prefix)
        random.Random(len(prefix)).shuffle(found)
        return found


@pytest.mark.parametrize("kind", ["claude-code", "codex"])
def test_also_seen_order_of_a_listing_changes_nothing(kind: str) -> None:
    files = {f"-p{n}/{S[:-1]}{n}.jsonl": lines(asked("a"), answer("u", "m", n)) for n in range(5)}
    if kind == "codex":
        files = {f"sessions/{n}/{ROLLOUT}": lines(meta(), *[count(9, 9)] * n) for n in range(5)}
        files |= {f"archived_sessions/{ROLLOUT}": lines(meta(), count(9, 9)), f"sessions/0/a_{ROLLOUT}": b""}
    zones = []
    for store in (MemoryStore(), Shuffled()):
        archive = Archive(files, kind)
        archive.source.objects, store.objects = {}, archive.source.objects
        archive.source = store
        problems = archive.land()
        zones.append(({key: data for key, data in archive.held.objects.items() if "seen-" not in key}, problems))
    assert zones[0] == zones[1]


def test_also_seen_summary_of_a_compaction_is_not_the_persons_words() -> None:
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b"}
    summary = {
        "type": "user",
        "uuid": "s",
        "isCompactSummary": True,
        "message": {"content": "This session is being continued"},
    }
    rows = lines(asked("a"), answer("u1", "m1", 1), boundary, summary, asked("c", "next"), answer("u2", "m2", 1))
    archive = Archive({MAIN: rows})
    archive.land()
    assert archive.said() == [(["go"], "u1"), (["next"], "u2")]


@pytest.mark.parametrize(
    "places",
    [
        [f"sessions/2026/11/02/{ROLLOUT}"],
        [f"archived_sessions/{ROLLOUT}"],
        [f"sessions/2026/11/02/{ROLLOUT}", f"archived_sessions/{ROLLOUT}"],
        [f"archived_sessions/{ROLLOUT}.zst", f"sessions/2026/11/02/{ROLLOUT}.zst"],
        [f"sessions/{ROLLOUT}", f"sessions/{ROLLOUT}.zst"],
    ],
)
def test_also_seen_archived_thread_counts_once_wherever_it_lies(places: list[str]) -> None:
    body = lines(meta(), started(), count(7, 7))
    archive = Archive({}, "codex")
    for place in places:
        archive.source.objects[place] = zstandard.compress(body) if place.endswith(".zst") else body
        assert archive.land() == []
    assert [each.out for each in (record.usage for record in archive.records(CODEX)) if each is not None] == [7]
    assert len(archive.records(CODEX)) == 3
    for place in places[:-1]:
        del archive.source.objects[place]
    assert archive.land() == []
    assert len(archive.records(CODEX)) == 3
