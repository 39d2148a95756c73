"""What Relavium's messages and records are as Session Data, and what an assembly makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from schemas.call_facts import CallFacts
from schemas.session_data import Record, text_of
from storage.objects import open_store
from storage.zone import Zone
from tasks.land.relavium import Relavium
from tasks.land.relavium.kinds import DocumentKey, source_file
from tasks.land.relavium.lines import digest_of, message_lines, record_line
from tasks.land.source import Converted, Line
from tests.relavium_archive import assemble, land, put_pair
from tests.relavium_sessions import AGENT, call, message, record_value, result, said

HANDLE = "media://sha256-" + "0a" * 32
DIALECT = Relavium(open_store("."))
OF_MESSAGES = source_file(DocumentKey("record.json", "session-1", "messages"))
OF_RECORD = source_file(DocumentKey("record.json", "session-1", "record"))


def converted(*messages: dict[str, Any]) -> list[Converted]:
    found, off = [], 0
    for number, body in enumerate(message_lines(messages), 1):
        found.append(DIALECT.convert(Line(number, off, body), OF_MESSAGES))
        off += len(body) + 1
    assert [each.problem for each in found] == [""] * len(found)
    return found


def records(*messages: dict[str, Any]) -> list[Record]:
    return [each.record for each in converted(*messages)]


def of_record(costs: Any = (), **fields: Any) -> Converted:
    return DIALECT.convert(Line(1, 0, record_line(record_value(**fields), [], costs)), OF_RECORD)


def kinds(record: Record) -> list[str]:
    return [part.k for part in record.parts]


def data(record: Record, place: int = -1) -> Any:
    return json.loads(bytes(record.parts[place].data))  # type: ignore[arg-type]


def boundary(sequence: int, text: str | None) -> dict[str, Any]:
    content = [] if text is None else said(text)
    return message(sequence, "system", content, compaction={"droppedThroughSequence": sequence - 1})


def test_a_persons_message_begins_a_run_that_the_answer_ends() -> None:
    asked, uses, results, answer, later = records(
        message(0, "user", said("a", "b")),
        message(1, "assistant", [*said("let me see"), call("read_file")], modelId="mc-1"),
        message(2, "tool", [result()]),
        message(3, "assistant", said("so")),
        message(4, "assistant", said("an orphan")),
    )
    assert (asked.id, asked.run, asked.from_, asked.trigger, asked.flags) == (
        "session-1#1",
        "session-1#1",
        "external",
        "external",
        ("external_input",),
    )
    assert [text_of(part) for part in asked.parts[:2]] == ["a", "b"]
    assert (uses.from_, uses.call, uses.run, uses.model) == ("agent", "session-1#2", "session-1#1", "mc-1")
    assert (results.from_, results.call, results.run) == ("runtime", "", "session-1#1")
    assert (answer.call, answer.run, answer.usage) == ("session-1#4", "session-1#1", None)
    assert later.run == ""


def test_every_record_holds_its_message_whole() -> None:
    given = message(0, "user", said("x"))
    (record,) = records(given)
    assert data(record) == {"schema": "relavium_message/1", "before": "", "message": given, "turn": 1}
    assert (record.bytes, record.sha) == (record.parts[-1].bytes, digest_of(bytes(record.parts[-1].data)))  # type: ignore[arg-type]


@pytest.mark.parametrize("outcome", ["ok", "error", "denied", "cancelled"])
def test_tools_are_called_and_end_without_their_content(outcome: str) -> None:
    media = {"type": "media", "mimeType": "image/png", "source": {"kind": "handle", "ref": HANDLE}}
    _, uses, results = records(
        message(0, "user", said("x")),
        message(1, "assistant", [call("read_file", 7) | {"argsBytes": 17}]),
        message(2, "tool", [result(7) | {"resultBytes": 240, "outcome": outcome, "media": [media]}]),
    )
    used, ended, shown = uses.parts[0], *results.parts[:2]
    assert (used.k, used.id, used.name, used.bytes, used.state) == (
        "call",
        "session-tool:1:7",
        "read_file",
        17,
        "unavailable",
    )
    assert (ended.k, ended.of, ended.failed, ended.bytes, ended.state) == (
        "result",
        "session-tool:1:7",
        outcome != "ok",
        240,
        "unavailable",
    )
    assert data(results, 0) == {"outcome": outcome}
    assert (shown.k, shown.media, data(results, 1)) == ("media", "image/png", HANDLE)


def test_thoughts_and_media_are_parts_of_their_own() -> None:
    media = {
        "type": "media",
        "mimeType": "audio/wav",
        "source": {"kind": "handle", "ref": HANDLE},
        "name": "n.wav",
        "transcript": "hello",
        "byteLength": 99,
    }
    asked, answer = records(
        message(0, "user", [media]),
        message(
            1, "assistant", [{"type": "reasoning", "text": "hm"}, {"type": "reasoning", "text": "", "redacted": True}]
        ),
    )
    part = asked.parts[0]
    assert (part.k, part.media, part.name, part.bytes, text_of(part)) == ("media", "audio/wav", "n.wav", 99, "hello")
    assert [(part.k, text_of(part), part.state) for part in answer.parts[:2]] == [
        ("reasoning", "hm", "available"),
        ("reasoning", "", "redacted"),
    ]


def test_words_of_the_system_are_injected_and_begin_nothing() -> None:
    (record,) = records(message(0, "system", said("be brief")))
    assert (record.from_, record.flags, record.run, record.trigger) == ("runtime", ("injected",), "", "")


def test_a_boundary_with_a_summary_is_a_reset_and_what_stands_for_it() -> None:
    _, _, reset, summary, _ = records(
        message(0, "user", said("one")),
        message(1, "assistant", said("1")),
        boundary(2, "Counted to one."),
        message(3, "user", said("two")),
    )
    assert (reset.id, reset.flags, reset.continues) == ("session-1#3", ("context_reset",), "session-1#2")
    assert data(reset)["boundary"] == {"droppedThroughSequence": 1, "message": "m2"}
    assert (summary.flags, summary.parent, text_of(summary.parts[0])) == (
        ("reset_summary",),
        "session-1#3",
        "Counted to one.",
    )
    assert reset.time == summary.time == "2026-07-01T09:00:00Z"


@pytest.mark.parametrize("text", [None, ""])
def test_a_trim_is_a_reset_alone(text: str | None) -> None:
    _, reset = records(message(0, "user", said("one")), boundary(1, text))
    assert (reset.flags, reset.continues, data(reset)["message"]["id"]) == (("context_reset",), "session-1#1", "m1")


@pytest.mark.parametrize(
    ("stamp", "time"),
    [
        ("2026-07-01T09:00:00.123Z", "2026-07-01T09:00:00.123Z"),
        ("2026-07-01T09:00Z", "2026-07-01T09:00:00Z"),
        ("2026-07-01T09:00:01+0300", "2026-07-01T09:00:01+03:00"),
        ("2026-07-01T09:00-03:30", "2026-07-01T09:00:00-03:30"),
        ("2026-07-01T09:00:00.5-99:99", "2026-07-01T09:00:00.5-99:99"),
    ],
)
def test_a_time_is_written_as_session_data_reads_times(stamp: str, time: str) -> None:
    assert records(message(0, "user", said("x"), timestamp=stamp))[0].time == time


def test_half_a_pair_is_kept_in_the_line() -> None:
    (record,) = records(message(0, "user", said("a\ud83db")))
    assert text_of(record.parts[0]) == "a\ufffdb"
    assert data(record)["message"]["content"] == said("a\ud83db")


def test_messages_stand_in_sequence_whatever_their_order() -> None:
    given = [message(n, "user", said(str(n))) for n in (2, 0, 1)]
    assert [text_of(each.parts[0]) for each in records(*given)] == ["0", "1", "2"]
    assert message_lines(given) == message_lines(reversed(given))


def test_a_changed_message_changes_every_line_that_follows() -> None:
    given = [message(n, "user", said(str(n))) for n in range(4)]
    before = message_lines(given)
    given[1] = message(1, "user", said("other"))
    after = message_lines(given)
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, False, False, False]


def test_a_sessions_record_has_its_title_and_totals() -> None:
    record, problem, facts = of_record(title="Tides", agentSnapshot=AGENT, totalConservativeMicrocents=5)
    assert (problem, record.id, record.label, record.from_, record.flags) == ("", "", "Tides", "runtime", ())
    assert (record.time, record.model, record.call) == ("2026-07-01T09:01:00.000Z", "m-1", "session-1#totals")
    assert record.usage is not None
    assert (record.usage.in_, record.usage.out) == (1, 2)
    assert isinstance(facts, CallFacts)
    assert (facts.call, facts.session, facts.cwd, facts.model) == ("session-1#totals", "session-1", "/harbour", "m-1")
    assert json.loads(bytes(facts.usage)) == {
        "inputTokens": 1,
        "outputTokens": 2,
        "costMicrocents": 3,
        "conservativeMicrocents": 5,
    }


def test_what_each_model_has_cost_stands_beside_the_totals() -> None:
    row = {
        "model": "m-1",
        "input_tokens": 1,
        "output_tokens": 2,
        "cost_microcents": 3,
        "conservative_microcents": 0,
        "call_count": 4,
        "unpriced_calls": 1,
        "is_legacy": 0,
    }
    facts = of_record([row]).call
    assert facts is not None
    assert json.loads(bytes(facts.usage))["models"] == [
        {
            "model": "m-1",
            "inputTokens": 1,
            "outputTokens": 2,
            "costMicrocents": 3,
            "conservativeMicrocents": 0,
            "callCount": 4,
            "unpricedCalls": 1,
            "legacy": False,
        }
    ]


def test_a_session_that_cost_nothing_has_no_usage() -> None:
    record, _, facts = of_record(totalInputTokens=0, totalOutputTokens=0, totalCostMicrocents=0)
    assert (record.usage, record.call, facts) == (None, "", None)
    failed = of_record(totalInputTokens=0, totalOutputTokens=0)
    assert failed.call is not None  # failed turns keep what they cost


@pytest.mark.parametrize(("status", "flags"), [("active", ()), ("idle", ()), ("exported", ()), ("ended", ("notice",))])
def test_an_ended_session_says_so(status: str, flags: tuple[str, ...]) -> None:
    record = of_record(status=status).record
    assert record.flags == flags
    assert data(record)["record"]["status"] == status


@pytest.mark.parametrize(
    "line", [b"{}", b"[]", b"nothing", b'{"schema":"relavium_session/1"}', b'{"schema":"relavium_message/1"}', b"\xff"]
)
def test_a_line_that_is_none_lands_as_it_is(line: bytes) -> None:
    record, problem, facts = DIALECT.convert(Line(3, 10, line), OF_MESSAGES)
    assert problem
    assert facts is None
    assert (record.id, kinds(record), record.ord, record.off) == ("session-1#3", ["unknown"], 3, 10)


def test_an_assembly_shows_turns_tools_and_the_reset(tmp_path: Path) -> None:
    (tmp_path / "zone").mkdir()
    zone = Zone(open_store(tmp_path / "zone"))
    put_pair(
        tmp_path / "source",
        record_value(title="Tides", status="ended"),
        [
            message(0, "user", said("one")),
            message(1, "assistant", [call("read_file")]),
            message(2, "tool", [result()]),
            message(3, "assistant", said("1")),
            boundary(4, "Counted to one."),
            message(5, "user", said("two")),
            message(6, "assistant", said("2")),
        ],
    )
    land(tmp_path / "source", zone)
    assemble(zone)
    view = zone.chain("session-1").fold()
    nodes = [json.loads(entity.facts) for entity in view.nodes.values()]
    counted = {kind: sum(node["kind"] == kind for node in nodes) for kind in {node["kind"] for node in nodes}}
    assert counted == {
        "session": 1,
        "stream": 1,
        "epoch": 2,
        "epoch.boundary": 1,
        "epoch.summary": 1,
        "talk": 2,
        "run": 2,
        "segment": 1,
        "message.external": 2,
        "message.assistant": 2,
        "llm.call": 3,
        "tool": 1,
        "control.notice": 1,
    }
    (tool,) = (node for node in nodes if node["kind"] == "tool")
    assert tool["attrs"]["name"] == "read_file"
    assert tool["attrs"]["result_join"] == "exact_unique"
    relations = sorted(json.loads(entity.facts)["type"] for entity in view.relations.values())
    assert relations == ["follows", "in_segment", "in_segment", "summarizes"]
    assert view.header is not None
    assert view.header.title == "Tides"
    assert view.unresolved == {}
