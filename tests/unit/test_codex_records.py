"""Codex' lines as records: each thing once, by whom it was, in its turn and in its response."""

from __future__ import annotations

import json
from typing import Any

import pytest

from schemas.session_data import Record, Usage, text_of
from tasks.land.codex.convert import ThreadReader
from tasks.land.source import Converted, Line

THREAD = "01a19b8a-7238-7001-8a01-51d0c0de1eef"
PARENT = "01a19b8a-0000-7001-8a01-51d0c0de0000"
OLD_TURN = "01a19b8a-1000-7001-8a01-51d0c0de0001"
TURN = "01a19b8a-7240-7003-8a03-51d0c0de5ccd"
Row = dict[str, Any]


def meta(**fields: Any) -> Row:
    payload = {"id": THREAD, "timestamp": "2026-11-02T09:15:04.120Z", **fields}
    return {"timestamp": "2026-11-02T09:15:04.123Z", "type": "session_meta", "payload": payload}


def event(kind: str, /, **fields: Any) -> Row:
    return {"timestamp": "2026-11-02T09:15:05Z", "type": "event_msg", "payload": {"type": kind, **fields}}


def item(kind: str, /, **fields: Any) -> Row:
    return {"timestamp": "2026-11-02T09:15:05Z", "type": "response_item", "payload": {"type": kind, **fields}}


def says(role: str, *texts: str, kinds: list[str] | None = None) -> Row:
    content = [{"type": "input_text", "text": each} for each in texts]
    passed = {} if kinds is None else {"internal_chat_message_metadata_passthrough": {"content_item_kinds": kinds}}
    return item("message", role=role, content=content, **passed)


def done(kind: str, /, **fields: Any) -> Row:
    return event("item_completed", turn_id=TURN, thread_id=THREAD, item={"type": kind, **fields})


def started(turn: str = TURN) -> Row:
    return event("task_started", turn_id=turn)


def read(*rows: Row | bytes, thread: str = THREAD, segment: str = "") -> list[Record]:
    return [each.record for each in convert(*rows, thread=thread, segment=segment)]


def convert(*rows: Row | bytes, thread: str = THREAD, segment: str = "") -> list[Converted]:
    reader = ThreadReader(thread, segment)
    found, off = [], 0
    for number, row in enumerate(rows, 1):
        body = row if isinstance(row, bytes) else json.dumps(row).encode()
        found.append(reader.convert(Line(number, off, body)))
        off += len(body) + 1
    return found


def texts(records: list[Record], flag: str = "external_input") -> list[str]:
    return [text_of(part) for record in records if flag in record.flags for part in record.parts if part.k == "text"]


def answers(records: list[Record]) -> list[str]:
    return [text_of(part) for each in records if each.from_ == "agent" for part in each.parts if part.k == "text"]


@pytest.mark.parametrize(
    "twins",
    [
        [says("user", "go"), event("user_message", message="go"), done("UserMessage", content=[{"text": "go"}])],
        [event("user_message", message="go"), says("user", "go")],
        [done("UserMessage", content=[{"text": "go"}]), says("user", "go", kinds=["user.text"])],
        [event("user_message", message="go")],
    ],
)
def test_a_prompt_that_is_written_several_times_is_one(twins: list[Row]) -> None:
    records = read(meta(), started(), *twins)
    assert texts(records) == ["go"]
    assert [each.run for each in records[1:]] == [TURN] * (1 + len(twins))


def test_two_equal_prompts_of_a_turn_are_two() -> None:
    twice = [says("user", "go"), event("user_message", message="go")] * 2
    assert texts(read(meta(), started(), *twice)) == ["go", "go"]


def test_without_task_lines_each_prompt_begins_a_turn() -> None:
    records = read(meta(), says("user", "a"), event("user_message", message="a"), event("user_message", message="a"))
    assert [each.run for each in records] == ["", f"{THREAD}@2", f"{THREAD}@2", f"{THREAD}@4"]


