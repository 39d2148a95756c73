"""Whose words are whose in a conversation of another agent: blocks, prompt cycles, and prompts that were given up."""

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from schemas.relavium_session import SessionMessage
from schemas.session_data import Part
from storage.objects import open_store
from storage.zone import Zone
from tasks.export.agent_session import agent_session
from tasks.export.blocks import blocks_of, without_blocks
from tasks.export.conversation import Conversation
from tasks.export.exchanges import exchanges_of
from tasks.export.turns import completed_turns, text_of
from tests.claude_sessions import calls, conversation, note, person, result, says

Row = dict[str, Any]
Turns = list[tuple[str, list[str], str]]

HEARD: Row = {"run": "p1", "trigger": "external", "flags": ("external_input",)}
QUEUED = note("external_input", parts=person("and paint it")["parts"])
STOPPED = person("[Request interrupted by user]")


@pytest.fixture
def zone(tmp_path: Path) -> Zone:
    (tmp_path / "zone").mkdir()
    return Zone(open_store(tmp_path / "zone"))


def rows_of(found: Conversation) -> list[SessionMessage]:
    return agent_session(found, exchanges_of(found))[1]


def turns_of(found: Conversation) -> Turns:
    """Prompt, tools and answer of each completed turn."""
    return [(turn.prompt, turn.tools, text_of(turn.rows[-1])) for turn in completed_turns(rows_of(found))]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<system-reminder>x</system-reminder>\n\nplease fix it", "please fix it"),
        ("<ide_opened_file>a.py</ide_opened_file>\nplease fix it", "please fix it"),
        ("<ide_selection>x\ny</ide_selection><ide_diagnostics>z</ide_diagnostics> please fix it", "please fix it"),
        (
            "please fix it\n<system-reminder>x</system-reminder>\n<system-reminder>y</system-reminder>\n",
            "please fix it",
        ),
        ("what is <system-reminder>x</system-reminder> for?", "what is <system-reminder>x</system-reminder> for?"),
        ("<system-reminder> is what tag?", "<system-reminder> is what tag?"),
        ("<command-name> is what tag?", "<command-name> is what tag?"),
        ("<bash-input>ls</bash-input> is what I typed", "<bash-input>ls</bash-input> is what I typed"),
        ("<task-notification> is what tag?", "<task-notification> is what tag?"),
        (
            "[Request interrupted by user] is a message I see, why?",
            "[Request interrupted by user] is a message I see, why?",
        ),
        ("  spaces stay  ", "  spaces stay  "),
    ],
)
def test_text_that_is_not_all_injected_keeps_a_persons_words(zone: Zone, text: str, said: str) -> None:
    found = conversation(zone, person("go"), says("Yes."), person(text), says("Done."))
    assert turns_of(found) == [("go", [], "Yes."), (said, [], "Done.")]


@pytest.mark.parametrize(
    "text",
    [
        "<command-message>review is running…</command-message>\n<command-name>/review</command-name>",
        "<bash-stdout>found </bash-stdout> here</bash-stdout><bash-stderr></bash-stderr>",
        "<local-command-stdout></local-command-stdout>\n<system-reminder>x</system-reminder>",
        "<bash-stdout>grep: </bash-stdout> is a tag</bash-stdout>",
        "<task-notification><task-id>a</task-id></task-notification>\nRead the output file to see more: out.txt",
        "<system-reminder>x</system-reminder>\n<ide_opened_file>a.py</ide_opened_file>",
    ],
)
def test_text_that_is_all_blocks_is_nobodys(zone: Zone, text: str) -> None:
    found = conversation(zone, person("go"), calls(("t1", "Bash")), result("t1"), person(text), says("Done."))
    assert turns_of(found) == [("go", ["Bash"], "Done.")]


def test_words_beside_a_tools_result_join_the_turn_that_is_open(zone: Zone) -> None:
    both = result("t1")
    both["parts"] += person("and paint it")["parts"] + person("<system-reminder>x</system-reminder>")["parts"]
    found = conversation(zone, person("build it"), calls(("t1", "Bash")), both, says("Built, painted."))
    assert turns_of(found) == [("build it\n\nand paint it", ["Bash"], "Built, painted.")]


def test_image_that_a_tool_gave_back_is_no_persons(zone: Zone) -> None:
    both = result("t1")
    both["parts"] += (Part(k="media", media="image/png", data=Raw(b'""')),)
    found = conversation(zone, person("look"), calls(("t1", "Read")), both, says("Seen."))
    assert [row.role for row in rows_of(found)] == ["user", "assistant", "tool", "assistant"]


