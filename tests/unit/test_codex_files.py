"""Which rollouts are whose, which copy of one is read, and what packing, moving and reverting change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
import zstandard

from schemas.errors import KeyRefused, ObjectTooLarge
from schemas.session_data import read_session_data
from storage.objects import Children, ObjectStat, ObjectStore, open_store
from storage.zone import Zone
from tasks.land.archive import land_archive
from tasks.land.codex import Codex
from tasks.land.codex.before import lines_before
from tasks.land.codex.discover import discover
from tasks.land.codex.unpacked import UnpackedStore
from tasks.land.codex.usage import UsageCounter
from tasks.land.outcome import LandOptions, SessionLanding
from tasks.land.source import Line
from tests.command import Command

ROOT = "01a19b8a-7238-7001-8a01-51d0c0de1eef"
CHILD = "01a19b8b-0000-7001-8a01-51d0c0de0000"
DAY = "sessions/2026/11/02"
NOW = 1_800_000_000_000_000_000


def name(thread: str, segment: str = "") -> str:
    return f"rollout-2026-11-02T09-15-04-{thread}{'_' + segment if segment else ''}.jsonl"


def lines(thread: str, count: int = 1, **fields: Any) -> bytes:
    rows = [{"type": "session_meta", "payload": {"id": thread, **fields}}]
    rows += [{"type": "x", "payload": {"n": place}} for place in range(count - 1)]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def put(home: Path, key: str, data: bytes) -> None:
    (home / key).parent.mkdir(parents=True, exist_ok=True)
    (home / key).write_bytes(zstandard.compress(data) if key.endswith(".zst") else data)


def land(home: Path) -> list[SessionLanding]:
    zone = home.parent / "zone"
    zone.mkdir(exist_ok=True)
    codex = Codex(open_store(home))
    found = codex.discover(codex.source)
    return list(land_archive(Zone(open_store(zone)), codex.source, codex, found, LandOptions(now=NOW)))


def landed(home: Path) -> dict[str, int]:
    """Records by folder."""
    found: dict[str, int] = {}
    for path in sorted((home.parent / "zone").glob("*/*/*/*.sd")):
        where = str(path.parent.relative_to(home.parent / "zone"))
        found[where] = found.get(where, 0) + len(read_session_data(path.read_bytes(), name=path.name).records)
    return found


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.mark.parametrize(
    "child",
    [
        {"session_id": ROOT},
        {"parent_thread_id": ROOT},
        {"source": {"subagent": {"thread_spawn": {"parent_thread_id": ROOT}}}},
    ],
)
def test_sub_agents_are_streams_of_the_session_that_began_them(home: Path, child: dict[str, Any]) -> None:
    put(home, f"machine/{DAY}/{name(ROOT)}", lines(ROOT))
    put(home, f"machine/{DAY}/{name(CHILD)}", lines(CHILD, **child))
    put(home, "machine/history.jsonl", b"{}\n")
    assert not any(each.problems for each in land(home))
    assert landed(home) == {f"{ROOT}/streams/main": 1, f"{ROOT}/streams/{CHILD}": 1}


def test_parents_of_each_other_are_sessions_of_their_own(home: Path) -> None:
    put(home, f"{DAY}/{name(ROOT)}", lines(ROOT, parent_thread_id=CHILD))
    put(home, f"{DAY}/{name(CHILD)}", lines(CHILD, parent_thread_id=ROOT))
    land(home)
    assert sum(landed(home).values()) == 2


def test_packing_archiving_and_resuming_go_on_where_it_was(home: Path) -> None:
    plain, archived = home / DAY / name(ROOT), f"archived_sessions/{name(ROOT)}"
    put(home, f"{DAY}/{name(ROOT)}", lines(ROOT, 2))
    land(home)
    plain.unlink()
    put(home, f"{DAY}/{name(ROOT)}.zst", lines(ROOT, 2))
    assert [each.records for each in land(home)] == [0]
    (home / DAY / f"{name(ROOT)}.zst").unlink()
    put(home, archived, lines(ROOT, 3))
    assert [(each.records, each.problems) for each in land(home)] == [(1, [])]
    assert landed(home) == {f"{ROOT}/streams/main": 3}


def test_of_copies_the_longest_is_read_and_one_that_says_otherwise_is_named(home: Path) -> None:
    put(home, f"{DAY}/{name(ROOT)}", lines(ROOT, 2))
    put(home, f"archived_sessions/{name(ROOT)}.zst", lines(ROOT, 3))
    assert not any(each.problems for each in land(home))
    other = f"other/{DAY}/{name(ROOT)}"
    put(home, other, lines(ROOT, 1, cwd="/elsewhere"))
    (outcome,) = land(home)
    assert [(each.file, each.rule) for each in outcome.problems] == [(other, "two_sources")]
    assert landed(home) == {f"{ROOT}/streams/main": 3}


def test_a_reverted_thread_goes_on_in_a_second_file_of_its_stream(home: Path) -> None:
    put(home, f"{DAY}/{name(ROOT)}", lines(ROOT, 2))
    put(home, f"{DAY}/{name(ROOT, 'seg1')}", lines(ROOT, 2, history_base={"thread_id": ROOT}))
    assert not any(each.problems for each in land(home))
    assert landed(home) == {f"{ROOT}/streams/main": 4}


def test_half_a_last_line_waits_and_an_empty_file_is_no_problem(home: Path) -> None:
    put(home, f"{DAY}/{name(ROOT)}", lines(ROOT, 2)[:-1])
    put(home, f"{DAY}/{name(CHILD)}", b"")
    assert not any(each.problems for each in land(home))
    assert landed(home) == {f"{ROOT}/streams/main": 1}


def test_a_damaged_packed_file_has_what_comes_before_the_damage(home: Path) -> None:
    key = f"{DAY}/{name(ROOT)}.zst"
    first, second = lines(ROOT, 2), b'{"type":"x"}\n'
    put(home, key, first)
    whole = (home / key).read_bytes()
    (home / key).write_bytes(whole + zstandard.compress(second) + b"broken")
    store = UnpackedStore(open_store(home))
    assert store.read(key) == first + second
    assert store.read_range(key, 1, 4) == first[1:5]


def test_a_packed_file_that_is_too_large_unpacked_is_refused(home: Path) -> None:
    key = f"{DAY}/{name(ROOT)}.zst"
    put(home, key, b"a" * 3_000_000)
    with pytest.raises(ObjectTooLarge):
        UnpackedStore(open_store(home)).read(key)


def counted(total: int, last: int | None = None) -> dict[str, Any]:
    info = {"total_token_usage": {"output_tokens": total}}
    return {"info": info if last is None else {**info, "last_token_usage": {"output_tokens": last}}}


@pytest.mark.parametrize(
    ("goes_on", "counts", "rows"),
    [
        (False, [(10, 10), (10, 10), (25, 15)], [10, None, 15]),
        (False, [(10, 10), (30, 5)], [10, 20]),
        (False, [(50, 50), (20, 5), (30, 10), (35, 5)], [50, None, 10, 5]),
        (False, [(50, 50), (20, 20), (30, 10)], [50, 20, 10]),
        (False, [(50, None), (20, None), (30, None)], [50, None, 10]),
        (True, [(100, 7), (110, 10)], [7, 10]),
        (True, [(100, None), (110, None)], [None, 10]),
    ],
)
def test_a_counter_s_lines_stand_for_what_is_not_counted_yet(
    goes_on: bool, counts: list[tuple[int, int | None]], rows: list[int | None]
) -> None:
    counter = UsageCounter(goes_on=goes_on)
    found = [counter.count(counted(total, last)) for total, last in counts]
    assert [None if each is None else each.output for each in found] == rows


def test_a_record_and_its_count_are_one() -> None:
    counter = UsageCounter(goes_on=True)
    for total in (1010, 1020):
        used = counter.record({"usage": {"output_tokens": 10}})
        assert used is not None
        assert counter.count(counted(total, 10)) is None
    lost = counter.count(counted(1025, 5))
    assert lost is not None
    assert lost.output == 5


class _Closed:
    """A store with one folder that cannot be listed."""

    def __init__(self, store: ObjectStore, closed: str) -> None:
        self._store, self._closed = store, closed

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._store, attribute)

    def list(self, prefix: str) -> list[ObjectStat]:
        raise KeyRefused(prefix, "cannot be listed")

    def children(self, prefix: str) -> Children:
        if prefix == self._closed:
            raise KeyRefused(prefix, "cannot be listed")
        return self._store.children(prefix)


def test_one_closed_folder_hides_no_other(home: Path) -> None:
    put(home, f"open/{DAY}/{name(ROOT)}", lines(ROOT))
    put(home, f"closed/{DAY}/{name(CHILD)}", lines(CHILD))
    found, _ = discover(cast(ObjectStore, _Closed(open_store(home), "closed/")))
    assert list(found.sessions) == [ROOT]
    assert [place for place, _ in found.unreadable] == ["closed/"]


def test_a_packed_file_that_is_too_large_is_named_and_the_others_land(home: Path) -> None:
    put(home, f"{DAY}/{name(CHILD)}.zst", b"a" * 3_000_000)
    put(home, f"{DAY}/{name(ROOT)}", lines(ROOT))
    assert [(each.session, [problem.rule for problem in each.problems]) for each in land(home)] == [
        (ROOT, []),
        (CHILD, ["unreadable"]),
    ]


@pytest.mark.parametrize("options", [[], ["--kind", "codex"]])
def test_the_command_lands_a_folder_of_codex(sessionmill: Command, home: Path, options: list[str]) -> None:
    put(home, f"{DAY}/{name(ROOT)}.zst", lines(ROOT, 2))
    done = sessionmill("land", home, home.parent / "zone", "--json", *options)
    assert done.code == 0
    shown = json.loads(done.out)
    assert (shown["kind"], shown["files"], shown["records"], shown["problems"]) == ("codex/1", 1, 2, 0)
    assert sessionmill("assemble", home.parent / "zone").code == 0
    assert sessionmill("verify", home.parent / "zone").code == 0


def test_a_folder_of_both_kinds_has_to_be_named(sessionmill: Command, home: Path) -> None:
    put(home, f"codex/{DAY}/{name(ROOT)}", lines(ROOT))
    put(home, f"claude/projects/p/{ROOT}.jsonl", b"{}\n")
    done = sessionmill("land", home, home.parent / "zone")
    assert done.code == 2
    assert "sessions of claude-code and codex lie there" in done.err
    assert sessionmill("land", home, home.parent / "zone", "--kind", "codex").code == 0


@pytest.mark.parametrize("piece", [1, 2, 3, 5, 8, 100])
def test_lines_before_a_place_are_read_piece_by_piece_without_the_longest(home: Path, piece: int) -> None:
    body = b"ab\n\nabcdefgh\ncd\nabcd\nrest"
    put(home, "x", body)
    end = body.index(b"rest")
    found = list(lines_before(open_store(home), "x", end, max_line_bytes=4, piece=piece))
    assert found == [Line(1, 0, b"ab"), Line(2, 3, b""), Line(4, 13, b"cd"), Line(5, 16, b"abcd")]


def test_a_line_too_long_for_memory_stays_in_its_source_and_the_next_goes_on(home: Path) -> None:
    asked = {"type": "message", "role": "user", "content": "x" * 5000}
    start = lines(ROOT) + b'{"type":"event_msg","payload":{"type":"task_started","turn_id":"t"}}\n'
    put(home, f"{DAY}/{name(ROOT)}", start + json.dumps(asked).encode() + b'\n{"type":"x","payload":{}}\n')
    codex = Codex(open_store(home))
    zone = home.parent / "zone"
    zone.mkdir()
    options = LandOptions(now=NOW, max_delta_bytes=200, max_line_bytes=1000)
    (outcome,) = land_archive(Zone(open_store(zone)), codex.source, codex, codex.discover(codex.source), options)
    assert outcome.problem_count == 1
    records = [
        record
        for path in sorted(zone.rglob("*.sd"), key=lambda path: path.name[-9:])
        for record in read_session_data(path.read_bytes(), name=path.name).records
    ]
    assert [each.run for each in records] == ["", "t", "", "t"]


def test_a_thread_that_was_deleted_stays_landed_and_its_cursor_says_so(home: Path) -> None:
    put(home, f"{DAY}/{name(ROOT)}", lines(ROOT))
    land(home)
    (home / DAY / name(ROOT)).unlink()
    assert not any(each.problems for each in land(home))
    assert landed(home) == {f"{ROOT}/streams/main": 1}
    cursor = (home.parent / "zone" / ROOT / "streams/main/transcript.cursor").read_text()
    assert "source_gone" in cursor
