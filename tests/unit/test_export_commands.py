"""Commands in a conversation of another agent: their own work is in nobody's turn and takes nobody's answer."""

from pathlib import Path
from typing import Any

import pytest

from storage.objects import open_store
from storage.zone import Zone
from tasks.export.agent_session import agent_session
from tasks.export.completion import why_unfinished
from tasks.export.conversation import Conversation
from tasks.export.exchanges import exchanges_of
from tasks.export.turns import completed_turns, text_of
from tests.claude_sessions import END, HOUR, START, calls, conversation, note, person, result, says

Row = dict[str, Any]

FIXED = [person("fix the bug"), says("Fixed.")]
REVIEW = [
    person("<command-message>review is running…</command-message>\n<command-name>/review</command-name>"),
    person("You are a reviewer. Look at the changes.", flags=("injected",)),
    calls(("t9", "Bash")),
]
REVIEWED = [*REVIEW, result("t9"), says("Review: looks fine.")]
MODEL = person("<command-name>/model</command-name>\n<command-args></command-args>")
SET = person("<local-command-stdout>Set</local-command-stdout>")
STOPPED = person("[Request interrupted by user]")


@pytest.fixture
def zone(tmp_path: Path) -> Zone:
    (tmp_path / "zone").mkdir()
    return Zone(open_store(tmp_path / "zone"))


def turns_of(found: Conversation) -> list[tuple[str, list[str], str]]:
    _, messages = agent_session(found, exchanges_of(found))
    return [(turn.prompt, turn.tools, text_of(turn.rows[-1])) for turn in completed_turns(messages)]


def unfinished(found: Conversation, *, as_of: int = START + 100 * HOUR) -> str | None:
    return why_unfinished(found, exchanges_of(found), as_of=as_of, completed_after=HOUR)


@pytest.mark.parametrize(
    "work",
    [REVIEWED, REVIEW, [*REVIEW, STOPPED], [*REVIEWED, *REVIEWED], [*REVIEW[:2], STOPPED], [MODEL, SET, *REVIEWED]],
    ids=["finished", "running", "interrupted", "twice", "interrupted at once", "after one without an agent"],
)
def test_command_after_a_turn_leaves_the_turn_as_it_was(zone: Zone, work: list[Row]) -> None:
    found = conversation(zone, *FIXED, *work)
    assert turns_of(found) == [("fix the bug", [], "Fixed.")]
    assert unfinished(found) is None


@pytest.mark.parametrize("work", [REVIEWED, REVIEW, [*REVIEW, STOPPED]], ids=["finished", "running", "interrupted"])
def test_words_after_a_command_begin_a_turn_of_their_own(zone: Zone, work: list[Row]) -> None:
    found = conversation(zone, *FIXED, *work, person("thanks"), calls(("t2", "Read")), result("t2"), says("Sure."))
    assert turns_of(found) == [("fix the bug", [], "Fixed."), ("thanks", ["Read"], "Sure.")]


def test_command_after_an_interrupted_turn_does_not_answer_it(zone: Zone) -> None:
    found = conversation(zone, *FIXED, person("more"), calls(("t1", "Bash")), result("t1"), STOPPED, *REVIEWED)
    assert turns_of(found) == [("fix the bug", [], "Fixed.")]
    assert unfinished(found) == "its last turn was interrupted"


@pytest.mark.parametrize("begun", [[], [calls(("t1", "Bash"))]], ids=["nothing", "an open tool use"])
def test_command_after_a_turn_that_broke_off_does_not_answer_it(zone: Zone, begun: list[Row]) -> None:
    assert turns_of(conversation(zone, *FIXED, person("more"), *begun, *REVIEWED)) == [("fix the bug", [], "Fixed.")]


def test_prompt_of_a_command_beside_its_echo_is_nobodys(zone: Zone) -> None:
    both = person("<command-message>init is analyzing…</command-message>\n<command-name>/init</command-name>")
    both["parts"] += person("Please look at this code.")["parts"]
    found = conversation(zone, *FIXED, both, calls(("t1", "Read")), result("t1"), says("Written down."))
    assert turns_of(found) == [("fix the bug", [], "Fixed.")]


def test_session_of_commands_only_is_nobodys(zone: Zone) -> None:
    found = conversation(zone, *REVIEWED, MODEL, SET)
    assert turns_of(found) == []
    assert unfinished(found) == "nobody said anything in its main stream"


def test_command_without_an_agent_does_not_keep_a_turn_from_going_on(zone: Zone) -> None:
    notified = person("<task-notification>", trigger="notification")
    found = conversation(zone, person("go"), says("Waiting."), MODEL, SET, notified, says("It is done."))
    assert turns_of(found) == [("go", [], "It is done.")]


def test_command_given_before_the_agent_began_leaves_it_the_turn(zone: Zone) -> None:
    assert turns_of(conversation(zone, person("go"), MODEL, SET, says("Done."))) == [("go", [], "Done.")]


def test_skill_that_the_agent_uses_is_part_of_the_turn(zone: Zone) -> None:
    skill = [person("<command-message>pdf is loading</command-message>"), person("How to", flags=("injected",))]
    rows = [person("go"), says("I use it."), calls(("t1", "Skill")), result("t1"), *skill]
    assert turns_of(conversation(zone, *rows, says("Done."))) == [("go", ["Skill"], "Done.")]


def test_words_that_were_queued_while_a_command_ran_begin_a_turn(zone: Zone) -> None:
    queued = note("external_input", parts=person("and the tests?")["parts"])
    found = conversation(zone, *FIXED, *REVIEW, result("t9"), queued, says("All looks fine."))
    assert turns_of(found)[0] == ("fix the bug", [], "Fixed.")


def test_headless_run_is_not_over_while_a_command_is_at_work_after_it(zone: Zone) -> None:
    rows = [*FIXED, END, *REVIEWED]
    now = START + 100 * HOUR
    assert unfinished(conversation(zone, *rows, at=now), as_of=now) == "it has been quiet for 0 seconds of 3600"


def test_headless_command_that_says_it_is_over_is_over_at_once(zone: Zone) -> None:
    now = START + 100 * HOUR
    assert unfinished(conversation(zone, *FIXED, END, *REVIEWED, END, at=now), as_of=now) is None
