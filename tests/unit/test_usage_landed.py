"""Sources as they are, landed and counted: what people reported of counters, from the first line on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from schemas.session_data import read_session_data
from storage.objects import ObjectStore, open_store
from storage.zone import Zone
from tasks.land.archive import land_archive
from tasks.land.claude_code import ClaudeCode
from tasks.land.codex import Codex
from tasks.land.dsh import DeepSeekHarness
from tasks.land.outcome import LandOptions
from tests.dsh_logs import answer, header, mark, numbered, turn
from tests.dsh_zone import put_log
from tests.memory_store import MemoryStore
from tests.usage_sessions import count, rows

NOW = 1_800_000_000_000_000_000
PARENT = "019bd9fd-1300-704f-8a4f-51d0c0e78bc1"
CHILD = "019bd9fd-2300-704f-8a4f-51d0c0e78bc2"
FIRST = "3758e554-dd3c-4170-89f8-eb139d3f8c97"
SECOND = "4758e554-dd3c-4170-89f8-eb139d3f8c98"


def land(dialect: Any, source: ObjectStore) -> MemoryStore:
    zone = MemoryStore()
    for outcome in land_archive(Zone(zone), source, dialect, dialect.discover(source), LandOptions(now=NOW)):
        assert outcome.problems == []
    return zone


def landed_codex(folder: Path) -> MemoryStore:
    dialect = Codex(open_store(folder))
    return land(dialect, dialect.source)


def counted(zone: MemoryStore) -> MemoryStore:
    usage = MemoryStore()
    assert count(zone, usage).problems == []
    return usage


def line(kind: str, time: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-03-01T10:{time}Z", "type": kind, "payload": payload}


def total(time: str, input: int, output: int = 0, reasoning: int = 0) -> dict[str, Any]:
    used = {"input_tokens": input, "cached_input_tokens": 0, "output_tokens": output}
    info = {"total_token_usage": {**used, "reasoning_output_tokens": reasoning}}
    return line("event_msg", time, type="token_count", info=info)


def rollout(folder: Path, thread: str, lines: list[dict[str, Any]]) -> None:
    path = folder / f"sessions/2026/03/01/rollout-2026-03-01T10-00-00-{thread}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))


def test_counters_that_repeat_and_fall_become_differences_and_never_less_than_nothing(tmp_path: Path) -> None:
    totals = [total(f"01:0{place}", tokens) for place, tokens in enumerate((1000, 1000, 2000, 400, 900), 1)]
    nothing = line("event_msg", "02:00", type="token_count", info=None)
    meta = line("session_meta", "00:00", id=PARENT, cwd="/srv/007", cli_version="0.46.0")
    model = line("turn_context", "00:01", model="gpt-5.1-codex", cwd="/srv/007")
    rollout(tmp_path, PARENT, [meta, model, *totals[:2], nothing, *totals[2:]])
    usage = counted(landed_codex(tmp_path))
    found = sorted(rows(usage, "call_time", "input_total", "project", "model"))
    assert [row[1:] for row in found] == [(tokens, "/srv/007", "gpt-5.1-codex") for tokens in (1000, 1000, 500)]


@pytest.mark.parametrize(
    ("written", "tokens"),
    [
        ({"cache_write_input_tokens": 30}, (60, 10, 30)),
        ({"cache_creation_input_tokens": 40}, (50, 10, 40)),
        ({"cache_write_input_tokens": 0, "cache_creation_input_tokens": 40}, (50, 10, 40)),
        ({"cache_write_input_tokens": 30, "cache_creation_input_tokens": 0}, (60, 10, 30)),
        ({"cache_write_input_tokens": 30, "cache_creation_input_tokens": 40}, (60, 10, 30)),
        ({"cache_write_input_tokens": -1, "cache_creation_input_tokens": 40}, (50, 10, 40)),
        ({}, (90, 10, 0)),
    ],
)
def test_what_was_written_to_a_cache_has_two_names_and_a_record_and_its_row_agree(
    written: dict[str, int], tokens: tuple[int, ...], tmp_path: Path
) -> None:
    used = {"input_tokens": 100, "cached_input_tokens": 10, **written, "output_tokens": 5}
    meta = line("session_meta", "00:00", id=PARENT, cwd="/srv/app", cli_version="0.171.0")
    response = line("token_usage_record", "01:00", thread_id=PARENT, turn_id="t", response_id="r1", usage=used)
    rollout(tmp_path, PARENT, [meta, response])
    zone = landed_codex(tmp_path)
    (landed,) = [read_session_data(data, name=key) for key, data in zone.objects.items() if key.endswith(".sd")]
    (said,) = [each.usage for each in landed.records if each.usage is not None]
    assert (said.in_, said.cache_read, said.cache_write) == tokens
    usage = counted(zone)
    assert rows(usage, "input_uncached", "cache_read", "cache_write_unknown", "input_total") == [(*tokens, 100)]


def test_a_fork_that_replays_its_parents_counts_has_only_its_own(tmp_path: Path) -> None:
    parent = line("session_meta", "00:00", id=PARENT, cwd="/srv/app", cli_version="0.46.0")
    history = [line("turn_context", "00:01", model="gpt-5.1-codex"), total("01:00", 1000, 10), total("02:00", 3000, 20)]
    rollout(tmp_path, PARENT, [parent, *history])
    own = line("session_meta", "30:00", id=CHILD, forked_from_id=PARENT, timestamp="2026-03-01T10:30:00Z")
    started = line("event_msg", "30:03", type="task_started", turn_id="t-own", started_at=1_772_361_003)
    copies = [{**each, "timestamp": f"2026-03-01T10:30:0{place}Z"} for place, each in enumerate([parent, *history])]
    rollout(tmp_path, CHILD, [own, *copies, started, total("30:04", 3120, 25, 3)])
    usage = counted(landed_codex(tmp_path))
    columns = ("session_id", "parent_session_id", "input_total", "output", "reasoning")
    assert sorted(rows(usage, *columns)) == [
        (PARENT, None, 1000, 10, 0),
        (PARENT, None, 2000, 10, 0),
        (CHILD, PARENT, 120, 5, 3),
    ]


def said(uuid: str, message: str, output: int, time: str, **fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": 4, "output_tokens": output}
    content = [{"type": "text", "text": "x"}]
    body = {"id": message, "model": "claude-sonnet-4-5", "stop_reason": None, "content": content, "usage": usage}
    return {"type": "assistant", "uuid": uuid, "timestamp": time, "cwd": "/srv/app", "message": {**body, **fields}}


def transcript(folder: Path, name: str, lines: list[dict[str, Any]]) -> None:
    path = folder / "projects" / "-srv-app" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))


def test_a_resumed_transcript_and_a_sub_agents_count_each_call_once(tmp_path: Path) -> None:
    history = [
        said("u1", "m1", 1, "2026-03-01T10:00:00Z"),
        said("u2", "m1", 260, "2026-03-01T10:00:01Z", stop_reason="end_turn"),
        said("u3", "m1", 1, "2026-03-01T10:00:02Z"),
    ]
    transcript(tmp_path, f"{FIRST}.jsonl", [{**each, "sessionId": FIRST} for each in history])
    own = said("u9", "m2", 7, "2026-03-02T10:00:00Z")
    transcript(tmp_path, f"{SECOND}.jsonl", [{**each, "sessionId": SECOND} for each in [*history, own]])
    aside = {**said("v1", "m3", 5, "2026-03-01T10:00:05Z"), "isSidechain": True, "sessionId": FIRST}
    transcript(tmp_path, f"{FIRST}/subagents/agent-ad44dfacb6876bcad.jsonl", [aside])
    usage = counted(land(ClaudeCode(), open_store(tmp_path / "projects")))
    columns = ("call_key", "session_id", "parent_session_id", "is_subagent", "output", "finished", "copies_seen")
    assert rows(usage, *columns) == [
        ("m1", FIRST, None, False, 260, True, 6),
        ("m2", SECOND, FIRST, False, 7, False, 1),
        ("m3", FIRST, FIRST, True, 5, False, 1),
    ]
    assert rows(usage, "evidence_row")[0] == 2


def test_parents_have_the_names_of_sessions_and_a_child_without_its_parents_log_names_it(tmp_path: Path) -> None:
    def said(number: int, output: int) -> list[dict[str, Any]]:
        return turn(number, answer(f"a{number}", turn=number, usage={"inputTokens": 3, "outputTokens": output}))

    first = said(1, 5)
    put_log(tmp_path, header(id="sé/x"), numbered(*first))
    forked = header(id="fork", parent_session="sé/x", seed_length=len(first), created_at=1_796_000_100_000)
    put_log(tmp_path, forked, numbered(*first, mark("session/end-seed"), *said(2, 7)))
    alone = header(id="child", parent_session="gone/x", origin="subagent", delegation_depth=1)
    put_log(tmp_path, alone, numbered(*said(1, 9)))
    dialect = DeepSeekHarness(open_store(tmp_path))
    usage = counted(land(dialect, dialect.source))
    assert sorted(rows(usage, "output", "session_id", "parent_session_id", "is_subagent")) == [
        (5, "s%C3%A9%2Fx", None, False),
        (7, "fork", "s%C3%A9%2Fx", False),
        (9, "child", "gone%2Fx", True),
    ]