def test_blocks_are_taken_off_in_time_linear_in_the_text() -> None:
    many = "<system-reminder>x</system-reminder>" * 100_000
    tags = re.compile("system-reminder|ide_[a-z_]+")
    assert without_blocks(f"{many}go{many}", tags) == "go"
    assert without_blocks(many, tags) == ""
    assert len(blocks_of(many, {"system-reminder"})) == 100_000


def test_of_a_prompt_cycle_only_what_the_chain_heard_is_a_persons(zone: Zone) -> None:
    heard: Row = {"run": "p1", "trigger": "external", "flags": ("external_input",)}
    found = conversation(zone, person("go", **heard), person("written by a hook", run="p1"), says("Done.", run="p1"))
    assert turns_of(found) == [("go", [], "Done.")]


def test_words_in_no_prompt_cycle_are_the_runtimes_inside_one(zone: Zone) -> None:
    heard: Row = {"run": "p1", "trigger": "external", "flags": ("external_input",)}
    found = conversation(
        zone,
        person("from an old client"),
        says("Old."),
        person("from a new one", **heard),
        person("written by the runtime"),
        says("New.", run="p1"),
    )
    assert turns_of(found) == [("from an old client", [], "Old."), ("from a new one", [], "New.")]


@pytest.mark.parametrize(
    ("rows", "turns"),
    [
        (
            [person("A", **HEARD), says("a"), person("B"), says("b")],
            [("A", [], "a"), ("B", [], "b")],
        ),
        (
            [person("A", **HEARD), says("a"), person("B"), says("b"), person("C"), calls(("t1", "Bash"))],
            [("A", [], "a"), ("B", [], "b")],
        ),
        (
            [person("A", **HEARD), calls(("t1", "Bash")), result("t1", run="p1"), STOPPED, person("B"), says("b")],
            [("B", [], "b")],
        ),
        (
            [person("A", **HEARD), calls(("t1", "Bash")), person("B"), calls(("t2", "Read")), result("t2"), says("b")],
            [("B", ["Read"], "b")],
        ),
        (
            [person("A", **HEARD), calls(("t1", "Bash")), person("a hook"), result("t1", run="p1"), says("a")],
            [("A", ["Bash"], "a")],
        ),
        (
            [person("A", **HEARD), says("a"), person("B"), says("b"), person("C", **{**HEARD, "run": "p2"}), says("c")],
            [("A", [], "a"), ("B", [], "b"), ("C", [], "c")],
        ),
    ],
    ids=["answered", "open at the end", "interrupted", "broken off", "inside the cycle", "there and back"],
)
def test_words_of_an_older_client_after_a_cycle_have_their_own_answers(
    zone: Zone, rows: list[Row], turns: Turns
) -> None:
    assert turns_of(conversation(zone, *rows)) == turns


def test_prompt_cycle_of_a_run_without_origins_is_a_persons(zone: Zone) -> None:
    heard: Row = {"run": "p1", "trigger": "external", "flags": ("external_input",)}
    rows = [person("typed", **heard), says("Yes.", run="p1"), person("piped in", run="p2"), says("Done.", run="p2")]
    assert turns_of(conversation(zone, *rows)) == [("typed", [], "Yes."), ("piped in", [], "Done.")]


@pytest.mark.parametrize(
    ("begun", "roles"),
    [
        ([STOPPED], ["user", "assistant"]),
        ([says("half an ans"), STOPPED], ["user", "assistant"]),
        ([QUEUED, STOPPED], ["user", "assistant"]),
        ([QUEUED, calls(("t1", "Bash")), result("t1"), STOPPED], ["user", "assistant", "tool"]),
        ([QUEUED, calls(("t1", "Bash"))], ["user", "assistant"]),
    ],
    ids=["at once", "in its answer", "after queued words", "after a tool", "broken off at a tool"],
)
def test_prompt_without_an_answer_is_no_part_of_the_next_one(zone: Zone, begun: list[Row], roles: list[str]) -> None:
    found = conversation(zone, person("first"), *begun, person("second"), says("Done."))
    assert turns_of(found) == [("second", [], "Done.")]
    assert [row.role for row in rows_of(found)] == [*roles, "user", "assistant"]
    assert text_of(rows_of(found)[0]).startswith("first")
