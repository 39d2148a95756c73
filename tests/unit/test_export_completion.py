"""When a conversation is over, and what is said of one that is not."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from schemas.session_data import Part
from storage.objects import open_store
from storage.zone import Zone
from tasks.export.completion import why_unfinished
from tasks.export.conversation import Conversation, read_conversation
from tasks.export.exchanges import exchanges_of
from tests.claude_sessions import END, HOUR, START, assemble, calls, conversation, land, note, person, result, says
from tests.golden import GOLDEN

Row = dict[str, Any]


@pytest.fixture
def zone(tmp_path: Path) -> Zone:
    (tmp_path / "zone").mkdir()
    return Zone(open_store(tmp_path / "zone"))


def unfinished(found: Conversation, *, quiet: int = HOUR) -> str | None:
    return why_unfinished(found, exchanges_of(found), as_of=START + 100 * HOUR, completed_after=quiet)


@pytest.mark.parametrize(
    "case", ["compaction", "errors-and-system", "old-sidechain", "subagent-async", "subagent-sync"]
)
def test_golden_session_is_over(case: str) -> None:
    zone = Zone(open_store(GOLDEN / "claude-code" / case / "root"))
    (name,) = zone.conversations()
    found = read_conversation(zone, name)
    assert found is not None
    assert unfinished(found) is None


def test_session_is_over_when_its_last_turn_has_its_answer_and_it_is_quiet(zone: Zone) -> None:
    assert unfinished(conversation(zone, person("go"), calls(("t1", "Bash")), result("t1"), says("Done."))) is None


def test_session_is_not_over_without_a_final_answer(zone: Zone) -> None:
    rows = [person("go"), says("I look.", call="m1"), calls(("t1", "Bash"), call="m1"), result("t1")]
    assert unfinished(conversation(zone, *rows)) == "its last turn has no final answer"


def test_synthetic_text_is_no_final_answer(zone: Zone) -> None:
    found = conversation(zone, person("go"), says("API Error: 529", flags=("synthetic",)))
    assert unfinished(found) == "its last turn has no final answer"


def test_session_is_not_over_while_a_tool_of_its_last_turn_has_no_result(zone: Zone) -> None:
    found = conversation(zone, person("go"), calls(("t1", "Bash")), says("Done."))
    assert unfinished(found) == "its last turn has 1 tool use without a result"


def test_tool_without_a_result_in_an_earlier_turn_does_not_matter(zone: Zone) -> None:
    found = conversation(zone, person("go"), calls(("t1", "Bash")), person("on"), says("Done."))
    assert unfinished(found) is None


LAUNCHED: list[Row] = [
    person("go"),
    calls(("t1", "Agent")),
    result("t1", child="ag1", flags=("launch_ack",)),
    says("Started."),
]


def test_session_is_not_over_while_a_child_of_its_last_turn_has_not_landed(zone: Zone) -> None:
    found = conversation(zone, *LAUNCHED)
    assert unfinished(found) == "its last turn started child stream ag1, which has not landed"


@pytest.mark.parametrize("answer", [{}, {"flags": ("child_result",)}], ids=["a result", "its child's result"])
def test_child_whose_tool_has_its_answer_is_not_waited_for(zone: Zone, answer: Row) -> None:
    rows = [person("go"), calls(("t1", "Task")), result("t1", child="0a1b2c3", **answer), says("Done.")]
    found = conversation(zone, *rows)
    assert list(found.missing_children) == ["0a1b2c3"]
    assert unfinished(found) is None


def test_child_of_a_source_that_flags_no_launches_is_waited_for_until_its_return_is_reported(zone: Zone) -> None:
    rows = [person("go"), calls(("t1", "spawn_agent")), result("t1", child="ag1"), says("Started.")]
    found = conversation(zone, *rows, dialect="codex/1")
    assert unfinished(found) == "its last turn started child stream ag1, which has not landed"
    land(zone, [person("{}", trigger="notification", child="ag1"), says("It is done.")], seq=2, dialect="codex/1")
    assemble(zone)
    again = read_conversation(zone, "s1")
    assert again is not None
    assert unfinished(again) is None


@pytest.mark.parametrize("names", [{"tool": "t1"}, {"child": "ag1"}, {"tool": "t1", "child": "ag1"}])
def test_child_whose_return_was_reported_is_not_waited_for(zone: Zone, names: Row) -> None:
    notified = person("<task-notification>", trigger="notification", **names)
    assert unfinished(conversation(zone, *LAUNCHED, notified, says("It is done."))) is None


def test_return_of_another_child_is_not_the_one_that_is_waited_for(zone: Zone) -> None:
    notified = person("<task-notification>", trigger="notification", tool="t0", child="ag0")
    found = conversation(zone, *LAUNCHED, notified, says("The other is done."))
    assert unfinished(found) == "its last turn started child stream ag1, which has not landed"


def test_child_that_was_launched_again_after_its_return_is_waited_for(zone: Zone) -> None:
    notified = person("<task-notification>", trigger="notification", tool="t1", child="ag1")
    again = [calls(("t2", "Agent")), result("t2", child="ag1", flags=("launch_ack",)), says("Started again.")]
    found = conversation(zone, *LAUNCHED, notified, *again)
    assert unfinished(found) == "its last turn started child stream ag1, which has not landed"


def test_child_of_an_earlier_turn_does_not_matter(zone: Zone) -> None:
    assert unfinished(conversation(zone, *LAUNCHED, person("on"), says("Yes."))) is None


def test_session_is_not_over_when_its_last_turn_was_interrupted(zone: Zone) -> None:
    found = conversation(zone, person("go"), says("half an ans"), person("[Request interrupted by user]"))
    assert unfinished(found) == "its last turn was interrupted"


def test_session_is_not_over_before_it_was_quiet_for_long_enough(zone: Zone) -> None:
    found = conversation(zone, person("go"), says("Done."), at=START + 99 * HOUR)
    assert unfinished(found) == "it has been quiet for 3598 seconds of 3600"
    assert unfinished(found, quiet=HOUR - 2_000_000_000) is None


def test_record_of_a_child_is_noise_too(zone: Zone) -> None:
    land(zone, [says("still here")], seq=2, stream="ag1", at=START + 99 * HOUR)
    rows = [person("go"), calls(("t1", "Agent")), result("t1", child="ag1"), says("Started.")]
    assert unfinished(conversation(zone, *rows)) == "it has been quiet for 3599 seconds of 3600"


def test_headless_run_that_says_it_is_over_is_over_at_once(zone: Zone) -> None:
    found = conversation(zone, person("go"), says("Done."), END, at=START + 100 * HOUR)
    assert unfinished(found) is None


@pytest.mark.parametrize("facts", ['"is_error":true', '"subtype":"error_max_turns"', '"is_error":"no"'])
def test_headless_run_that_failed_has_to_be_quiet_as_any(zone: Zone, facts: str) -> None:
    end = note(parts=(Part(k="data", data=Raw(f'{{"type":"result",{facts}}}'.encode())),))
    found = conversation(zone, person("go"), says("Done."), end, at=START + 100 * HOUR)
    assert unfinished(found) == "it has been quiet for 0 seconds of 3600"


def test_end_of_an_earlier_run_ends_nothing(zone: Zone) -> None:
    rows = [person("go"), says("Done."), END, person("on"), says("Yes.")]
    assert unfinished(conversation(zone, *rows, at=START + 100 * HOUR)) == "it has been quiet for 0 seconds of 3600"


def test_session_in_which_nobody_said_anything_is_never_over(zone: Zone) -> None:
    assert unfinished(conversation(zone, says("Hello?"))) == "nobody said anything in its main stream"