@pytest.mark.parametrize(
    ("message", "prompts"),
    [
        (says("user", "<environment_context>x"), []),
        (says("user", "<div>"), ["<div>"]),
        (says("user", "<turn_aborted> is what it said", kinds=["user.text"]), ["<turn_aborted> is what it said"]),
        (says("user", "Carry on", kinds=["unknown"]), []),
        (says("developer", "Carry on"), []),
    ],
)
def test_only_what_a_person_wrote_is_a_prompt(message: Row, prompts: list[str]) -> None:
    assert texts(read(meta(), started(), message)) == prompts


def test_what_an_agent_is_asked_is_no_persons_prompt() -> None:
    records = read(meta(parent_thread_id=PARENT, agent_nickname="Euler"), started(), says("user", "check"))
    assert (records[0].label, texts(records), texts(records, "injected")) == ("Euler", [], ["check"])


def test_instructions_of_a_client_are_left_out_with_their_size() -> None:
    (record,) = read(meta(base_instructions={"text": "x" * 100}))
    assert [(each.what, each.bytes) for each in record.dropped] == [("base instructions", 111)]
    assert b"xxx" not in bytes(record.parts[0].data)  # type: ignore[arg-type]


def test_a_response_is_one_call_from_its_first_item_to_its_usage() -> None:
    used = {"input_tokens": 100, "cached_input_tokens": 60, "cache_write_input_tokens": 10, "output_tokens": 5}
    found = convert(
        meta(cwd="/w", cli_version="0.171.0", session_id=THREAD),
        {"type": "turn_context", "payload": {"model": "m"}},
        item("reasoning", summary=[], encrypted_content="abcd"),
        says("assistant", "hello"),
        {"type": "token_usage_record", "payload": {"response_id": "r1", "usage": used}},
        event("token_count", info={"total_token_usage": used, "last_token_usage": used}),
        says("assistant", "more"),
    )
    call = f"{THREAD}@3"
    assert [each.record.call for each in found] == ["", "", call, call, call, "", f"{THREAD}@7"]
    assert found[2].record.parts[0].state == "redacted"
    assert found[2].record.dropped[0].bytes == 4
    assert found[4].record.usage == Usage(in_=30, out=5, cache_read=60, cache_write=10)
    (facts,) = [each.call for each in found if each.call is not None]
    assert (facts.ord, facts.request_id, facts.model, facts.cwd, facts.client_version) == (
        5,
        "r1",
        "m",
        "/w",
        "0.171.0",
    )
    assert json.loads(bytes(facts.usage)) == used


@pytest.mark.parametrize(
    ("evidence", "output", "failed"),
    [
        ([], "Exit code: 0\nOutput:\nx", False),
        ([], "Process exited with code 3\n", True),
        ([], '{"output": "x", "metadata": {"exit_code": 1}}', True),
        ([], {"content": "x", "success": True}, False),
        ([], "unsupported call: x", True),
        ([], "Process running with session ID 7", None),
        ([done("CommandExecution", id="c", exit_code=0, status="completed")], "x", False),
        ([done("CommandExecution", id="c", exit_code=0)], "Wall time: 1\naborted by user", True),
        ([event("patch_apply_end", call_id="c", success=False)], "x", True),
        ([event("mcp_tool_call_end", call_id="c", result={"Ok": {}})], "x", False),
        ([event("exec_command_end", call_id="c", status="failed")], "x", True),
    ],
)
def test_how_a_call_went_is_told_by_events_and_output(evidence: list[Row], output: Any, failed: bool | None) -> None:
    call = item("function_call", name="shell", namespace="ns", arguments="{broken", call_id="c")
    records = read(meta(), started(), call, *evidence, item("function_call_output", call_id="c", output=output))
    assert (records[2].parts[0].name, json.loads(bytes(records[2].parts[0].data))) == ("ns.shell", "{broken")  # type: ignore[arg-type]
    result = records[-1].parts[0]
    assert (result.of, result.failed) == ("c", failed)


