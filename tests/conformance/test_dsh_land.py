"""Golden DeepSeek Harness logs, landed: every accepted one line by line, every refused one named, and of the current
generation every fact that a correct reader must find, in the records and in what is assembled from them.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from schemas._utf16 import LONE_SURROGATE
from schemas.dsh import Event, LogHeader
from schemas.dsh_facts import inherited_count, text_of
from storage.dsh_sqlite import SessionDatabase
from storage.zone import Zone
from tests.conformance.test_dsh import ACCEPTED, ASKED_FOR, LATEST, REFUSED, SET_TO_COMPRESSED
from tests.dsh_logs import read_json, read_root
from tests.dsh_zone import assembled, calls, land, problems, records, told, zone_at
from tests.golden import golden_cases

REFUSED_WHEREVER_READ = [case for case in REFUSED if case.name not in {*ASKED_FOR, *SET_TO_COMPRESSED}]
"""Without those that a well-formed root is refused for because of how it is asked for."""
DATABASES = [case for case in golden_cases("dsh") if (case / "sessions.db").is_file()]
_TOKENS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
_OUTCOMES = {"ok": (False, "available"), "unknown": (True, "unknown"), "not-started": (True, "not-started")}


@pytest.mark.parametrize("case", REFUSED_WHEREVER_READ, ids=lambda case: case.name)
def test_a_refused_log_is_named_with_its_rule_and_nothing_of_it_lands(case: Path, tmp_path: Path) -> None:
    zone = zone_at(tmp_path / "zone")
    found = problems(land(case / "root", zone))
    assert found
    assert all(problem.rule and problem.detail for problem in found)
    assert zone.sessions() == []


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.name)
def test_an_accepted_log_lands_line_by_line_with_its_words_results_and_tokens(case: Path, tmp_path: Path) -> None:
    zone = zone_at(tmp_path / "zone")
    assert problems(land(case / "root", zone)) == []
    landed = {record.id.rpartition(":")[0] for session in zone.sessions() for _, record in records(zone, session)}
    logs = read_root(case / "root")
    assert landed - {""} == {session for session, log in logs.items() if log.events}
    for path in case.glob("events*.json"):
        golden = read_json(path)
        stored = logs[golden["meta"]["id"]]
        lines = [stored.events[line.first_seq] for line in stored.lines]
        _check_log(zone, stored.header, golden["events"][: len(stored.events)], lines)


@pytest.mark.parametrize("case", DATABASES, ids=lambda case: case.name)
def test_sessions_of_a_database_land_event_by_event(case: Path, tmp_path: Path) -> None:
    zone = zone_at(tmp_path / "zone")
    assert problems(land(case, zone)) == []
    for path in case.glob("events-*.json"):
        golden = read_json(path)
        with SessionDatabase(case / "sessions.db") as database:
            stored = database.read(golden["meta"]["id"])
        _check_log(zone, stored.header, golden["events"][: len(stored.events)], stored.events)
    for session in zone.sessions():
        assembled(zone, session)
    assert not any(each.files for each in land(case, zone))


def _check_log(zone: Zone, header: LogHeader, events: list[Event], lines: list[Event]) -> None:
    """What has landed of a log of these events, of which `lines` are the first of each line."""
    session, cut = header.id, inherited_count(header, events)
    mine = [
        record
        for name in zone.sessions()
        for stream, record in records(zone, name)
        if record.id.startswith(f"{session}:") or (not record.id and stream == "main" and name == session)
    ]
    own = events[cut:]
    say = told(mine)
    assert len([record for record in mine if record.id]) == len(
        [event for event in lines if event["seq"] >= cut and event["type"] != "session/title"]
    )
    assert [text for _, text in say.human] + say.injected == _texts(own, header, "user") + _texts(own, header, "")
    assert [text for _, _, text in say.answers if text] == [
        text for event in own if event["type"] == "assistant/message" and (text := _answer(event))
    ]
    assert [used for _, used in say.usage] == [
        tuple(event["data"]["usage"].get(name, 0) for name in _TOKENS)
        for event in own
        if event["type"] in ("assistant/message", "compaction/summary") and "usage" in event["data"]
    ]
    assert say.summaries == [_words(event["data"]["summary"]) for event in own if event["type"] == "compaction/summary"]
    assert sorted(each[1][2] for each in say.calls.values() if each[1]) == sorted(
        _words(event["data"]["message"]["content"][0]["content"])
        for event in own
        if event["type"] == "tool/result" and event["surfaceOp"] == "append"
    )


def _texts(events: list[Event], header: LogHeader, kind: str) -> list[str]:
    """What a person said, or with another kind what programs did; a child's first prompt is no person's."""
    said = [event["data"] for event in events if event["type"] == "user/message" and event["surfaceOp"] == "append"]
    delegated = [data["id"] for data in said if data["source"]["kind"] == "user"][: header.origin == "subagent"]
    mine = [data for data in said if (data["source"]["kind"] == "user" and data["id"] not in delegated) == bool(kind)]
    return [_words(data["content"]) for data in mine]


def _answer(event: Event) -> str:
    return _words(event["data"]["message"]["content"])


def _words(content: Any) -> str:
    """The text of a message; a surrogate without its partner cannot land as one."""
    return LONE_SURROGATE.sub("\ufffd", text_of(content))


@pytest.mark.parametrize("case", LATEST, ids=lambda case: case.name)
def test_what_lands_of_the_current_generation_says_every_expected_fact(case: Path, tmp_path: Path) -> None:
    zone = zone_at(tmp_path / "zone")
    assert problems(land(case / "root", zone)) == []
    expected = read_json(case / "expected.json")
    streams = {
        (name if stream == "main" else stream): [record for at, record in records(zone, name) if at == stream]
        for name in zone.sessions()
        for stream in {at for at, _ in records(zone, name)}
    }
    assert streams.keys() == expected["sessions"].keys()
    total = dict.fromkeys(_TOKENS, 0)
    for session, facts in expected["sessions"].items():
        say = told(streams[session])
        own_turns = [turn for turn in facts["turns"] if not turn["inherited"]]
        runs = {turn["turn"]: f"{session}:t{turn['turn']}" for turn in own_turns}
        assert say.inherited == facts["inherited_events"]
        assert say.human == [(runs.get(each["turn"], ""), each["text"]) for each in facts["human_prompts"]]
        assert len(say.injected) == len(facts["delegated_prompts"]) + len(facts["injected"]) - len(facts["compactions"])
        assert say.injected[: len(facts["delegated_prompts"])] == [each["text"] for each in facts["delegated_prompts"]]
        assert say.ends == {runs[turn["turn"]]: turn["end"] for turn in own_turns}
        for turn in own_turns:
            texts = [text for run, _, text in say.answers if run == runs[turn["turn"]] and text]
            assert (texts[-1] if texts else None) == turn["final_text"]
        assert list(say.calls) == [f"{session}:{call['callId']}" for call in facts["tool_calls"]]
        for call in facts["tool_calls"]:
            name, (failed, state, _) = say.calls[f"{session}:{call['callId']}"]
            assert name == call["name"]
            assert (failed, state) == _OUTCOMES.get(call["outcome"], (True, "available"))
        assert [(call, used) for call, used in say.usage if ":c:" not in call] == [
            (f"{session}:t{step['turn']}.s{step['step']}", tuple(step["usage"][name] for name in _TOKENS))
            for step in facts["steps"]
            if step["usage"]
        ]
        assert len(say.attempts) == sum(step["attempts_failed"] for step in facts["steps"])
        assert len(say.retries) == sum(step["retries"] for step in facts["steps"])
        assert list(say.models) == facts["models"]
        assert say.summaries == [each["summary"] for each in facts["compactions"]]
        assert [reset for reset, _ in say.resets] == [
            f"{session}:{each['checkpoint_seq']}" for each in facts["compactions"]
        ]
        if streams.keys() == {session} or session in zone.sessions():
            assert say.labels == facts["title_history"]
        for _, used in say.usage:
            for name, tokens in zip(_TOKENS, used, strict=True):
                total[name] += tokens
    assert total == {name: expected["usage_total_all_sessions"].get(name, 0) for name in _TOKENS}
    beside = [json.loads(bytes(each.usage)) for name in zone.sessions() for each in calls(zone, name)]
    assert {name: sum(each.get(name, 0) for each in beside) for name in _TOKENS} == total


@pytest.mark.parametrize("case", LATEST, ids=lambda case: case.name)
def test_what_is_assembled_says_every_expected_fact(case: Path, tmp_path: Path) -> None:
    zone = zone_at(tmp_path / "zone")
    land(case / "root", zone)
    expected = read_json(case / "expected.json")
    links = [link for link in expected["links"] if link["kind"] == "subagent"]
    children = {link["child"] for link in links}
    started: dict[str, Any] = {}
    reported: list[str] = []
    for name in zone.sessions():
        found = assembled(zone, name)
        assert found["open"] == {}
        kinds = [node["kind"] for node in found["nodes"].values()]
        family = [name, *(link["child"] for link in links if link["parent"] == name)]
        facts = [expected["sessions"][session] for session in family]
        mine = facts[0]
        turns = [turn for each in facts for turn in each["turns"] if not turn["inherited"]]
        steps = [step for each in facts for step in each["steps"]]
        assert found["nodes"][f"session/{name}"]["attrs"]["title"] == mine["title"]
        humans = [turn for turn in mine["turns"] if not turn["inherited"] and turn["entered_by"] == ["user"]]
        assert kinds.count("talk") == len(humans) + len(family) - 1
        assert kinds.count("run") == len(turns)
        assert kinds.count("message.external") == sum(len(each["human_prompts"]) for each in facts)
        assert kinds.count("llm.call") == len([step for step in steps if step["model"]]) + sum(
            step["attempts_failed"] for step in steps
        ) + sum(len(each["compactions"]) for each in facts)
        assert kinds.count("tool") + kinds.count("agent.call") == sum(len(each["tool_calls"]) for each in facts)
        assert kinds.count("epoch.boundary") == kinds.count("epoch.summary") == len(mine["compactions"])
        assert kinds.count("error.api") == sum(step["attempts_failed"] for step in steps)
        for key, relation in found["relations"].items():
            if key.startswith("rel/starts/"):
                started[relation["to"]] = relation
            elif key.startswith("rel/reports/"):
                reported.append(relation["to"])
            elif key.startswith("rel/summarizes/"):
                assert relation["quality"] == "exact_unique"
    assert {to.removeprefix("stream/"): (each["from"], each["quality"]) for to, each in started.items()} == {
        link["child"]: (f"tool/{link['parent']}:{link['call_id']}", "exact_unique") for link in links
    }
    assert sorted(reported) == sorted(f"stream/{link['child']}" for link in links for _ in link["notice_seqs"])
    assert children.isdisjoint(zone.sessions())


GROWING = [
    case / "root"
    for kind in ("dsh", "dsh-v4")
    for case in golden_cases(kind)
    if kind == "dsh-v4" or (case in ACCEPTED and not list((case / "root").glob("*/dmg")))
    if case.name not in ("003-many-turns", "092-list-root")
]


@pytest.mark.parametrize("root", GROWING, ids=lambda root: root.parent.name)
def test_logs_that_grow_byte_by_byte_land_as_they_would_at_once(root: Path, tmp_path: Path) -> None:
    """All logs are cut to the same share of their bytes, in steps that end nowhere in particular."""
    paths = [path for path in root.rglob("*") if path.is_file()]
    zone, steps = zone_at(tmp_path / "zone"), 6
    for step in range(1, steps + 1):
        for path in paths:
            grown = tmp_path / "root" / path.relative_to(root)
            grown.parent.mkdir(parents=True, exist_ok=True)
            data = path.read_bytes()
            grown.write_bytes(data[: len(data) * step // steps])
        land(tmp_path / "root", zone)
    whole = zone_at(tmp_path / "whole")
    outcomes = land(root, whole)
    assert problems(land(tmp_path / "root", zone)) == []
    for session in whole.sessions():
        assert _by_stream(zone, session) == _by_stream(whole, session)
    assert {each.session for each in outcomes} == set(whole.sessions())
    shutil.rmtree(tmp_path / "zone")


def _by_stream(zone: Any, session: str) -> dict[str, list[Any]]:
    """The records of each stream; of descriptions of sub-agents, which land again when more is known, the last one."""
    found: dict[str, list[Any]] = {}
    for stream, record in records(zone, session):
        key = f"{stream} {'sidecar' if record.started_by else 'journal' if record.batch and not record.id else ''}"
        held = found.setdefault(key, [])
        if key.endswith("sidecar") or key.endswith("journal"):
            held.clear()
        held.append(record)
    return found
