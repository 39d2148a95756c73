"""Which exchanges are turns, and what a turn becomes (Relavium notes, sections 2 and 3)."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.relavium import parse_messages
from tasks.export import MAX_TURNS, scaffold, workflow_of
from tasks.export.turns import completed_turns
from tasks.export.workflow_id import workflow_id
from tests.relavium_sessions import AGENT, call, message, messages, record, result, said

USER, ASSISTANT, TOOL, SYSTEM = "user", "assistant", "tool", "system"


def prompts(*rows: tuple[str, list[dict[str, Any]]]) -> list[str]:
    return [turn.prompt for turn in completed_turns(messages(*rows))]


def test_a_turn_ends_with_the_answer_that_has_text_and_no_call() -> None:
    rows = messages(
        (USER, said("a")),
        (ASSISTANT, [*said("let me look"), call("read")]),
        (TOOL, [result()]),
        (ASSISTANT, [{"type": "reasoning", "text": "hm"}]),
        (ASSISTANT, said("")),
        (ASSISTANT, said("after")),
    )
    (turn,) = completed_turns(rows)
    assert [row.sequenceNumber for row in turn.rows] == [0, 1, 2, 3, 4]


def test_an_exchange_without_an_answer_is_no_turn() -> None:
    assert prompts((USER, said("a")), (ASSISTANT, [call("x")]), (TOOL, [result()])) == []


def test_rows_without_a_user_are_ignored() -> None:
    assert prompts((ASSISTANT, said("hello")), (USER, said("a")), (ASSISTANT, said("b"))) == ["a"]


def test_bare_user_messages_prefix_the_next_turn_even_across_an_interrupted_one() -> None:
    rows = (
        (USER, said("first")),
        (USER, said("")),
        (USER, said("interrupted")),
        (ASSISTANT, [call("x")]),
        (USER, said("last")),
        (ASSISTANT, said("done")),
    )
    assert prompts(*rows) == ["first\n\nlast"]


def test_a_prefix_is_used_once() -> None:
    rows = ((USER, said("a")), (USER, said("b")), (ASSISTANT, said("1")), (USER, said("c")), (ASSISTANT, said("2")))
    assert prompts(*rows) == ["a\n\nb", "c"]


def test_system_rows_and_boundaries_do_not_part_a_turn() -> None:
    assert prompts((USER, said("a")), (SYSTEM, said("s")), (ASSISTANT, said("b"))) == ["a"]


def test_empty_text_parts_still_join() -> None:
    assert prompts((USER, said("a", "", "b")), (ASSISTANT, said("c"))) == ["a\n\n\n\nb"]


def test_tools_are_named_once_in_the_order_of_their_calls_without_the_unresolved() -> None:
    rows = messages(
        (USER, said("a")),
        (ASSISTANT, [call("zeta"), call("unknown_tool", 1), call("alpha", 2)]),
        (ASSISTANT, [call("zeta", 3)]),
        (ASSISTANT, said("b")),
    )
    node = workflow_of(record(), rows)["workflow"]["nodes"][1]
    assert node["tools"] == ["zeta", "alpha"]


def test_openers_are_neutralised_in_prompts_alone() -> None:
    rows = messages((USER, said("{{a}} {{{b {{")), (ASSISTANT, said("{{c}}")))
    workflow = workflow_of(record(title="{{t}}"), rows)["workflow"]
    assert workflow["nodes"][1]["prompt_template"] == "{ {a}} { { {b { {"
    assert workflow["name"] == "{{t}}"
    assert workflow["metadata"]["relaviumExport"]["messages"][1]["content"][0]["text"] == "{{c}}"


def test_a_session_without_turns_leads_from_input_to_output() -> None:
    workflow = workflow_of(record(), [])["workflow"]
    assert [node["id"] for node in workflow["nodes"]] == ["input", "output"]
    assert workflow["edges"] == [{"from": "input", "to": "output"}]
    assert set(workflow) == {"id", "nodes", "edges", "metadata"}


def test_a_turn_without_words_or_tools_has_neither_key() -> None:
    node = workflow_of(record(), messages((USER, []), (ASSISTANT, said(""))))["workflow"]["nodes"][1]
    assert node == {"id": "turn-1", "type": "agent", "agent_ref": "pilot"}


@pytest.mark.parametrize(
    ("title", "session", "id"),
    [
        ("Tide table check", "s", "tide-table-check"),
        ("ĞÜŞİ \u0131\u0131", "s", "gusi-ii"),
        ("Straße GROẞ", "s", "strasse-gross"),
        ("ﬁx №5 ①", "s", "fix-no5-1"),
        ("a" * 127 + " b", "s", "a" * 127),
        ("!!!", "s-1", "exported-session-s-1"),
        (None, "a" * 111, "exported-session-" + "a" * 111),
        (None, "a" * 112, "exported-session-id-" + "0061" * 24),
        (None, "A😀", "exported-session-id-0041d83dde00"),
    ],
)
def test_the_workflow_id_is_made_from_the_title_or_the_session(title: str | None, session: str, id: str) -> None:
    assert workflow_id(title, session) == id


def test_more_turns_than_the_engine_runs_is_a_warning() -> None:
    rows = [(USER, said("a")), (ASSISTANT, said("b"))] * (MAX_TURNS + 1)
    done = scaffold(record(), messages(*rows))
    assert done.turns == MAX_TURNS + 1
    assert done.warnings == (f"{MAX_TURNS + 1} turns: the workflow engine runs at most {MAX_TURNS}",)
    assert scaffold(record(), messages(*rows[2:])).warnings == ()


def test_more_text_than_the_parser_takes_is_a_warning() -> None:
    long = scaffold(record(), messages((USER, said("é" * 2**20)), (ASSISTANT, said("b"))))
    assert [warning.partition(" ")[2] for warning in long.warnings] == [
        "UTF-16 units: the workflow parser takes at most 2097152"
    ]
    assert scaffold(record(), messages((USER, said("é" * 2**19)), (ASSISTANT, said("b")))).warnings == ()


TEXT = st.text(max_size=40)
ROWS = st.lists(
    st.tuples(st.just(USER), TEXT.map(lambda text: said(text)))
    | st.tuples(st.just(ASSISTANT), TEXT.map(lambda text: said(text)))
    | st.tuples(st.just(ASSISTANT), st.just([call("read_file")])),
    max_size=12,
)


@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_messages_come_in_does_not_matter(rows: list[Any], random: Any) -> None:
    given_rows = messages(*rows)
    shuffled = list(given_rows)
    random.shuffle(shuffled)
    assert scaffold(record(title="t"), shuffled) == scaffold(record(title="t"), given_rows)


def test_equal_sequence_numbers_keep_their_order() -> None:
    rows = [message(1, USER, said("a")), message(1, ASSISTANT, said("b")), message(0, USER, said("0"))]
    assert [turn.prompt for turn in completed_turns(parse_messages(rows, name="f"))] == ["0\n\na"]


def test_every_process_locale_and_hash_seed_writes_the_same_bytes() -> None:
    script = (
        "import sys, locale\n"
        "from tasks.export import scaffold\n"
        "from tests.relavium_sessions import AGENT, call, messages, record, said\n"
        "schema = {key: 1 for key in 'İßzäa'}\n"
        "agent = AGENT | {'input_schema': schema, 'tools': ['b', 'a']}\n"
        "calls = [call('z'), call('a', 1)]\n"
        "rows = messages(('user', said('Ünï 😀 ' * 40)), ('assistant', calls), ('assistant', said('x')))\n"
        "sys.stdout.buffer.write(scaffold(record(title='Şİ', agentSnapshot=agent), rows).data)\n"
    )
    written = set()
    for seed, language in (("0", "C"), ("1", "C.UTF-8"), ("4242", "tr_TR.UTF-8")):
        environment = os.environ | {"PYTHONHASHSEED": seed, "LC_ALL": language, "LANG": language}
        written.add(
            subprocess.run([sys.executable, "-c", script], env=environment, check=True, capture_output=True).stdout
        )
    assert len(written) == 1
    assert b"turn-1" in written.pop()


def test_the_snapshot_is_written_as_it_was_given() -> None:
    snapshot = AGENT | {"temperature": 1.0, "tools": [], "input_schema": {"b": None, "a": {}}}
    workflow = workflow_of(record(agentSnapshot=snapshot), [])["workflow"]
    assert workflow["agents"] == [snapshot]
