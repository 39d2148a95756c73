"""What a conversation of another agent is as a Relavium session: its turns, row by row."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from schemas.relavium import read_workflow
from schemas.relavium_session import SessionMessage, ToolCallPart, ToolResultPart
from schemas.session_data import Part
from storage.objects import open_store
from storage.zone import Zone
from tasks.export import scaffold
from tasks.export.agent_session import PLACEHOLDER_PROMPT, agent_session, kebab, provider_of
from tasks.export.conversation import Conversation, read_conversation
from tasks.export.exchanges import exchanges_of
from tasks.export.turns import completed_turns, text_of
from tasks.export.words import outcome_of
from tests.claude_sessions import calls, conversation, land, note, person, result, says
from tests.golden import GOLDEN, golden_cases

Row = dict[str, Any]
Turns = list[tuple[str, list[str], str]]


@pytest.fixture
def zone(tmp_path: Path) -> Zone:
    (tmp_path / "zone").mkdir()
    return Zone(open_store(tmp_path / "zone"))


def turns_of(found: Conversation) -> Turns:
    """Prompt, tools and answer of each completed turn."""
    _, messages = agent_session(found, exchanges_of(found))
    return [(turn.prompt, turn.tools, text_of(turn.rows[-1])) for turn in completed_turns(messages)]


def rows_of(found: Conversation) -> list[SessionMessage]:
    return agent_session(found, exchanges_of(found))[1]


def golden(case: str) -> Conversation:
    zone = Zone(open_store(GOLDEN / "claude-code" / case / "root"))
    (name,) = zone.conversations()
    found = read_conversation(zone, name)
    assert found is not None
    return found


def test_session_without_prompt_ids_has_a_turn_for_each_thing_a_person_said(zone: Zone) -> None:
    found = conversation(
        zone,
        person("fix the kite"),
        says("I look first.", call="m1"),
        calls(("t1", "Read"), ("t2", "Grep"), call="m1"),
        result("t1"),
        result("t2"),
        calls(("t3", "Edit")),
        result("t3"),
        says("The kite is fixed."),
        person("thanks"),
        says("You are welcome."),
    )
    assert not found.heard
    assert turns_of(found) == [
        ("fix the kite", ["Read", "Grep", "Edit"], "The kite is fixed."),
        ("thanks", [], "You are welcome."),
    ]


def test_rows_are_what_was_said_structural_calls_and_the_answer(zone: Zone) -> None:
    found = conversation(
        zone,
        person("go"),
        says("On the way.", call="m1"),
        calls(("t1", "Read"), ("t2", "a tool!"), call="m1"),
        result("t1", "ok", failed=False),
        result("t2", "boom", failed=True),
        says("Done."),
    )
    rows = rows_of(found)
    assert [row.role for row in rows] == ["user", "assistant", "tool", "assistant"]
    assert rows[1].content == [
        ToolCallPart(type="tool_call", id="session-tool:1:0", name="Read", argsBytes=21),
        ToolCallPart(type="tool_call", id="session-tool:1:1", name="unknown_tool", argsBytes=21),
    ]
    assert rows[2].content == [
        ToolResultPart(type="tool_result", toolCallId="session-tool:1:0", resultBytes=2, outcome="ok"),
        ToolResultPart(type="tool_result", toolCallId="session-tool:1:1", resultBytes=4, outcome="error"),
    ]
    assert [row.timestamp for row in rows] == [
        "2026-08-06T07:06:41.000Z",
        "2026-08-06T07:06:43.000Z",
        "2026-08-06T07:06:45.000Z",
        "2026-08-06T07:06:46.000Z",
    ]
    assert [row.modelId for row in rows] == [None, "claude-x-1", None, "claude-x-1"]


def test_nothing_of_arguments_results_and_texts_on_the_way_reaches_the_file(zone: Zone) -> None:
    found = conversation(zone, person("go"), says("half"), calls(("t1", "Read")), result("t1"), says("Done."))
    data = scaffold(*agent_session(found, exchanges_of(found))).data
    assert [word for word in (b"secret", b"argument", b"half") if word in data] == []
    read_workflow(data, name="it")


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("The user doesn't want to proceed with this tool use.", "denied"),
        ("Permission to use Bash has been denied.", "denied"),
        ("[Request interrupted by user for tool use]", "cancelled"),
        ("exit code 1", "error"),
    ],
)
def test_outcome_of_a_failed_tool_is_told_by_its_result(zone: Zone, text: str, outcome: str) -> None:
    found = conversation(zone, person("go"), calls(("t1", "Bash")), result("t1", text, failed=True), says("Done."))
    (part,) = rows_of(found)[2].content
    assert isinstance(part, ToolResultPart)
    assert part.outcome == outcome


@pytest.mark.parametrize(
    ("source", "code", "outcome"),
    [
        ("deepseek-harness", "ABORTED", "cancelled"),
        ("deepseek-harness", "ABORTED_BEFORE_DISPATCH", "cancelled"),
        ("deepseek-harness", "TOOL_NOT_STARTED", "cancelled"),
        ("deepseek-harness", "TOOL_OUTCOME_UNKNOWN", "error"),
        ("deepseek-harness", "FS_NOT_FOUND", "error"),
        ("claude-code", "ABORTED", "error"),
    ],
)
def test_outcome_of_a_failed_tool_is_told_by_its_code_where_there_is_one(source: str, code: str, outcome: str) -> None:
    data = Raw(b'{"error":{"name":"x","code":"%b"}}' % code.encode())
    assert outcome_of(Part(k="result", of="t", failed=True, data=data), source) == outcome
    assert outcome_of(Part(k="result", of="t", failed=True, data=Raw(b"[]")), source) == "error"


@pytest.mark.parametrize(
    "row",
    [
        person("injected", flags=("injected",)),
        person("This is a summary.", flags=("reset_summary",)),
        person("This session is being continued from a previous conversation that ran out of context. …"),
        person("<command-name>/model</command-name>"),
        person("<local-command-stdout>Set</local-command-stdout>"),
        person("<system-reminder>be good</system-reminder>"),
        person("<task-notification>", trigger="notification"),
        person("from elsewhere", trigger="unknown"),
        person("  \n"),
        note("notice", parts=(Part(k="text", text=Raw(b'"a notice"')),)),
    ],
)
def test_what_the_runtime_writes_in_a_persons_place_begins_no_turn(zone: Zone, row: Row) -> None:
    found = conversation(zone, person("go"), calls(("t1", "Bash")), result("t1"), row, says("Done."))
    assert turns_of(found) == [("go", ["Bash"], "Done.")]


def test_reminder_beside_a_persons_words_is_left_out_of_them(zone: Zone) -> None:
    both = person("go")
    both["parts"] += person("<system-reminder>be good</system-reminder>")["parts"]
    assert turns_of(conversation(zone, both, says("Done."))) == [("go", [], "Done.")]


def test_other_sources_echo_nothing(zone: Zone) -> None:
    found = conversation(zone, person("<command-name> is what I said"), says("Done."), dialect="Other Agent/2")
    assert turns_of(found) == [("<command-name> is what I said", [], "Done.")]
    assert agent_session(found, exchanges_of(found))[0].agentSlug == "other-agent"


def test_prompt_that_was_queued_while_the_agent_worked_joins_the_turn(zone: Zone) -> None:
    queued = note(
        "external_input", parts=(Part(k="data", data=Raw(b'{"type":"queued_command","prompt":"and paint it"}')),)
    )
    found = conversation(zone, person("build it"), calls(("t1", "Bash")), result("t1"), queued, says("Built, painted."))
    assert turns_of(found) == [("build it\n\nand paint it", ["Bash"], "Built, painted.")]


def test_notification_goes_on_with_the_turn(zone: Zone) -> None:
    found = conversation(
        zone,
        person("go"),
        says("Waiting."),
        person("<task-notification>", trigger="notification"),
        says("It is done."),
    )
    assert turns_of(found) == [("go", [], "It is done.")]


def test_interrupted_turn_is_no_turn_and_stays_in_the_transcript(zone: Zone) -> None:
    found = conversation(
        zone,
        person("first"),
        calls(("t1", "Bash")),
        result("t1"),
        says("half an ans"),
        person("[Request interrupted by user]"),
        person("second"),
        says("Done."),
    )
    assert turns_of(found) == [("second", [], "Done.")]
    assert [row.role for row in rows_of(found)] == ["user", "assistant", "tool", "user", "assistant"]


def test_text_before_a_tool_stands_as_the_answer_when_a_person_simply_went_on(zone: Zone) -> None:
    rows = [person("first"), says("Noted.", call="m1"), calls(("t1", "Note"), call="m1"), result("t1")]
    found = conversation(zone, *rows, person("second"), says("Done."))
    assert turns_of(found) == [("first", ["Note"], "Noted."), ("second", [], "Done.")]


def test_text_before_an_unanswered_tool_is_no_answer(zone: Zone) -> None:
    rows = [person("first"), says("I look."), calls(("t1", "Bash"))]
    found = conversation(zone, *rows, person("second"), says("Done."))
    assert turns_of(found) == [("second", [], "Done.")]


def test_synthetic_text_is_no_answer(zone: Zone) -> None:
    found = conversation(zone, person("go"), says("API Error: 529", flags=("synthetic",)))
    assert turns_of(found) == []


def test_copies_of_records_count_once(zone: Zone) -> None:
    land(zone, [person("go", id="a"), says("Done.", id="b")])
    found = conversation(zone, person("go", id="a"), says("Done.", id="b"), person("more"), says("Yes."), seq=2)
    assert turns_of(found) == [("go", [], "Done."), ("more", [], "Yes.")]


def test_child_agent_in_a_stream_of_its_own_is_the_call_that_started_it(zone: Zone) -> None:
    found = golden("subagent-sync")
    assert turns_of(found) == [("two sync agents", ["Task"], "both done")]
    calls_made = [part for row in rows_of(found) for part in row.content if isinstance(part, ToolCallPart)]
    assert [(part.id, part.name) for part in calls_made] == [("session-tool:1:0", "Task"), ("session-tool:1:1", "Task")]


@pytest.mark.parametrize(
    ("case", "turns"),
    [
        ("compaction", [("first", ["Bash"], "listed"), ("go on", [], "going")]),
        ("errors-and-system", [("go", [], "back")]),
        ("old-sidechain", [("old", ["Task"], "ok")]),
        ("subagent-async", [("look into <it> & report", ["Agent"], "the scan found nothing")]),
    ],
)
def test_golden_session_has_these_turns(case: str, turns: Turns) -> None:
    found = golden(case)
    assert turns_of(found) == turns


@pytest.mark.parametrize("case", golden_cases("claude-code-random"), ids=lambda case: case.name)
def test_export_of_any_golden_session_is_a_workflow(case: Path) -> None:
    zone = Zone(open_store(case / "root"))
    for name in zone.conversations():
        found = read_conversation(zone, name)
        assert found is not None
        made = scaffold(*agent_session(found, exchanges_of(found)))
        assert made.warnings == ()
        read_workflow(made.data, name=case.name)


def test_agent_is_described_by_the_model_named_last_and_an_honest_placeholder(zone: Zone) -> None:
    found = conversation(zone, person("go"), says("Done.", model="gpt-9"), person("on"), says("Yes.", model="claude-9"))
    record, _ = agent_session(found, exchanges_of(found), agent_slug="kite-helper")
    agent = record.agentSnapshot
    assert agent is not None
    assert (agent.id, agent.model, agent.provider, agent.system_prompt) == (
        "kite-helper",
        "claude-9",
        "anthropic",
        PLACEHOLDER_PROMPT,
    )
    assert (record.id, record.createdAt, record.updatedAt) == (
        "s1",
        "2026-08-06T07:06:41.000Z",
        "2026-08-06T07:06:44.000Z",
    )


def test_model_of_no_known_provider_gives_no_agent(zone: Zone) -> None:
    found = conversation(zone, person("go"), says("Done.", model="my-local-1"))
    record, _ = agent_session(found, exchanges_of(found))
    assert (record.agentSnapshot, record.modelId) == (None, "my-local-1")


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("claude-x", "anthropic"),
        ("o3-mini", "openai"),
        ("gemini-9", "gemini"),
        ("deepseek-v9", "deepseek"),
        ("x", None),
    ],
)
def test_provider_is_told_by_the_models_name(model: str, provider: str | None) -> None:
    assert provider_of(model) == provider


@pytest.mark.parametrize(
    ("name", "slug"), [("claude-code", "claude-code"), ("My Agent_2", "my-agent-2"), ("ü", "agent")]
)
def test_slug_is_the_source_in_kebab_case(name: str, slug: str) -> None:
    assert kebab(name) == slug


def test_record_without_a_time_is_as_old_as_the_row_before_it(zone: Zone) -> None:
    found = conversation(zone, person("go"), says("Done.", time="yesterday"))
    assert [row.timestamp for row in rows_of(found)] == ["2026-08-06T07:06:41.000Z"] * 2
