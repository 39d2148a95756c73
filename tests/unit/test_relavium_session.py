"""What a Relavium session may hold: the rules beside the golden refusals (Relavium notes, sections 1.1 to 1.5)."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.errors import AgentSessionRejected
from schemas.relavium import parse_messages, parse_record, read_messages, read_record
from schemas.relavium_agent import Agent, authored_problems
from schemas.relavium_json import read_json
from tests.relavium_sessions import AGENT, CONTEXT, call, message, record, record_value, result, said

HANDLE = {"kind": "handle", "ref": f"media://sha256-{'0' * 64}"}
AUDIO: dict[str, Any] = {"type": "media", "mimeType": "audio/ogg", "source": HANDLE}


def refusal(value: Any) -> tuple[int | None, str, str]:
    """Row, rule and field of what a record (an object) or messages (an array) are refused for."""
    parse = parse_messages if isinstance(value, list) else parse_record
    with pytest.raises(AgentSessionRejected) as refused:
        parse(value, name="f")
    return refused.value.row, refused.value.rule, refused.value.field


def accepts(part: dict[str, Any], role: str = "user") -> bool:
    parse_messages([message(0, role, [part])], name="f")
    return True


# --- record and context ----------------------------------------------------------------------------------------------


def test_keys_a_record_does_not_know_are_dropped() -> None:
    kept = parse_record(record_value(more=1, context=CONTEXT | {"more": 2}), name="f")
    assert not hasattr(kept, "more")
    assert not hasattr(kept.context, "more")


@pytest.mark.parametrize("field", ["title", "agentId", "modelId", "exportedWorkflowPath", "agentSnapshot", "deletedAt"])
def test_an_optional_field_may_be_absent_but_not_null(field: str) -> None:
    assert getattr(record(), field) is None
    assert refusal(record_value(**{field: None})) == (None, "invalid_type", field)


def test_nothing_is_trimmed_so_a_space_is_a_title() -> None:
    assert record(title=" ").title == " "


@pytest.mark.parametrize("number", [1, 1.0, 1e300, 0, -0.0])
def test_an_integer_is_any_number_without_a_fraction(number: float) -> None:
    assert record(totalInputTokens=number).totalInputTokens == number


@pytest.mark.parametrize("value", [True, "1", 1.5, -1, float("inf")])
def test_what_is_no_natural_number_is_refused(value: object) -> None:
    assert refusal(record_value(totalCostMicrocents=value))[2] == "totalCostMicrocents"


@pytest.mark.parametrize("digits", [309, 310, 400, 401, 5000])
@pytest.mark.parametrize("sign", ["", "-"])
def test_an_integer_of_any_length_is_read_as_a_double(digits: int, sign: str) -> None:
    value = read_json(f"{sign}{'9' * digits}".encode(), name="f")
    assert value == float(f"{sign}inf")


@pytest.mark.parametrize(
    "time",
    ["2026-07-01T09:00Z", "2026-07-01T09:00:00.123456789Z", "2024-02-29T00:00:00-99:99", "2026-07-01T23:59:59+0330"],
)
def test_times_may_lack_seconds_and_have_any_offset(time: str) -> None:
    assert record(createdAt=time).createdAt == time


@pytest.mark.parametrize(
    "time",
    [
        "2026-07-01T09:00:00",
        "2026-07-01t09:00:00Z",
        "2023-02-29T00:00Z",
        "2026-07-01T24:00Z",
        "2026-07-01T09:00+03",
        "2026-07-01T09:00:00Z\n",
        "\u0662026-07-01T09:00:00Z",
        "2026-04-31T09:00:00Z",
        "2026-07-01 09:00:00Z",
    ],
)
def test_times_that_no_calendar_or_clock_has_are_refused(time: str) -> None:
    assert refusal(record_value(updatedAt=time)) == (None, "invalid_string", "updatedAt")


def test_a_selection_may_be_one_line() -> None:
    lines = {"file": "a", "startLine": 2, "endLine": 2}
    assert record(context=CONTEXT | {"selection": lines}).context.selection is not None


# --- messages and parts ----------------------------------------------------------------------------------------------


def test_the_first_bad_message_is_named_by_its_row() -> None:
    assert refusal([message(0, "user", said("a")), message(1, "user", [{"type": "text"}])]) == (
        2,
        "required",
        "content.0.text",
    )


@pytest.mark.parametrize("value", [None, 1, "a", {}, []])
def test_what_is_no_part_is_refused(value: object) -> None:
    assert refusal([message(0, "user", [value])])[2].startswith("content.0")  # type: ignore[list-item]


def test_messages_must_be_an_array() -> None:
    with pytest.raises(AgentSessionRejected, match=r"f: invalid_type: messages: expected an array, received object"):
        parse_messages({}, name="f")


def test_rows_of_every_role_may_be_empty() -> None:
    roles = ("system", "user", "assistant", "tool")
    assert len(parse_messages([message(place, role, []) for place, role in enumerate(roles)], name="f")) == 4


def test_pairing_gaps_and_foreign_session_ids_are_not_the_schemas_business() -> None:
    rows = [message(9, "assistant", [call("a"), call("a")], sessionId="other"), message(9, "tool", [result(7)])]
    assert len(parse_messages(rows, name="f")) == 2


@pytest.mark.parametrize(
    ("role", "part"),
    [("user", call("a")), ("system", call("a")), ("tool", call("a")), ("assistant", result()), ("tool", AUDIO)],
    ids=str,
)
def test_parts_stay_in_the_rows_of_their_role(role: str, part: dict[str, Any]) -> None:
    assert refusal([message(0, role, [part])]) == (1, "row_role", "content.0")


def test_media_may_stand_in_a_system_row() -> None:
    assert accepts(AUDIO, "system")


@pytest.mark.parametrize("role", ["user", "assistant", "tool"])
def test_a_boundary_belongs_to_a_system_row(role: str) -> None:
    assert refusal([message(0, role, [], compaction={"droppedThroughSequence": 0})]) == (1, "row_role", "compaction")


@pytest.mark.parametrize(
    "id",
    ["session-tool:1:0", "session-tool:9007199254740991:9007199254740991"],
)
def test_tool_ids_are_two_canonical_numbers(id: str) -> None:
    assert accepts(call("a") | {"id": id}, "assistant")


@pytest.mark.parametrize(
    "id",
    [
        "session-tool:0:0",
        "session-tool:01:0",
        "session-tool:1:00",
        "session-tool:9007199254740992:0",
        "session-tool:1:0\n",
        "session-tool:1:-0",
        "session-tool:1",
        "Session-tool:1:0",
        "session-tool:\u0661:0",
    ],
)
def test_other_tool_ids_are_refused(id: str) -> None:
    assert refusal([message(0, "assistant", [call("a") | {"id": id}])])[2] == "content.0.id"


def test_lengths_are_utf_16_units() -> None:
    assert accepts(AUDIO | {"name": "😀" * 127 + "a"})
    assert refusal([message(0, "user", [AUDIO | {"name": "😀" * 128}])]) == (1, "too_big", "content.0.name")


@pytest.mark.parametrize("mime", ["IMAGE/PNG", "application/PDF", "video/x.y+z", "image/!#$%&'*+.^`|~-_"])
def test_media_types_are_told_in_any_case(mime: str) -> None:
    assert accepts(AUDIO | {"mimeType": mime})


@pytest.mark.parametrize("mime", ["image/", "image/a/b", "application/json", "image/png ", "image/png\n", "im age/png"])
def test_other_media_types_are_refused(mime: str) -> None:
    assert refusal([message(0, "user", [AUDIO | {"mimeType": mime}])])[2] == "content.0.mimeType"


def test_only_what_lasts_has_a_duration() -> None:
    assert accepts(AUDIO | {"durationMs": 1})
    image = AUDIO | {"mimeType": "image/png", "durationMs": 1}
    assert refusal([message(0, "user", [image])]) == (1, "not_allowed", "content.0.durationMs")


@pytest.mark.parametrize("text", ["data:;base64,", "DATA:image/png\n;BASE64,AAAA"])
def test_media_bytes_do_not_hide_in_a_transcript(text: str) -> None:
    assert refusal([message(0, "user", [AUDIO | {"transcript": text}])]) == (1, "data_uri", "content.0.transcript")
    assert accepts(AUDIO | {"transcript": f"see {text}"})


def test_a_tools_media_may_be_an_empty_list() -> None:
    assert accepts(result() | {"media": []}, "tool")


# --- JSON ------------------------------------------------------------------------------------------------------------


def test_json_is_read_as_javascript_reads_it() -> None:
    texts = b'[{"type":"text","text":"\\ud83d\xff"}]'
    row = b'{"id":"a","id":"b","sessionId":"s","sequenceNumber":-0,"role":"user","content":%s,"timestamp":"%s"}'
    (read,) = read_messages(b"[" + row % (texts, b"2026-07-01T09:00:00Z") + b"]", name="f")
    assert (read.id, str(read.sequenceNumber), read.content[0].text) == ("b", "-0.0", "\ud83d\ufffd")  # type: ignore[union-attr]


@pytest.mark.parametrize("data", [b"", b"{", b"[NaN]", b"[Infinity]", b'["\n"]', b"[" * 100_000, b"\xef\xbb\xbf[]"])
def test_what_is_not_json_is_refused(data: bytes) -> None:
    with pytest.raises(AgentSessionRejected, match="json: "):
        read_messages(data, name="f")


def test_an_integer_of_any_length_is_a_double() -> None:
    with pytest.raises(AgentSessionRejected, match="invalid_type: id"):
        read_record(b'{"id":' + b"9" * 5000 + b"}", name="f")


# --- agents ----------------------------------------------------------------------------------------------------------


def server(**fields: Any) -> dict[str, Any]:
    return record_value(agentSnapshot=AGENT | {"mcp_servers": [fields]})


@pytest.mark.parametrize(
    ("fields", "rule", "field"),
    [
        ({"id": "a"}, "required", "transport"),
        ({"transport": "stdio", "command": "x"}, "required", "id"),
        ({"id": "a", "transport": "stdio", "command": ""}, "required", "command"),
        ({"id": "a", "transport": "stdio", "command": "x", "url": "https://h"}, "not_allowed", "url"),
        ({"id": "a", "transport": "stdio", "command": "x", "allow_local_endpoint": False}, "not_allowed", None),
        ({"id": "a", "transport": "stdio", "command": "x", "env": {"Ld_Preload": "y"}}, "denied_env", "env.Ld_Preload"),
        ({"id": "a", "transport": "http"}, "required", "url"),
        ({"id": "a", "transport": "http", "url": "https://h", "args": []}, "not_allowed", "args"),
        ({"id": "a", "transport": "http", "url": "wss://h"}, "url_scheme", "url"),
        ({"id": "a", "transport": "http", "url": "https:h"}, "url_scheme", "url"),
        ({"id": "a", "transport": "http", "url": "https://x y"}, "invalid_string", "url"),
        ({"id": "a", "transport": "sse", "url": "https://u@h"}, "url_credentials", "url"),
        ({"ref": "r", "connect_timeout_ms": 1}, "not_allowed", "connect_timeout_ms"),
        ({"ref": ""}, "too_small", "ref"),
        ({"ref": "r", "tools_allowlist": [""]}, "too_small", "tools_allowlist.0"),
    ],
    ids=str,
)
def test_a_server_has_one_form(fields: dict[str, Any], rule: str, field: str | None) -> None:
    found = refusal(server(**fields))
    assert found[1] == rule
    assert field is None or found[2] == f"agentSnapshot.mcp_servers.0.{field}"


@pytest.mark.parametrize(
    "url", ["https://a?@b", "HTTPS://example.com:443/x y", "https://[::1]:9/", "https://\u65e5\u672c.jp"]
)
def test_addresses_that_a_browser_takes_are_taken(url: str) -> None:
    assert parse_record(server(id="a", transport="http", url=url), name="f").agentSnapshot is not None


@pytest.mark.parametrize("url", ["https://", "https://a:65536", "https://[::1", "https://a b", "https://1.2.3.999"])
def test_addresses_that_a_browser_refuses_are_refused(url: str) -> None:
    assert refusal(server(id="a", transport="http", url=url))[1:] == (
        "invalid_string",
        "agentSnapshot.mcp_servers.0.url",
    )


def test_servers_are_named_once() -> None:
    servers = [{"ref": "a"}, {"id": "a", "transport": "stdio", "command": "x"}]
    snapshot = AGENT | {"mcp_servers": servers}
    assert refusal(record_value(agentSnapshot=snapshot)) == (None, "duplicate", "agentSnapshot.mcp_servers")


def test_a_chain_the_engine_would_refuse_is_kept_as_it_is_and_reported() -> None:
    again = {"model": "m-1", "provider": "anthropic", "max_attempts": 12}
    chain = [again, *({"model": f"m-{n}", "provider": "openai", "max_attempts": 1} for n in range(2, 7))]
    snapshot = AGENT | {"fallback_chain": chain, "retry": {"max": 11, "backoff": "linear"}}
    agent = record(agentSnapshot=snapshot).agentSnapshot
    assert isinstance(agent, Agent)
    assert [entry.max_attempts for entry in agent.fallback_chain or []] == [12, 1, 1, 1, 1, 1]
    assert [problem.split(" ")[0] for problem in authored_problems(agent)] == [
        "retry.max",
        "fallback_chain",
        "fallback_chain.0.max_attempts",
        "fallback_chain",
    ]
    assert authored_problems(Agent.model_validate(AGENT)) == []
