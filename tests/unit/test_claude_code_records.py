"""Claude Code rows as records: what each member becomes, and that nothing is lost of a row that is odd."""

from __future__ import annotations

import json
from typing import Any

import pytest

from schemas.session_data import Record, encode_record, text_of
from tasks.land.claude_code import ClaudeCode
from tasks.land.claude_code.discover import source_file
from tasks.land.source import Line, SourceFile

SESSION = "3758e554-dd3c-4170-89f8-eb139d3f8c97"
AGENT = "ad44dfacb6876bcad"
MAIN = f"p/{SESSION}.jsonl"
JOURNAL = f"p/{SESSION}/subagents/workflows/wf_1/journal.jsonl"


def at(key: str) -> SourceFile:
    file = source_file(key)
    assert file is not None
    return file


def record(body: str | bytes, key: str = MAIN) -> Record:
    data = body.encode() if isinstance(body, str) else body
    return ClaudeCode().convert(Line(1, 0, data), at(key)).record


def row(key: str = MAIN, /, **members: Any) -> Record:
    return record(json.dumps(members), key)


def parts(found: Record) -> list[dict[str, Any]]:
    parsed: dict[str, Any] = json.loads(encode_record(found))
    listed: list[dict[str, Any]] = parsed["parts"]
    return listed


@pytest.mark.parametrize(
    "body",
    [
        "",
        "\r",
        "{",
        "\ufeff{}",
        '{"a":"\t"}',
        '{"uuid":7}',
        '{"isMeta":"yes"}',
        '{"origin":"human"}',
        '{"attachment":[1]}',
        '{"message":"text"}',
        '{"message":{"usage":{"input_tokens":1.0}}}',
        "[1]",
        '"text"',
    ],
)
def test_row_that_does_not_decode_lands_whole_as_an_unknown_part(body: str) -> None:
    found = record(body)
    assert found.id == ""
    assert found.from_ == "runtime"
    assert found.bytes == len(body.encode())
    (part,) = parts(found)
    assert part["k"] == "unknown"
    assert part["text"] == "the record is not valid JSON"
    assert part["data"] == body


def test_bytes_that_are_not_text_land_in_base64() -> None:
    (part,) = parts(record(b"\xff\xfe"))
    assert (part["encoding"], part["data"], part["bytes"]) == ("base64", "//4=", 2)


def test_keys_match_in_any_case_and_a_repeated_object_is_merged() -> None:
    found = record('{"UUID":"u","ParentUUID":"p","message":{"id":"m"},"Message":{"model":"x"}}')
    assert (found.id, found.parent, found.call, found.model) == ("u", "p", "m", "x")


def test_usage_is_there_when_the_row_has_the_object() -> None:
    assert row(message={"usage": {}}).usage is not None
    assert row(message={"usage": None}).usage is None
    assert json.loads(encode_record(row(message={"usage": {"input_tokens": -4}})))["usage"] == {"in": -4}


@pytest.mark.parametrize(
    "body",
    [
        b'{"message":{"usage":{"output_tokens":3}},"Message":{"id":"x"}}',
        b'{"message":{"usage":{"input_tokens":1}},"message":{"Usage":{"output_tokens":3}},"requestId":5}',
    ],
)
def test_usage_of_repeated_messages_is_the_last_there_is(body: bytes) -> None:
    found = ClaudeCode().convert(Line(1, 0, body), at(MAIN))
    assert found.record.usage is not None
    assert found.record.usage.out == 3
    assert found.call is not None
    assert bytes(found.call.usage) == b'{"output_tokens":3}'
    assert found.call.request_id == ""


@pytest.mark.parametrize(
    ("members", "flags"),
    [
        ({"type": "assistant", "message": {"model": "<synthetic>", "stop_reason": "x"}}, ("synthetic", "finished")),
        ({"type": "system", "subtype": "compact_boundary"}, ("context_reset",)),
        ({"type": "system", "subtype": "local_command"}, ("command",)),
        ({"type": "system", "isMeta": True}, ("injected", "notice")),
        ({"type": "user", "origin": {"kind": "human"}}, ("external_input",)),
        ({"type": "user", "origin": {"kind": "human"}, "isMeta": True}, ("injected",)),
        (
            {"type": "attachment", "attachment": {"type": "queued_command", "commandMode": "prompt"}},
            ("external_input",),
        ),
        ({"type": "attachment", "attachment": {"type": "todo"}}, ("injected",)),
        ({"type": "user", "toolUseResult": {"status": "async_launched"}}, ("launch_ack",)),
        ({"type": "user", "toolUseResult": {"status": "completed"}}, ("child_result",)),
        ({"type": "user", "isCompactSummary": True}, ("reset_summary",)),
    ],
)
def test_flags(members: dict[str, Any], flags: tuple[str, ...]) -> None:
    assert row(**members).flags == flags


def test_journal_row_with_a_result_is_a_childs_result_even_when_it_is_null() -> None:
    assert row(JOURNAL, agentId=AGENT, result=None).flags == ("child_result",)
    assert row(JOURNAL, agentId=AGENT).flags == ()
    assert (row(JOURNAL, agentId=AGENT).child, row(JOURNAL).batch) == (AGENT, "wf_1")


def test_tool_result_that_does_not_decode_still_names_what_it_is_about() -> None:
    found = row(type="user", toolUseResult={"agentId": AGENT, "content": [], "runId": "r", "status": "completed"})
    assert (found.child, found.batch, found.flags) == (AGENT, "r", ())


