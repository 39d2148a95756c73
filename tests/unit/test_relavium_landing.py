"""Relavium's JSON files: which count, how a growing session lands, and that its export is its own exporter's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.relavium import read_messages, read_record
from schemas.session_data import text_of
from storage.objects import ObjectStore, open_store
from storage.zone import Zone
from tasks.export import scaffold
from tasks.land.archive import land_archive
from tasks.land.cursors import root_name
from tasks.land.outcome import LandOptions
from tasks.land.quarantine import all_notes
from tasks.land.relavium import Relavium, documents, stored
from tasks.verify import verify_session
from tests.command import Command
from tests.memory_store import MemoryStore
from tests.relavium_archive import (
    NOW,
    assemble,
    export,
    land,
    message_lines,
    problems,
    put_pair,
    records,
    session_lines,
)
from tests.relavium_sessions import call, message, record_value, result, said

HOUR = 3_600_000_000_000
SESSION = "session-1"
TURNS = [
    message(0, "user", said("one")),
    message(1, "assistant", [call("read_file")]),
    message(2, "tool", [result()]),
    message(3, "assistant", said("1")),
    message(4, "system", said("Counted."), compaction={"droppedThroughSequence": 3}),
    message(5, "user", said("two")),
    message(6, "assistant", said("2")),
]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "source").mkdir()
    return tmp_path / "source"


@pytest.fixture
def zone(tmp_path: Path) -> Zone:
    (tmp_path / "zone").mkdir()
    return Zone(open_store(tmp_path / "zone"))


@pytest.fixture
def exports(tmp_path: Path) -> ObjectStore:
    return open_store(tmp_path / "exports")


def sequences(zone: Zone, session: str = SESSION) -> list[Any]:
    lines = [line for line in message_lines(zone, session) if "message" in line]
    return [line["message"]["sequenceNumber"] for line in lines]


def rules(source: Path, zone: Zone) -> list[str]:
    return [problem.rule for problem in problems(land(source, zone))]


def test_a_record_and_messages_beside_each_other_are_a_session(source: Path, zone: Zone) -> None:
    put_pair(source / "deep/er", record_value(id="a"), TURNS[:1])
    for name in ("b.", "c-", "d_"):
        put_pair(source, record_value(id=name[0]), TURNS[:1])
        for kind in ("record", "messages"):
            (source / f"{kind}.json").rename(source / f"{name}{kind}.json")
    (source / "other.json").write_text("{")
    (source / "recorded.json").write_text("{")
    assert rules(source, zone) == []
    assert zone.sessions() == ["a", "b", "c", "d"]
    (file, _) = zone.landed_files("b")
    assert file.key.startswith("b/streams/main/transcript-")
    assert records(zone, "b")[0].id == "b#1"


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("messages.json", "[]", "messages without a record; record.json is not there"),
        ("record.json", '{"id":"a","agentSlug":"p"}', "messages.json: no such object"),
        ("record.json", "{", "not JSON"),
        ("record.json", "[]", "it is no session's record"),
        ("record.json", '{"id":"","agentSlug":"p"}', "it is no session's record"),
        ("record.json", '{"id":"another program\'s"}', "it is no session's record"),
        ("record.json", "[" * 100_000, "nested deeper than 200"),
        ("record.json", '{"a":' * 201 + "1" + "}" * 201, "nested deeper than 200"),
    ],
)
def test_files_that_are_no_session_are_named_and_the_rest_lands(
    source: Path, zone: Zone, name: str, text: str, reason: str
) -> None:
    put_pair(source / "good", record_value(), TURNS)
    (source / name).write_text(text)
    (problem,) = problems(land(source, zone))
    assert (problem.file, problem.rule, problem.row) == (name, "unreadable", None)
    assert reason in problem.detail
    assert zone.sessions() == [SESSION]


def test_messages_that_are_no_list_are_named(source: Path, zone: Zone) -> None:
    put_pair(source, record_value(), TURNS)
    (source / "messages.json").write_text('{"0": {}}')
    (problem,) = problems(land(source, zone))
    assert "expected an array, received object" in problem.detail
    assert zone.sessions() == []


def test_a_half_written_file_is_noted_until_it_is_whole(source: Path, zone: Zone) -> None:
    put_pair(source, record_value(), TURNS)
    whole = (source / "messages.json").read_text()
    (source / "messages.json").write_text(whole[: len(whole) // 2])
    assert rules(source, zone) == ["unreadable"]
    root = root_name(open_store(source))
    assert [note.problem.file for note in all_notes(zone.store, root)] == ["record.json"]
    (source / "messages.json").write_text("\ufeff" + whole)
    assert rules(source, zone) == []
    assert all_notes(zone.store, root) == []
    assert sequences(zone) == list(range(7))


def test_a_file_that_is_written_while_it_lands_comes_with_the_next_run(zone: Zone) -> None:
    files = MemoryStore()
    whole = json.dumps(TURNS).encode()
    files.objects = {"record.json": json.dumps(record_value()).encode(), "messages.json": whole}
    dialect = Relavium(files)
    found = dialect.discover(dialect.source)
    files.objects["messages.json"] = whole[:100]
    (outcome,) = land_archive(zone, dialect.source, dialect, found, LandOptions(now=NOW))
    assert [problem.rule for problem in outcome.problems] == ["json", "json"]
    assert outcome.files == 0
    files.objects["messages.json"] = whole
    assert problems(land(files, zone)) == []
    assert sequences(zone) == list(range(7))


def test_a_file_above_the_limit_is_not_read(source: Path, zone: Zone, monkeypatch: pytest.MonkeyPatch) -> None:
    put_pair(source, record_value(), TURNS)
    monkeypatch.setattr(stored, "MAX_FILE_BYTES", 300)
    (problem,) = problems(land(source, zone))
    assert "messages.json" in problem.detail
    assert zone.sessions() == []


def test_only_new_messages_become_records(source: Path, zone: Zone) -> None:
    put_pair(source, record_value(), TURNS[:4])
    land(source, zone)
    assert land(source, zone)[0].unchanged
    put_pair(source, record_value(title="Counting", updatedAt="2026-07-01T10:00:00Z"), TURNS)
    (outcome,) = land(source, zone)
    assert (outcome.files, outcome.records, outcome.problem_count) == (2, 5, 0)
    assert sequences(zone) == list(range(7))
    assert [record.ord for record in records(zone, SESSION)] == list(range(1, 9))
    assert [record.label for record in records(zone, SESSION, "session")] == ["", "Counting"]
    assert [(line["lines"], line["record"].get("title")) for line in session_lines(zone, SESSION)] == [
        (4, None),
        (8, "Counting"),
    ]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, len(TURNS)), max_size=4))
def test_landing_a_session_as_it_grows_gives_the_records_of_landing_it_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("grows")
    once, grown = Zone(MemoryStore()), Zone(MemoryStore())
    for step in [*sorted(steps), len(TURNS)]:
        put_pair(folder, record_value(), TURNS[:step])
        assert problems(land(folder, grown)) == []
    land(folder, once)
    assert records(grown, SESSION) == records(once, SESSION)


@pytest.mark.parametrize("place", [0, 3, 6])
def test_a_rewritten_message_is_a_conflict_and_what_landed_stays(source: Path, zone: Zone, place: int) -> None:
    put_pair(source, record_value(), TURNS)
    land(source, zone)
    before = records(zone, SESSION)
    changed = [dict(each) for each in TURNS]
    changed[place]["timestamp"] = "2026-07-01T09:00:01Z"
    put_pair(source, record_value(), [*changed, message(7, "user", said("three"))])
    for _ in range(2):
        assert rules(source, zone) == ["conflict"]
    assert records(zone, SESSION) == before
    assert verify_session(zone, SESSION).problems == []


def test_a_message_rewritten_far_back_is_a_conflict_too(source: Path, zone: Zone) -> None:
    long = [message(n, "user", said("x" * 300_000)) for n in range(6)]
    put_pair(source, record_value(), long)
    land(source, zone)
    put_pair(source, record_value(), [message(0, "user", said("y" * 300_000)), *long[1:]])
    assert rules(source, zone) == ["conflict"]


def test_a_copy_that_is_the_beginning_of_another_says_nothing(source: Path, zone: Zone) -> None:
    put_pair(source / "laptop", record_value(title="old"), TURNS[:4])
    put_pair(source / "server", record_value(title="new"), TURNS)
    assert rules(source, zone) == []
    assert sequences(zone) == list(range(7))
    assert [line["record"]["title"] for line in session_lines(zone, SESSION)] == ["new"]


def test_sessions_that_are_not_kept_in_memory_are_read_again(
    source: Path, zone: Zone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "_KEPT_BYTES", 1)
    for name in ("a", "b", "c"):
        put_pair(source / name, record_value(id=name), TURNS)
        put_pair(source / f"{name}-copy", record_value(id=name), TURNS[:3])
    assert rules(source, zone) == []
    assert [sequences(zone, name) for name in zone.sessions()] == [list(range(7))] * 3


def test_of_equal_copies_the_newer_record_counts(source: Path, zone: Zone) -> None:
    put_pair(source / "a", record_value(title="old"), TURNS)
    put_pair(source / "b", record_value(title="new", updatedAt="2026-07-01T09:01:00.001Z"), TURNS)
    assert rules(source, zone) == []
    assert [line["record"]["title"] for line in session_lines(zone, SESSION)] == ["new"]


def test_a_copy_of_its_own_is_named(source: Path, zone: Zone) -> None:
    put_pair(source / "laptop", record_value(), [*TURNS[:6], message(6, "assistant", said("no"))])
    put_pair(source / "server", record_value(), TURNS)
    (problem,) = problems(land(source, zone))
    assert (problem.rule, problem.file) == ("two_sources", f"server/record.json#{SESSION}/messages")
    assert sequences(zone) == list(range(7))


def test_a_session_that_is_gone_stays_and_is_no_problem(source: Path, zone: Zone) -> None:
    put_pair(source, record_value(), TURNS)
    land(source, zone)
    (source / "record.json").unlink()
    (source / "messages.json").unlink()
    assert rules(source, zone) == []
    assert [cursor.values["state"] for cursor in zone.cursors(SESSION)] == ["source_gone"] * 2
    put_pair(source, record_value(), TURNS)
    assert rules(source, zone) == []
    assert [cursor.values["state"] for cursor in zone.cursors(SESSION)] == ["active"] * 2


@pytest.mark.parametrize(
    ("session", "name"),
    [
        ("Ses:42/Ä final", "Ses:42%2F%C3%84 final"),
        ("../../etc", "%2E.%2F..%2Fetc"),
        ("_calls", "%5Fcalls"),
        ("x#y/record", "x%23y%2Frecord"),
        ("\ud83d", "%ED%A0%BD"),
    ],
)
def test_an_id_names_one_folder_in_the_zone(source: Path, zone: Zone, session: str, name: str) -> None:
    put_pair(source, record_value(id=session), TURNS)
    assert rules(source, zone) == []
    assert zone.sessions() == [name]
    put_pair(source, record_value(id=session), [*TURNS, message(7, "user", said("three"))])
    assert rules(source, zone) == []
    assert sequences(zone, name) == list(range(8))


def test_a_long_id_is_cut_and_stays_unlike_others(source: Path, zone: Zone) -> None:
    for end in "ab":
        put_pair(source / end, record_value(id="x" * 400 + end), TURNS)
    assert rules(source, zone) == []
    assert [len(name) for name in zone.sessions()] == [134, 134]


def test_a_record_that_is_mended_counts_from_then_on(source: Path, zone: Zone, exports: ObjectStore) -> None:
    put_pair(source, record_value(status="over"), TURNS)
    assert rules(source, zone) == ["not_understood"]
    assemble(zone)
    assert [outcome.rule for outcome in export(zone, exports)] == ["not_understood"]
    put_pair(source, record_value(status="ended"), TURNS)
    assert rules(source, zone) == []
    assemble(zone)
    assert [outcome.state for outcome in export(zone, exports)] == ["written"]


def test_a_message_that_breaks_a_rule_does_not_hide_the_others(source: Path, zone: Zone) -> None:
    bad = message(3, "assistant", [{"type": "tool_call", "args": {"key": "sk-secret-1"}}])
    put_pair(source, record_value(), [*TURNS[:3], bad, {}, *TURNS[4:]])
    found = problems(land(source, zone))
    assert [(problem.rule, problem.row) for problem in found] == [("not_understood", 4), ("not_understood", 5)]
    assert not any("sk-secret-1" in problem.detail for problem in found)
    assert sequences(zone) == [0, 1, 2, 4, 5, 6]
    assert [part.k for record in records(zone, SESSION)[3:5] for part in record.parts] == ["unknown", "unknown"]
    assert text_of(records(zone, SESSION)[4].parts[0]).startswith("required: id: ")


def test_the_command_finds_out_what_the_archive_is(sessionmill: Command, source: Path, tmp_path: Path) -> None:
    put_pair(source / "good", record_value(), TURNS)
    (source / "history.db").write_bytes(b"no database")
    done = sessionmill("land", source, tmp_path / "z", "--json")
    assert (done.code, done.json["kind"], done.json["records"], done.json["problems"]) == (1, "relavium/1", 9, 1)
    (note,) = done.json["noted"]
    assert (note["problem"]["file"], note["problem"]["rule"]) == ("history.db", "unreadable")
    assert "not a sound SQLite database" in note["problem"]["detail"]
    (source / "history.db").unlink()
    again = sessionmill("land", source, tmp_path / "z", "--kind", "relavium", "--json")
    assert (again.code, again.json["noted"], again.json["records"]) == (0, [], 0)


# Export


def state(zone: Zone, exports: ObjectStore, **options: Any) -> tuple[str, str]:
    (outcome,) = export(zone, exports, **options)
    return outcome.state, outcome.reason


def test_a_session_is_exported_when_it_ended_or_is_quiet(source: Path, zone: Zone, exports: ObjectStore) -> None:
    put_pair(source, record_value(updatedAt="2026-07-01T10:00:00Z"), TURNS)
    land(source, zone)
    assemble(zone)
    ten = 1_782_900_000_000_000_000
    assert state(zone, exports, as_of=ten + HOUR - 1)[1].startswith("it has been quiet for 3599 seconds")
    assert state(zone, exports, as_of=ten + HOUR)[0] == "written"
    put_pair(source, record_value(updatedAt="2026-07-01T10:00:00Z", status="ended"), TURNS)
    land(source, zone)
    assemble(zone)
    assert state(zone, exports, as_of=ten)[0] == "unchanged"  # the state is not in the file


def test_messages_without_their_record_wait_for_it(zone: Zone, exports: ObjectStore) -> None:
    files = MemoryStore()
    files.objects = {
        "record.json": json.dumps(record_value()).encode(),
        "messages.json": json.dumps(TURNS[:4]).encode(),
    }
    land(files, zone)
    files.objects["messages.json"] = json.dumps(TURNS).encode()
    land(files, zone)
    for key in [stat.key for stat in zone.store.list(f"{SESSION}/") if "session-" in stat.key.rpartition("/")[2]][-1:]:
        zone.store.delete(key)
    assemble(zone)
    assert state(zone, exports) == (
        "unfinished",
        "no record of it has landed that is about its newest message; land its source again",
    )


def test_secrets_stay_unless_asked_and_the_agent_is_its_own(source: Path, zone: Zone, exports: ObjectStore) -> None:
    secret = "sk-ant-api03-" + "Ab1" * 31
    put_pair(
        source, record_value(), [message(0, "user", said(f"use {secret}")), message(1, "assistant", said("Done."))]
    )
    land(source, zone)
    assemble(zone)
    (outcome,) = export(zone, exports, agent_slug="kite")
    assert outcome.file is not None
    assert (outcome.file.secrets, outcome.file.agent, secret.encode() in exports.read(outcome.name)) == (
        "kept",
        "pilot",
        True,
    )
    (asked,) = export(zone, exports, keep_secrets=False)
    assert asked.file is not None
    assert (asked.file.withheld, secret.encode() in exports.read(asked.name)) == ({"key": 1}, False)


TEXTS = st.text(st.characters(codec=None, exclude_categories=[]), max_size=8) | st.sampled_from(["", "{{x}}", "\ud83d"])
PARTS = {
    "user": st.builds(lambda text: {"type": "text", "text": text}, TEXTS),
    "system": st.builds(lambda text: {"type": "text", "text": text}, TEXTS),
    "assistant": st.builds(lambda text: {"type": "text", "text": text}, TEXTS)
    | st.builds(lambda text: {"type": "reasoning", "text": text}, TEXTS)
    | st.builds(call, st.sampled_from(["a", "unknown_tool"]), st.integers(0, 9)),
    "tool": st.builds(result, st.integers(0, 9)),
}


def test_a_record_as_deep_as_may_be_is_exported(source: Path, zone: Zone, exports: ObjectStore) -> None:
    schema: dict[str, Any] = {}
    for _ in range(196):
        schema = {"a": schema}
    agent = {"id": "pilot", "model": "m", "provider": "openai", "system_prompt": "p", "input_schema": schema}
    put_pair(source, record_value(status="ended", agentSnapshot=agent), TURNS)
    assert rules(source, zone) == []
    assemble(zone)
    assert state(zone, exports)[0] == "written"


@st.composite
def sessions(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    messages = []
    for place in range(draw(st.integers(0, 7))):
        role = draw(st.sampled_from(sorted(PARTS)))
        fields: dict[str, Any] = {"id": draw(st.sampled_from(["m", f"m{place}"]))}
        if role == "system" and draw(st.booleans()):
            fields["compaction"] = {"droppedThroughSequence": draw(st.sampled_from([0, 3, -0.0, 1e300]))}
        if draw(st.booleans()):
            fields["sequenceNumber"] = draw(st.integers(0, 5))
        messages.append(message(place, role, draw(st.lists(PARTS[role], max_size=3)), **fields))
    schema = {"type": draw(TEXTS), "n": draw(st.sampled_from([1.0, -0.0, 1e300, 12345678901234567890, None]))}
    agent = {"id": "pilot", "model": "m", "provider": "openai", "system_prompt": "p", "input_schema": schema}
    record = record_value(status="ended", agentSnapshot=agent, extra={"not": "kept"})
    if title := draw(TEXTS):
        record["title"] = title
    return record, messages


@settings(max_examples=60, deadline=None)
@given(sessions())
def test_what_landed_exports_to_the_bytes_that_its_files_scaffold_to(
    session: tuple[dict[str, Any], list[dict[str, Any]]],
) -> None:
    record, messages = session
    files, zone, exports = MemoryStore(), Zone(MemoryStore()), MemoryStore()
    files.objects = {"record.json": json.dumps(record).encode(), "messages.json": json.dumps(messages).encode()}
    assert problems(land(files, zone, now=NOW)) == []
    assemble(zone)
    (outcome,) = export(zone, exports)
    expected = scaffold(
        read_record(files.objects["record.json"], name="r"), read_messages(files.objects["messages.json"], name="m")
    )
    assert outcome.state == "written"
    assert exports.objects[outcome.name] == expected.data