@pytest.mark.parametrize(
    "line",
    [
        done("SubAgentActivity", id="c", kind="started", agent_thread_id="t2"),
        done("CollabAgentToolCall", id="c", tool="spawnAgent", status="completed", receiver_thread_ids=["t2"]),
        event("collab_agent_spawn_end", call_id="c", new_thread_id="t2"),
        item("function_call_output", call_id="c", output='{"agent_id": "t2"}'),
    ],
)
def test_a_call_that_starts_an_agent_names_its_thread(line: Row) -> None:
    record = read(meta(), started(), line)[2]
    assert record.child == "t2"
    assert record.tool == ("" if line["type"] == "response_item" else "c")


def test_a_provider_s_own_tool_is_complete_in_itself() -> None:
    record = read(meta(), item("web_search_call", id="ws", status="completed", action={"query": "q"}))[1]
    assert [(part.k, part.id or part.of, part.failed) for part in record.parts] == [
        ("call", "ws", None),
        ("result", "ws", False),
    ]


def test_a_reviewer_s_lines_are_not_the_thread_s() -> None:
    records = read(
        meta(),
        done("EnteredReviewMode"),
        started("reviewer"),
        event("user_message", message="Review this"),
        event("agent_message", message="thinking"),
        done("ExitedReviewMode"),
        says("assistant", "Two findings"),
        event("task_complete", turn_id=TURN),
    )
    assert texts(records) == []
    assert answers(records) == ["Two findings"]
    assert records[6].flags == ("synthetic",)
    assert {each.run for each in records[1:]} == {TURN}


def test_a_compaction_resets_the_context() -> None:
    records = read(
        meta(),
        started(),
        {
            "type": "compacted",
            "payload": {"message": "Summary", "replacement_history": [says("user", "old")["payload"]]},
        },
        event("context_compacted"),
    )
    assert (records[2].flags, records[2].trigger, records[2].continues) == (
        ("context_reset",),
        "unknown",
        f"{THREAD}@2",
    )
    assert (records[3].flags, records[3].parent) == (("reset_summary",), f"{THREAD}@3")
    assert texts(records) == []


@pytest.mark.parametrize(
    ("line", "flags"),
    [
        (event("task_complete", turn_id=TURN), ("turn_duration",)),
        (event("task_complete", turn_id=TURN, error={"message": "overloaded"}), ("error",)),
        (event("turn_aborted", turn_id=TURN, reason="interrupted"), ("notice",)),
    ],
)
def test_a_turn_ends_with_its_closing_line(line: Row, flags: tuple[str, ...]) -> None:
    records = read(meta(), started(), line, event("thread_settings_applied"))
    assert (records[2].flags, [each.run for each in records]) == (flags, ["", TURN, TURN, ""])


def copied(turn: str = OLD_TURN) -> list[Row]:
    total = {"input_tokens": 1000, "output_tokens": 100}
    return [
        {**meta(), "payload": {"id": PARENT}},
        started(turn),
        says("user", "old"),
        event("token_count", info={"total_token_usage": total, "last_token_usage": total}),
        event("task_complete", turn_id=turn),
    ]


def test_a_copied_history_has_no_records_of_its_own_and_its_usage_is_not_counted_again() -> None:
    total = {"input_tokens": 3000, "output_tokens": 120}
    records = read(
        meta(forked_from_id=PARENT), *copied(), started(), says("user", "new"),
        event("token_count", info={"total_token_usage": total}),
    )  # fmt: skip
    assert texts(records) == ["new"]
    assert [bool(each.id) for each in records] == [True, *[False] * 5, *[True] * 3]
    assert [each.usage for each in records if each.usage] == [Usage(in_=2000, out=20)]


def test_a_copied_history_ends_with_the_first_turn_that_was_started_later() -> None:
    begun = {"turn_id": "t-1", "started_at": 1793610904}
    records = read(meta(forked_from_id=PARENT), *copied("t-0"), event("task_started", **begun), says("user", "new"))
    assert texts(records) == ["new"]


def test_without_turns_a_copied_history_ends_with_a_pause() -> None:
    later = {**says("user", "new"), "timestamp": "2026-11-02T09:15:09Z"}
    records = read(meta(forked_from_id=PARENT), {**meta(), "payload": {"id": PARENT}}, says("user", "old"), later)
    assert texts(records) == ["new"]


