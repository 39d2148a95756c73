"""What logs of the current generation come to: each fact a correct reader must find, and how sessions are linked."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from schemas.dsh import StoredLog
from schemas.dsh_facts import Usage, facts_of
from schemas.dsh_lineage import delegations, forks
from tests.dsh_logs import read_json, read_root
from tests.golden import golden_cases

CASES = golden_cases("dsh-v4")
OF_THE_FILE = {"header", "frames"}
SPELLING = {"call_id": "callId", "compaction_id": "compactionId"}


def found_in(log: StoredLog) -> dict[str, Any]:
    """A session's facts under the names of the golden set."""
    facts = facts_of(log.header, log.events)
    found = {
        **_plain(dataclasses.asdict(facts)),
        "final_texts": [{"turn": turn, "text": text} for turn, text in facts.final_texts],
        "last_turn_end": facts.last_turn_end,
        "open_turn": facts.open_turn,
        "usage_total": facts.usage_total,
        "usage_total_with_compaction": facts.usage_total_with_compaction,
    }
    for compaction in found["compactions"]:
        assert compaction.pop("model")
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {SPELLING.get(key, key): _plain(each) for key, each in value.items()}
    return list(map(_plain, value)) if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_expected_fact_is_found(case: Path) -> None:
    for session, expected in read_json(case / "expected.json")["sessions"].items():
        found = found_in(read_root(case / "root")[session])
        names = expected.keys() - OF_THE_FILE
        assert {name: found[name] for name in names} == {name: expected[name] for name in names}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_tokens_of_all_sessions_add_up(case: Path) -> None:
    total: Usage = {}
    for log in read_root(case / "root").values():
        for name, tokens in facts_of(log.header, log.events).usage_total_with_compaction.items():
            total[name] = total.get(name, 0) + tokens
    assert total == read_json(case / "expected.json")["usage_total_all_sessions"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_links_between_sessions_are_found_by_the_firmest_evidence(case: Path) -> None:
    logs = read_root(case / "root").values()
    found: list[dict[str, Any]] = [{**dataclasses.asdict(fork), "kind": "fork"} for fork in forks(logs)]
    for parent in logs:
        for delegation in delegations(parent, logs):
            assert delegation.evidence == "result"
            link = {**dataclasses.asdict(delegation), "kind": "subagent", "notice_seqs": list(delegation.notice_seqs)}
            del link["evidence"]
            found.append(link)
    expected = read_json(case / "expected.json")["links"]
    assert sorted(found, key=lambda link: str(link["child"])) == sorted(expected, key=lambda link: str(link["child"]))
