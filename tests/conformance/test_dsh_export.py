"""Golden DeepSeek Harness sessions as workflows: a turn for each prompt that was answered, with what it came to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from schemas.relavium_yaml_reader import read_yaml
from storage.objects import open_store
from tasks.export.batch import export_sessions
from tasks.export.outcome import ExportOptions
from tests.dsh_logs import read_json
from tests.dsh_zone import NOW, assembled, land, zone_at
from tests.golden import golden_cases

CASES = golden_cases("dsh-v4")


def exported(case: Path, folder: Path) -> dict[str, Any]:
    """The workflow of each session of a golden case."""
    zone, exports = zone_at(folder / "zone"), folder / "exports"
    land(case / "root", zone)
    for session in zone.sessions():
        assembled(zone, session)
    exports.mkdir()
    export_sessions(zone, open_store(exports), zone.conversations(), ExportOptions(as_of=NOW, completed_after=0))
    return {
        path.name.removesuffix(".relavium.yaml"): read_yaml(path.read_bytes(), name=path.name)["workflow"]
        for path in sorted(exports.glob("*.relavium.yaml"))
    }


def turns_of(workflow: Any) -> list[tuple[str, list[str], str]]:
    """What was asked, the tools that were used for it, and the answer."""
    nodes = [node for node in workflow["nodes"] if node["type"] == "agent"]
    answers: list[str] = []
    for message in workflow["metadata"]["relaviumExport"]["messages"]:
        said = [part["text"] for part in message["content"] if part["type"] == "text"]
        if message["role"] == "assistant" and said:
            answers.append("\n\n".join(said))
    return [
        (node["prompt_template"], node.get("tools", []), answer) for node, answer in zip(nodes, answers, strict=True)
    ]


def expected_turns(facts: Any) -> list[tuple[str, list[str], str]]:
    """The same from what a correct reader must find: a turn that a person began, and those that followed by
    themselves, unless it was broken off."""
    found: list[Any] = []
    for turn in facts["turns"]:
        if turn["inherited"]:
            continue
        prompts = [each["text"] for each in facts["human_prompts"] if each["turn"] == turn["turn"]]
        tools = [call["name"] for call in facts["tool_calls"] if call["turn"] == turn["turn"]]
        if prompts:
            found.append(["\n\n".join(prompts), tools, turn["final_text"], turn["end"] == "completed"])
        elif found:
            found[-1][1] += tools
            found[-1][2] = turn["final_text"] or found[-1][2]
    return [(prompt, list(dict.fromkeys(tools)), text) for prompt, tools, text, completed in found if completed]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_turns_of_the_workflow_are_the_session_s(case: Path, tmp_path: Path) -> None:
    expected = read_json(case / "expected.json")
    children = {link["child"] for link in expected["links"] if link["kind"] == "subagent"}
    workflows = exported(case, tmp_path)
    assert workflows.keys() == expected["sessions"].keys() - children
    for session, workflow in workflows.items():
        assert turns_of(workflow) == expected_turns(expected["sessions"][session])
        assert [agent["model"] for agent in workflow["agents"]] == [expected["sessions"][session]["models"][-1]]


def test_a_delegation_and_what_was_heard_of_it_are_one_turn(tmp_path: Path) -> None:
    (case,) = (case for case in CASES if case.name == "08-subagent")
    (workflow,) = exported(case, tmp_path).values()
    assert turns_of(workflow) == [
        ("Please delegate the tide count.", ["subagent"], "The tide counter is done: 12 rows.")
    ]


def test_what_a_compaction_wrote_is_nobody_s_words(tmp_path: Path) -> None:
    (case,) = (case for case in CASES if case.name == "09-compaction")
    (workflow,) = exported(case, tmp_path).values()
    asked = [prompt for prompt, _, _ in turns_of(workflow)]
    assert asked == ["Plan the first leg.", "Plan the second leg.", "Plan the third leg.", "Plan the fourth leg."]
    assert not any("Voyage so far" in answer for _, _, answer in turns_of(workflow))