def test_a_sub_agent_s_own_lines_begin_where_it_says() -> None:
    rows = [{**says("user", words), "ordinal": place} for place, words in enumerate(["old", "new"], 1)]
    records = read({**meta(subagent_history_start_ordinal=2), "ordinal": 0}, *rows)
    assert texts(records) == ["new"]
    assert [each.id for each in records] == [f"{THREAD}#0", "", f"{THREAD}#2"]


def test_a_segment_of_a_revert_has_ids_of_its_own() -> None:
    assert read({**meta(history_base={}), "ordinal": 7}, segment="s2")[0].id == f"{THREAD}_s2#7"


def test_the_oldest_files_have_bare_payloads() -> None:
    first = {"id": THREAD, "timestamp": "2025-05-01T00:00:00Z"}
    bare = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    assert texts(read(first, {"record_type": "state"}, bare)) == ["hi"]


@pytest.mark.parametrize("body", [b"", b"{torn", b'{"a":1}{"b":2}', b"\x00\x00", b"[1]", b'"x"', b"\xff{}"])
def test_a_line_that_is_none_lands_as_it_is_and_the_next_is_read(body: bytes) -> None:
    found = convert(meta(), started(), body, says("user", "go"))
    assert found[2].problem
    assert found[2].record.parts[0].k == "unknown"
    assert found[2].record.bytes == len(body)
    assert texts([each.record for each in found]) == ["go"]


@pytest.mark.parametrize("value", [None, 1, "x", [], [1], {}, {"type": 7}])
@pytest.mark.parametrize("key", ["payload", "type", "ordinal", "timestamp"])
def test_members_of_other_types_stop_nothing(key: str, value: Any) -> None:
    odd = {**says("user", "hi"), key: value}
    assert len(read(meta(), odd, odd)) == 3


@pytest.mark.parametrize("value", [None, 1, "x", [], [1], {}, {"a": 1}, True])
@pytest.mark.parametrize(
    "key", ["content", "output", "arguments", "summary", "item", "info", "usage", "call_id", "error"]
)
@pytest.mark.parametrize(
    "kind",
    ["message", "reasoning", "function_call", "function_call_output", "item_completed", "token_count", "task_complete"],
)
def test_payloads_of_other_types_stop_nothing(kind: str, key: str, value: Any) -> None:
    for row in (item(kind, role="user", **{key: value}), event(kind, **{key: value})):
        assert len(read(meta(), started(), row)) == 3


def test_line_nested_deeper_than_clients_do_is_kept_as_it_is_and_named() -> None:
    deep = event("x", value=None)
    for levels, reason in ((240, ""), (251, "the record is nested too deep to stand inside another")):
        body = json.dumps(deep).replace("null", "[" * levels + '"]]]\\"{{{"' + "]" * levels).encode()
        (_, found) = convert(meta(), body)
        assert found.problem == reason
        assert found.record.parts[0].k == ("unknown" if reason else "data")


def test_a_first_total_alone_of_a_counter_that_goes_on_says_that_its_usage_is_unknown() -> None:
    def counted(total: int, last: int | None = None) -> Row:
        info: Row = {"total_token_usage": {"output_tokens": total}}
        return event(
            "token_count", info=info if last is None else {**info, "last_token_usage": {"output_tokens": last}}
        )

    def flags(*rows: Row) -> list[bool]:
        return ["usage_unknown" in each.flags for each in read(*rows)]

    agents = meta(parent_thread_id=PARENT)
    assert flags(agents, event("token_count", info=None), counted(0)) == [False, False, False]
    assert flags(agents, counted(777), counted(777), counted(800)) == [False, True, False, False]
    assert [each.usage for each in read(agents, counted(777), counted(800))] == [None, None, Usage(out=23)]
    assert flags(agents, counted(777, 20)) == [False, False]
    assert flags(meta(), counted(777)) == [False, False]
    response = {"type": "token_usage_record", "payload": {"response_id": "r1", "usage": {"output_tokens": 5}}}
    assert flags(agents, response, counted(777)) == [False, False, False]