def test_notification_names_its_call_and_its_agent() -> None:
    text = f"<task-notification><task-id> {AGENT} </task-id><tool-use-id>t1</tool-use-id></task-notification>"
    found = row(type="user", message={"content": text}, origin={"kind": "task-notification"})
    assert (found.tool, found.child, found.trigger) == ("t1", AGENT, "notification")


def test_signatures_are_dropped_and_said_so() -> None:
    found = row(message={"content": [{"type": "thinking", "thinking": "", "signature": "abc"}]})
    assert [(each.what, each.bytes) for each in found.dropped] == [("reasoning signature", 3)]
    assert parts(found) == [{"k": "reasoning", "state": "unavailable"}]


def test_result_without_text_keeps_its_content() -> None:
    content = [{"type": "tool_result", "tool_use_id": "t", "is_error": False, "content": [{"type": "text", "text": 1}]}]
    (part,) = parts(row(message={"content": content}))
    assert (part["of"], part["failed"], part["data"]) == ("t", False, [{"type": "text", "text": 1}])


def test_text_of_several_blocks_is_joined_by_lines() -> None:
    content = [{"type": "tool_result", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]
    assert text_of(row(message={"content": content}).parts[0]) == "a\nb"


def test_edit_without_a_patch_gets_a_diff_of_its_own() -> None:
    found = row(
        type="user",
        timestamp="2026-01-01T00:00:00Z",
        cwd="/srv",
        message={"content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]},
        toolUseResult={"filePath": "/srv/a.txt", "originalFile": "a\n", "oldString": "a", "newString": "b<"},
    )
    change = parts(found)[-1]["data"]
    assert change["root"] == {"path": "/srv"}
    assert change["changes"][0]["path"] == "a.txt"
    assert change["changes"][0]["hunks"][0]["lines"] == ["-a", "+b<"]
    assert b'"+b\\u003c"' in encode_record(found)


@pytest.mark.parametrize(
    ("path", "cwd", "shown"),
    [
        ("/srv/a", "/srv/", "a"),
        ("/srv", "/srv", "."),
        ("/srv/..x", "/srv", "/srv/..x"),
        ("/other/a", "/srv", "/other/a"),
        ("/srvx", "/srv", "/srvx"),
        ("a", "/srv", "a"),
        ("/a", "/", "a"),
        ("/a", "", "/a"),
    ],
)
def test_changed_path_is_relative_to_the_folder_only_when_below_it(path: str, cwd: str, shown: str) -> None:
    found = row(
        timestamp="t",
        cwd=cwd,
        message={"content": [{"type": "tool_result", "tool_use_id": "t"}]},
        toolUseResult={"filePath": path, "content": "x"},
    )
    assert parts(found)[-1]["data"]["changes"][0]["path"] == shown


def test_row_too_deep_to_stand_inside_a_record_lands_as_an_unknown_part() -> None:
    body = '{"a":' + "[" * 9_998 + "]" * 9_998 + "}"
    (part,) = record(body).parts
    assert (part.k, text_of(part)) == ("unknown", "the record is nested too deep to stand inside another")


def test_manifest_that_is_not_json_lands_as_an_unknown_part() -> None:
    (part,) = record("{", f"p/{SESSION}/workflows/wf_1.json").parts
    assert part.k == "unknown"


@pytest.mark.parametrize(
    ("key", "kind", "place"),
    [
        (MAIN, "transcript", "main"),
        (f"p/{SESSION}/subagents/agent-{AGENT}.jsonl", "transcript", AGENT),
        (f"p/{SESSION}/subagents/agent-{AGENT}.meta.json", "agent_meta", AGENT),
        (f"p/{SESSION}/subagents/workflows/any/agent-{AGENT}.jsonl", "transcript", AGENT),
        (f"p/{SESSION}/subagents/workflows/any/journal.jsonl", "journal", "any"),
        (f"p/{SESSION}/workflows/wf_1.json", "workflow_manifest", "wf_1"),
        (f"p/{SESSION}/workflows/scripts/x-wf_a-wf_1-b.js", "workflow_script", "wf_1-b"),
        (f"machine/home/.claude/projects/p/{SESSION}.jsonl", "transcript", "main"),
        (f"machine/projects/p/{SESSION}/subagents/agent-{AGENT}.jsonl", "transcript", AGENT),
    ],
)
def test_place_of_a_file_says_what_it_is(key: str, kind: str, place: str) -> None:
    file = at(key)
    assert (file.session, file.kind, file.place) == (SESSION, kind, place)


@pytest.mark.parametrize(
    "key",
    [
        f"{SESSION}.jsonl",
        f"p/{SESSION}.jsonl\n",
        f"p/{SESSION[:-1]}.jsonl",
        f"machine/p/{SESSION}.jsonl",
        f"machine/projects/p/q/{SESSION}.jsonl",
        f"p/agent-{AGENT}.jsonl",
        f"p/{SESSION}/subagents/agent-acompact-1.jsonl",
        f"p/{SESSION}/subagents/agent-{AGENT}.json",
        f"p/{SESSION}/tool-results/x.jsonl",
        f"p/{SESSION}/subagents/workflows/a/b/journal.jsonl",
        f"p/{SESSION}/workflows/scripts/wf_1.js",
        f"p/{SESSION}/workflows/scripts/x-wf_-1.js",
        "p/memory/notes.md",
    ],
)
def test_anything_else_is_none_of_a_sessions(key: str) -> None:
    assert source_file(key) is None
