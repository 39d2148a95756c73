"""A native session in Relavium's terms: rows of completed turns, tools by structure alone, one scaffold."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.relavium_verdict import read_workflow
from schemas.relavium_yaml_reader import read_yaml
from tasks.agents.native.conversation import Failure, Usage
from tasks.agents.native.protocol import Abort, Compact, Send, Trim
from tasks.agents.native.transcript import exported, relavium_session
from tests.native_sessions import Driven, agent, answer, calls, dollar_a_million, stored_header

AGENT = agent()


def _session(driven: Driven) -> Any:
    return relavium_session(stored_header(), driven.events, AGENT, price=dollar_a_million)


def _talk() -> Driven:
    driven = Driven()
    driven.go(Send("Read   a\nplease"), calls("read_file", "write_file", "made_up", path="ä"), answer("It says b."))
    driven.go(Send("Fail"), Failure("AUTH", "no"))
    driven.put(Send("Stop"))
    driven.put(Abort())
    driven.go(Send("Note"), answer(""))
    return driven


def test_only_completed_turns_have_rows() -> None:
    session = _session(_talk())
    assert [(row.sequenceNumber, row.role) for row in session.messages] == [
        (0, "user"),
        (1, "assistant"),
        (2, "tool"),
        (3, "tool"),
        (4, "tool"),
        (5, "assistant"),
        (6, "user"),
        (7, "assistant"),
    ]
    assert session.messages[-1].content[0].text == ""
    assert session.record.title == "Read a please"


def test_of_tools_the_structure_is_kept_and_no_content() -> None:
    driven = _talk()
    session = _session(driven)
    asked, *results = session.messages[1:5]
    assert [(part.id, part.name, part.argsBytes) for part in asked.content] == [
        ("session-tool:1:0", "read_file", 13),
        ("session-tool:1:1", "write_file", 13),
        ("session-tool:1:2", "unknown_tool", 13),
    ]
    assert [row.content[0].outcome for row in results] == ["ok", "denied", "error"]
    assert results[0].content[0].resultBytes == len('content of {"path":"ä"}'.encode())
    assert b"content of" not in exported(stored_header(), driven.events, AGENT, price=dollar_a_million).data


def test_a_made_up_tool_never_becomes_a_grant() -> None:
    scaffold = exported(stored_header(), _talk().events, AGENT, price=dollar_a_million)
    nodes = read_yaml(scaffold.data, name="s")["workflow"]["nodes"]
    assert nodes[1]["tools"] == ["read_file", "write_file"]
    assert [node["id"] for node in nodes] == ["input", "turn-1", "turn-2", "output"]


def test_failed_turns_keep_their_cost_and_add_no_tokens() -> None:
    driven = Driven()
    driven.go(Send("1"), answer(usage=Usage(100, 10)))
    driven.go(Send("2"), calls("read_file", usage=Usage(50, 5)), Failure("AUTH", "no"))
    record = _session(driven).record
    assert (record.totalInputTokens, record.totalOutputTokens) == (100, 10)
    assert record.totalCostMicrocents == (110 + 55) * 100


def test_what_a_boundary_drops_stays_in_the_export() -> None:
    driven = Driven()
    for text in ("1", "2", "3"):
        driven.go(Send(text), answer(f"a{text}"))
    driven.go(Compact(), answer("They counted.", usage=Usage(7, 2)))
    driven.go(Trim(1))
    session = _session(driven)
    boundaries = [row for row in session.messages if row.compaction is not None]
    assert [row.compaction.droppedThroughSequence for row in boundaries] == [3, 5]
    assert session.record.totalInputTokens == 3 * 120 + 7
    nodes = read_yaml(exported(stored_header(), driven.events, AGENT, price=dollar_a_million).data, name="s")
    assert len(nodes["workflow"]["nodes"]) == 5


texts = st.text(max_size=30)


@settings(max_examples=60)
@given(st.lists(st.tuples(texts, texts), max_size=6))
def test_every_session_exports_a_workflow_that_parses_and_always_the_same(turns: list[tuple[str, str]]) -> None:
    driven = Driven()
    for user, reply in turns:
        driven.go(Send(user), answer(reply))
    first = exported(stored_header(), driven.events, AGENT, price=dollar_a_million)
    assert exported(stored_header(), driven.events, AGENT, price=dollar_a_million) == first
    workflow = read_workflow(first.data, name="s")
    assert len(workflow.workflow.nodes) == len(turns) + 2
