"""Which logs are whose, which copy of one is read, what is refused and for how long, and what a torn end waits for."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard

from schemas.dsh import Event, LogHeader, logical_events, read_log, repair, write_batch, write_event, write_first_batch
from schemas.dsh_root import encode_segment
from schemas.dsh_rows import session_row, write_rows
from schemas.session_data import text_of
from storage.dsh_sqlite import APPLICATION_ID, TABLES
from storage.objects import open_store
from storage.zone import Zone
from tasks.land.archive import land_archive
from tasks.land.cursors import root_name
from tasks.land.dsh import DeepSeekHarness
from tasks.land.dsh.logs import OpenLog
from tasks.land.dsh.opened import LogStore
from tasks.land.outcome import LandOptions
from tasks.land.quarantine import all_notes
from tests.command import Command
from tests.dsh_logs import answer, header, mark, numbered, turn, user
from tests.dsh_zone import assembled, land, problems, put_log, records, told, zone_at


def talk(*words: str) -> list[Event]:
    """A turn for each of the words, each answered with themselves."""
    turns = [turn(number, user(each), answer(f"re {each}", turn=number)) for number, each in enumerate(words, 1)]
    return numbered(*(event for each in turns for event in each))


def said(zone: Zone, session: str, stream: str = "main") -> list[str]:
    return [text for _, text in told(record for at, record in records(zone, session) if at == stream).human]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def zone(tmp_path: Path) -> Zone:
    return zone_at(tmp_path / "zone")


@pytest.mark.parametrize("above", ["", "sessions", "machine-1/home/.dsh/sessions"])
@pytest.mark.parametrize("generation", range(5))
@pytest.mark.parametrize("compressed", [True, False])
def test_a_log_of_any_generation_is_found_at_any_depth(
    root: Path, zone: Zone, above: str, generation: int, compressed: bool
) -> None:
    put_log(root, header(generation), talk("hello"), compressed=compressed, above=above)
    (root / "sessions").mkdir(exist_ok=True)
    (root / "sessions/session.lock").write_bytes(b"")
    (root / "sessions/notes.jsonl").write_bytes(b"{}\n")
    assert problems(land(root, zone)) == []
    assert zone.sessions() == ["s"]
    assert said(zone, "s") == ["hello"]


@pytest.mark.parametrize("deeper", ["--srv-proj--", "--srv-proj--/s"])
def test_one_project_or_one_session_is_a_source_too(root: Path, zone: Zone, deeper: str) -> None:
    put_log(root, header(4), talk("hello"))
    assert problems(land(root / deeper, zone)) == []
    assert said(zone, "s") == ["hello"]


def test_of_several_generations_only_the_highest_is_read(root: Path, zone: Zone) -> None:
    put_log(root, header(0), talk("old"))
    put_log(root, header(3), talk("new"))
    put_log(root, header(4), talk("newest"))
    assert problems(land(root, zone)) == []
    assert said(zone, "s") == ["newest"]


def test_an_unknown_generation_is_named_and_the_others_land(root: Path, zone: Zone) -> None:
    path, _ = put_log(root, header(4), talk("old"))
    (path.parent / "session.v5.jsonl.zstd").write_bytes(b"anything")
    put_log(root, header(4, id="other"), talk("hello"))
    assert [(each.rule, each.file) for each in problems(land(root, zone))] == [
        ("version", "--srv-proj--/s/session.v5.jsonl.zstd")
    ]
    assert zone.sessions() == ["other"]


def test_a_refused_log_is_noted_until_it_is_right(root: Path, zone: Zone) -> None:
    path, data = put_log(root, header(4), talk("hello"))
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    for _ in range(2):
        assert [each.rule for each in problems(land(root, zone))] == ["frame"]
        assert [note.problem.rule for note in all_notes(zone.store, root_name(open_store(root)))] == ["frame"]
    path.write_bytes(data)
    assert problems(land(root, zone)) == []
    assert all_notes(zone.store, root_name(open_store(root))) == []
    assert said(zone, "s") == ["hello"]


@pytest.mark.parametrize("compressed", [True, False])
def test_a_gap_before_a_turn_s_end_refuses_the_log_and_one_after_it_is_a_torn_end(
    root: Path, zone: Zone, compressed: bool
) -> None:
    events = talk("one", "two")
    gap = [event for event in events if event["seq"] != 5]
    put_log(root, header(4, id="gap"), gap, compressed=compressed)
    put_log(root, header(4, id="torn"), talk("one"), compressed=False, above="raw")
    with (root / "raw/--srv-proj--/torn/session.v4.jsonl").open("ab") as file:
        file.write(write_event({**events[-1], "seq": 99, "type": "step/end"}))
    outcomes = land(root, zone)
    assert [(each.rule, each.row) for each in problems(outcomes)] == [("line", 7)]
    assert [each.session for each in outcomes if each.waiting] == ["torn"]
    assert zone.sessions() == ["torn"]
    assert said(zone, "torn") == ["one"]


def test_plain_and_compressed_logs_do_not_share_a_root(root: Path, zone: Zone) -> None:
    put_log(root, header(4, id="a"), talk("hello"))
    put_log(root, header(4, id="b"), talk("hello"), compressed=False)
    put_log(root, header(4, id="c"), talk("hello"), compressed=False, above="machine-2")
    assert [(each.rule, each.file) for each in problems(land(root, zone))] == [
        ("encoding", "--srv-proj--/b/session.v4.jsonl")
    ]
    assert zone.sessions() == ["a", "c"]


def test_a_log_that_lies_where_its_header_does_not_belong_is_named(root: Path, zone: Zone) -> None:
    path, _ = put_log(root, header(4), talk("hello"))
    (root / "--srv-proj--/other").mkdir()
    path.rename(root / "--srv-proj--/other/session.v4.jsonl.zstd")
    (found,) = problems(land(root, zone))
    assert (found.rule, found.file) == ("place", "--srv-proj--/other/session.v4.jsonl.zstd")
    assert zone.sessions() == []


def test_one_session_twice_in_a_root_is_refused_and_a_flat_log_is_named(root: Path, zone: Zone) -> None:
    _, data = put_log(root, header(4), talk("hello"))
    (root / "--srv-other--/s").mkdir(parents=True)
    (root / "--srv-other--/s/session.v4.jsonl.zstd").write_bytes(data)
    (root / "--srv-proj--/flat.jsonl").write_bytes(b"{}\n")
    assert {"place", "two_sources", "layout"} == {each.rule for each in problems(land(root, zone))}
    assert zone.sessions() == []


def test_a_session_on_two_machines_is_one_and_the_longest_log_is_read(root: Path, zone: Zone) -> None:
    put_log(root, header(4), talk("one"), above="machine-1/sessions")
    put_log(root, header(4), talk("one", "two"), above="machine-2/sessions", compressed=False)
    assert problems(land(root, zone)) == []
    assert said(zone, "s") == ["one", "two"]
    put_log(root, header(4), talk("one", "two", "three"), above="machine-1/sessions")
    assert problems(land(root, zone)) == []
    assert said(zone, "s") == ["one", "two", "three"]


def test_a_root_with_a_session_twice_does_not_stop_another_machine_s(root: Path, zone: Zone) -> None:
    _, data = put_log(root, header(4), talk("one", "two"), above="machine-1")
    other = root / "machine-1/--srv-other--/s/session.v4.jsonl.zstd"
    other.parent.mkdir(parents=True)
    other.write_bytes(data)
    put_log(root, header(4), talk("one"), above="machine-2")
    assert {each.rule for each in problems(land(root, zone))} == {"two_sources"}
    assert said(zone, "s") == ["one"]


def test_a_session_that_went_on_differently_on_two_machines_is_a_named_conflict(root: Path, zone: Zone) -> None:
    put_log(root, header(4), talk("one", "two", "three"), above="machine-1/sessions")
    put_log(root, header(4), talk("one", "zwei"), above="machine-2/sessions")
    assert [each.rule for each in problems(land(root, zone))] == ["two_sources"]
    assert said(zone, "s") == ["one", "two", "three"]


def test_two_sources_of_one_session_are_one_or_a_conflict(root: Path, zone: Zone) -> None:
    put_log(root / "a", header(4), talk("one"))
    put_log(root / "b", header(4), talk("one", "two"))
    put_log(root / "c", header(4), talk("eins"))
    assert problems(land(root / "a", zone) + land(root / "b", zone) + land(root / "a", zone)) == []
    assert said(zone, "s") == ["one", "two"]
    assert [each.rule for each in problems(land(root / "c", zone))] == ["conflict"]
    assert problems(land(root / "b", zone)) == []


def child(identity: str, parent: str, **more: Any) -> LogHeader:
    return header(4, id=identity, parent_session=parent, origin="subagent", delegation_depth=1, **more)


def test_children_of_children_are_streams_of_the_root_and_forks_are_not(root: Path, zone: Zone) -> None:
    put_log(root, header(4, id="root"), talk("hello"))
    put_log(root, child("child", "root"), talk("do this"))
    put_log(root, child("grandchild", "child"), talk("do that"))
    put_log(root, header(4, id="fork", parent_session="root"), talk("again"))
    put_log(root, child("of-fork", "fork"), talk("do it"))
    assert problems(land(root, zone)) == []
    assert zone.sessions() == ["fork", "root"]
    assert {at for at, _ in records(zone, "root")} == {"main", "child", "grandchild"}
    started = {record.child: record.started_by for _, record in records(zone, "root") if record.started_by}
    assert started == {"child": "main", "grandchild": "child"}
    assert {record.started_by for _, record in records(zone, "fork")} == {"", "main"}
    assert assembled(zone, "root")["open"] == {}


def test_a_child_without_its_parent_is_a_session_of_its_own(root: Path, zone: Zone) -> None:
    put_log(root, child("orphan", "nowhere"), talk("do this"))
    put_log(root, child("a", "b"), talk("do this"))
    put_log(root, child("b", "a"), talk("do that"))
    assert problems(land(root, zone)) == []
    assert zone.sessions() == ["a", "b", "orphan"]
    assert {at for at, _ in records(zone, "orphan")} == {"main"}
    assert said(zone, "orphan") == []


def test_a_child_whose_parent_is_deleted_stays_where_it_has_landed(root: Path, zone: Zone) -> None:
    path, _ = put_log(root, header(4, id="root"), talk("hello"))
    put_log(root, child("child", "root"), talk("do this"))
    put_log(root, child("grandchild", "child"), talk("do that"))
    land(root, zone)
    path.unlink()
    put_log(root, child("child", "root"), talk("do this", "and this"))
    put_log(root, child("late", "child"), talk("late"))
    assert problems(land(root, zone)) == []
    assert zone.sessions() == ["root"]
    assert {at for at, _ in records(zone, "root")} == {"main", "child", "grandchild", "late"}
    assert said(zone, "root", "child") == ["and this"]
    started = {record.child: record.started_by for _, record in records(zone, "root") if record.started_by}
    assert started == {"child": "main", "grandchild": "child", "late": "child"}
    assert b"source_gone" in zone.store.read("root/streams/main/transcript.cursor")
    assert assembled(zone, "root")["open"] == {}
    assert not any(each.files for each in land(root, zone))


def test_children_of_a_refused_parent_land_without_it(root: Path, zone: Zone) -> None:
    path, data = put_log(root, header(4, id="root"), talk("hello"))
    put_log(root, child("child", "root"), talk("do this"))
    path.write_bytes(data + b"rubbish")
    assert [each.rule for each in problems(land(root, zone))] == ["frame"]
    assert {at for at, _ in records(zone, "root")} == {"child"}
    path.write_bytes(data)
    assert problems(land(root, zone)) == []
    assert said(zone, "root") == ["hello"]


@pytest.mark.parametrize("identity", ["main", "_x", ".hidden", "a/../../b", "x" * 3000, "ü\U0001f9ea", "\ud800", "%2F"])
def test_any_id_is_a_session_and_a_stream_below_the_zone(root: Path, zone: Zone, tmp_path: Path, identity: str) -> None:
    parent = header(4, id="root")
    put_log(root, parent, talk("hello"))
    data = write_first_batch(child(identity, "root"), talk("do this"))
    folder = root / "--srv-proj--" / ("x" * 100)
    folder.mkdir()
    (folder / "session.v4.jsonl.zstd").write_bytes(data)
    before = set(tmp_path.iterdir())
    found = problems(land(root, zone))
    if len(identity) < 200:
        assert [each.rule for each in found] == ["place"]
        folder.rename(root / "--srv-proj--" / encode_segment(identity))
        assert problems(land(root, zone)) == []
        streams = {at for at, _ in records(zone, "root")}
        assert len(streams) == 2
        assembled(zone, "root")
    assert set(tmp_path.iterdir()) == before


def test_links_out_of_the_source_are_not_followed(root: Path, zone: Zone, tmp_path: Path) -> None:
    path, _ = put_log(tmp_path / "elsewhere", header(4), talk("secret"))
    (root / "--srv-proj--").mkdir(parents=True)
    os.symlink(path.parent, root / "--srv-proj--/s")
    os.symlink("/dev/zero", root / "--srv-proj--/session.v4.jsonl")
    (root / "--srv-proj--/t").mkdir()
    os.symlink(path, root / "--srv-proj--/t/session.v4.jsonl.zstd")
    put_log(root, header(4, id="good"), talk("hello"))
    land(root, zone)
    assert zone.sessions() == ["good"]


def test_a_bomb_meets_a_limit(root: Path, zone: Zone) -> None:
    path, data = put_log(root, header(4), talk("hello"))
    line = b'{"type":"feedback/record","seq":5,"time":1,"data":{"text":"' + b"x" * 40_000_000 + b'"}}\n'
    path.write_bytes(data + zstandard.ZstdCompressor(level=19).compress(line))
    assert [each.rule for each in problems(land(root, zone))] == ["too_large"]
    assert zone.sessions() == []


def test_a_plain_log_above_the_limit_is_refused_before_it_is_read(root: Path) -> None:
    put_log(root, header(4), talk("hello"), compressed=False)
    store = LogStore(open_store(root), max_bytes=100)
    dialect = DeepSeekHarness(open_store(root))
    (sighting,) = dialect.discover(open_store(root)).sessions["s"]
    with pytest.raises(Exception, match="above the limit of 100"):
        store.opened(sighting)


def test_a_line_above_the_limit_stays_in_its_source_and_what_follows_it_is_understood(root: Path, zone: Zone) -> None:
    events = numbered(
        mark("turn/start", turn=1),
        mark("step/start", turn=1, step=1),
        user("x" * 5000),
        answer("short"),
        mark("step/end", turn=1, step=1),
        mark("turn/end", turn=1, reason={"kind": "completed"}),
    )
    put_log(root, header(4), events)
    found = problems(land(root, zone, max_line_bytes=2000, max_delta_bytes=1000))
    assert [(each.rule, each.row) for each in found] == [("not_understood", 4)]
    landed = [record for _, record in records(zone, "s")]
    assert [record.run for record in landed] == ["", "s:t1", "s:t1", "", "s:t1", "s:t1", "s:t1"]
    assert landed[3].parts[0].state == "unavailable"


def test_a_repair_of_a_torn_end_goes_on_from_what_has_landed(root: Path, zone: Zone, tmp_path: Path) -> None:
    for generation in range(5):
        name = f"s{generation}"
        events = talk("one", "two")
        path, data = put_log(root, header(generation, id=name), events[:6], events[6:9], events[9:])
        path.write_bytes(data[:-30])
        outcomes = land(root, zone)
        assert [each.session for each in outcomes if each.waiting] == [name]
        mending = repair(read_log(path.read_bytes(), name=path.name))
        assert mending is not None
        path.write_bytes(path.read_bytes()[: mending.keep] + mending.tail)
        assert problems(land(root, zone)) == []
        whole = logical_events(read_log(path.read_bytes(), name=path.name))
        assert len([record for _, record in records(zone, name)]) == len(whole) + 1
        assert list(told(record for _, record in records(zone, name)).ends.values()) == ["completed", "interrupted"]


def test_a_log_that_was_rewritten_is_a_conflict_and_nothing_is_mixed(root: Path, zone: Zone) -> None:
    put_log(root, header(4), talk("one", "two"))
    land(root, zone)
    put_log(root, header(4), talk("eins", "zwei", "drei"))
    for _ in range(2):
        assert [each.rule for each in problems(land(root, zone))] == ["conflict"]
    assert said(zone, "s") == ["one", "two"]


def test_a_log_that_moves_to_another_generation_is_a_conflict(root: Path, zone: Zone) -> None:
    put_log(root, header(0), talk("one"))
    land(root, zone)
    put_log(root, header(4), talk("one", "two"))
    assert [each.rule for each in problems(land(root, zone))] == ["conflict"]
    assert said(zone, "s") == ["one"]


def test_other_frames_around_the_same_lines_change_nothing(root: Path, zone: Zone) -> None:
    path, _ = put_log(root, header(4), talk("one", "two"))
    land(root, zone)
    first, *rest = (write_batch([event]) for event in talk("one", "two", "three"))
    path.write_bytes(write_first_batch(header(4), []) + first + b"".join(rest))
    assert problems(land(root, zone)) == []
    assert said(zone, "s") == ["one", "two", "three"]


def test_nothing_is_opened_that_has_not_changed(root: Path, zone: Zone, monkeypatch: pytest.MonkeyPatch) -> None:
    put_log(root, header(4, id="whole"), talk("one"))
    put_log(root, child("child", "whole"), talk("do this"))
    land(root, zone)
    put_log(root, header(4, id="whole"), talk("one", "two"))
    dialect = DeepSeekHarness(open_store(root))
    found = dialect.discover(open_store(root))
    opened = []
    original = dialect.source.shelf.open

    def note(key: str, etag: str | None = None) -> OpenLog:
        opened.append(key)
        return original(key, etag)

    monkeypatch.setattr(dialect.source.shelf, "open", note)
    list(land_archive(zone, dialect.source, dialect, found, LandOptions(now=1)))
    assert said(zone, "whole") == ["one", "two"]
    assert opened[0] == "--srv-proj--/whole/session.v4.jsonl.zstd"
    # The child's is opened once, for what its parent now says of it, and nothing of it lands again.
    assert opened.count("--srv-proj--/child/session.v4.jsonl.zstd") == 1
    assert len([at for at, _ in records(zone, "whole") if at == "child"]) == len(talk("do this")) + 2


def test_a_log_that_is_gone_stays_landed(root: Path, zone: Zone) -> None:
    path, _ = put_log(root, header(4), talk("hello"))
    land(root, zone)
    path.unlink()
    assert problems(land(root, zone)) == []
    assert said(zone, "s") == ["hello"]
    assert b"source_gone" in zone.store.read("s/streams/main/transcript.cursor")


def test_seeds_that_are_not_there_whole_wait(root: Path, zone: Zone) -> None:
    """A fork of a fork begins with two marks of what is inherited: only the last one counts."""
    inherited = numbered(*turn(1, user("a")), mark("session/end-seed", inherited=True), *turn(2, user("b")))
    last = {**mark("session/end-seed", inherited=True), "seq": len(inherited), "time": 1_796_000_000_100}
    own = [
        {**event, "seq": len(inherited) + 1 + place, "time": 1_796_000_000_200}
        for place, event in enumerate(turn(3, user("c")))
    ]
    fork = header(4, id="f", parent_session="s", is_seeded=True)
    path, data = put_log(root, fork, [*inherited, last], own)
    path.write_bytes(data[: len(write_first_batch(fork, [*inherited, last])) - 5])
    (outcome,) = land(root, zone)
    assert [each.detail for each in outcome.waiting] == ["what it inherited is not there whole"]
    path.write_bytes(data)
    assert problems(land(root, zone)) == []
    assert told(record for _, record in records(zone, "f")).inherited == len(inherited)
    assert said(zone, "f") == ["c"]


@pytest.mark.parametrize("options", [[], ["--kind", "dsh"]])
def test_the_command_lands_a_root_and_says_what_waits_and_what_is_refused(
    sessionmill: Command, root: Path, options: list[str]
) -> None:
    path, data = put_log(root, header(4), talk("hello"), talk("hello", "more")[5:])
    path.write_bytes(data[:-9])
    done = sessionmill("land", root, root.parent / "zone", *options)
    assert done.code == 0
    assert "its end waits: the last frame is cut short" in done.out
    put_log(root, header(4, id="bad"), talk("hello")[1:])
    done = sessionmill("land", root, root.parent / "zone", "--json", *options)
    assert done.code == 1
    shown = json.loads(done.out)
    assert shown["kind"] == "deepseek-harness/1"
    assert [each["problem"]["rule"] for each in shown["noted"]] == ["line"]
    assert sessionmill("assemble", root.parent / "zone").code == 0
    assert sessionmill("verify", root.parent / "zone").code == 0


def test_a_damaged_database_is_named_and_one_of_another_program_is_left_alone(root: Path, zone: Zone) -> None:
    put_log(root, header(4), talk("hello"))
    for name in ("ours", "other"):
        (root / name).mkdir()
        with closing(sqlite3.connect(root / name / "sessions.db")) as database:
            database.execute(f"PRAGMA application_id = {APPLICATION_ID if name == 'ours' else 7}")
            database.execute("CREATE TABLE sessions (id TEXT)")
    (root / "text").mkdir()
    (root / "text/sessions.db").write_text("some notes")
    found = problems(land(root, zone))
    assert [(each.file, each.rule) for each in found] == [("ours/sessions.db", "unreadable")]
    assert said(zone, "s") == ["hello"]


def add_rows(database: sqlite3.Connection, header: LogHeader, events: list[Event]) -> None:
    """Append to a session of a database, which is made with it."""
    if not database.execute("SELECT * FROM sqlite_master").fetchall():
        database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        database.execute("PRAGMA user_version = 17")
        for table in TABLES[17]:
            database.execute(table)
        database.execute("INSERT INTO persistence_state VALUES (1, 'store')")
    upsert = "INSERT INTO sessions VALUES (?,?,?,?,?,?,?,?,?,'i',1) ON CONFLICT DO UPDATE SET revision = revision + 1"
    database.execute(upsert, session_row(header))
    for row in write_rows(events):
        data = row.data if row.is_blob else row.data.decode()
        placed = None if row.surface_op is None else row.surface_op.decode()
        values = (header.id, row.seq, row.type.decode(), row.time, data, row.source_event_seqs, placed, row.ignorable)
        database.execute("INSERT INTO events VALUES (?,?,?,?,?,?,?,?)", values)
    database.commit()


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_database_that_is_in_use_lands_what_is_new(root: Path, zone: Zone, journal: str) -> None:
    events = talk("one", "two")
    with closing(sqlite3.connect(root / "sessions.db")) as database:
        database.execute(f"PRAGMA journal_mode = {journal}")
        add_rows(database, header(0), events[:5])
        assert problems(land(root, zone)) == []
        assert said(zone, "s") == ["one"]
        add_rows(database, header(0), events[5:])
        of_agent = header(0, id="c", parent_session="s", origin="subagent", delegation_depth=1)
        add_rows(database, of_agent, talk("do it"))
        assert problems(land(root, zone)) == []
        assert said(zone, "s") == ["one", "two"]
        database.execute("DELETE FROM sessions WHERE id = 's'")
        database.commit()
        assert problems(land(root, zone)) == []
    assert b"source_gone" in zone.store.read("s/streams/main/transcript.cursor")
    assert {at for at, _ in records(zone, "s")} == {"main", "c"}
    assert len([at for at, _ in records(zone, "s") if at == "main"]) == len(events) + 1


def test_texts_of_every_kind_land_as_they_are(root: Path, zone: Zone) -> None:
    words = ["<&>\u2028\u2029", "\x00\x1f", "\U0001f9ea", "", "a\nb\r\n"]
    put_log(root, header(4), talk(*words))
    land(root, zone)
    assert said(zone, "s") == words
    parts = [part for _, record in records(zone, "s") for part in record.parts if part.k == "text"]
    assert {text_of(part) for part in parts} >= {f"re {each}" for each in words}
