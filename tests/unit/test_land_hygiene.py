"""Input that is not as its client writes it, of every kind: each oddity with what lands of it and what is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import zstandard

from schemas.call_facts import read_call_facts
from schemas.session_data import Record, read_session_data, text_of
from storage.landings import calls_key
from storage.objects import open_store
from storage.zone import Zone
from tasks.assemble import AssembleOptions, assemble_session
from tasks.export.batch import export_sessions
from tasks.export.outcome import ExportOptions
from tasks.land.archive import land_archive
from tasks.land.codex.unpacked import UnpackedStore
from tasks.land.kinds import recognise
from tasks.land.outcome import LandOptions, LandProblem, SessionLanding
from tasks.verify import verify_session
from tests.memory_store import MemoryStore

NOW = 1_772_359_200_000_000_000
ID = "01a19b8a-7238-7001-8a01-51d0c0de1eef"
PLACES = {
    "claude-code": f"-srv-app/{ID}.jsonl",
    "codex": f"sessions/2026/11/02/rollout-2026-11-02T09-15-04-{ID}.jsonl",
}
KINDS = sorted(PLACES)


def prompt(kind: str, words: str, name: str = "n", time: str = "2026-03-01T10:00:00Z") -> bytes:
    """A line in which a person says something."""
    row: dict[str, Any] = {"type": "user", "uuid": name, "promptId": name, "timestamp": time}
    row |= {"origin": {"kind": "human"}, "message": {"role": "user", "content": words}}
    if kind == "codex":
        row = {"timestamp": time, "type": "event_msg", "payload": {"type": "user_message", "message": words}}
    return json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


class Source:
    """An archive with one session, and the zone it lands in."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.kind, self.folder, self.key = kind, folder / "source", PLACES[kind]
        self.path = self.folder / self.key
        self.path.parent.mkdir(parents=True)
        (folder / "zone").mkdir()
        self.zone = Zone(open_store(folder / "zone"))

    def land(self, data: bytes | None = None, **options: int) -> list[SessionLanding]:
        if data is not None:
            self.path.write_bytes(data)
        dialect, source, found = recognise(open_store(self.folder), self.kind)
        return list(land_archive(self.zone, source, dialect, found, LandOptions(now=NOW, **options)))

    def records(self) -> list[Record]:
        refs = self.zone.landed_files(ID)
        found = [each for ref in refs for each in read_session_data(self.zone.read(ref), name=ref.key).records]
        assert [each.ord for each in found] == list(range(1, len(found) + 1))
        return found

    def said(self) -> list[str]:
        """What a person said, once assembled and verified."""
        assemble_session(self.zone, ID, AssembleOptions(now=NOW))
        assert verify_session(self.zone, ID).problems == []
        return [
            text_of(part)
            for each in self.records()
            if "external_input" in each.flags
            for part in each.parts
            if part.k == "text"
        ]


def problems(outcomes: list[SessionLanding]) -> list[LandProblem]:
    return [problem for outcome in outcomes for problem in outcome.problems]


def rules(outcomes: list[SessionLanding]) -> list[tuple[str, int | None, int | None]]:
    return [(each.rule, each.row, each.off) for each in problems(outcomes)]


@pytest.fixture(params=KINDS)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Source:
    return Source(tmp_path, request.param)


def test_only_a_line_feed_ends_a_line(source: Source) -> None:
    words = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"
    assert rules(source.land(prompt(source.kind, words))) == []
    assert source.said() == [words]
    (record,) = source.records()
    assert (record.off, record.bytes) == (0, source.path.stat().st_size - 1)


def test_carriage_returns_belong_to_the_line_and_offsets_count_them(source: Source) -> None:
    one, two = (prompt(source.kind, words, words).replace(b"\n", b"\r\n") for words in ("one", "two"))
    assert rules(source.land(one + two)) == []
    assert source.said() == ["one", "two"]
    assert [(each.off, each.bytes) for each in source.records()] == [(0, len(one) - 1), (len(one), len(two) - 1)]


def test_byte_order_mark_costs_at_most_its_own_line(source: Source) -> None:
    one, two = prompt(source.kind, "one", "1"), prompt(source.kind, "two", "2")
    found = rules(source.land(b"\xef\xbb\xbf" + one + two))
    # The original collector takes a line with a mark for no JSON, and its records are kept byte for byte.
    assert found == ([("not_understood", 1, 0)] if source.kind == "claude-code" else [])
    assert source.said() == (["two"] if source.kind == "claude-code" else ["one", "two"])
    assert [each.off for each in source.records()] == [0, 3 + len(one)]


@pytest.mark.parametrize("run", [1, 4096, 3_000_000])
def test_zeros_that_a_crash_left_are_a_line_that_is_named(source: Source, run: int) -> None:
    one, two = prompt(source.kind, "one", "1"), prompt(source.kind, "two", "2")
    assert rules(source.land(one + b"\0" * run + b"\n" + two)) == [("not_understood", 2, len(one))]
    assert source.said() == ["one", "two"]
    assert source.records()[1].parts[0].k == "unknown"
    assert source.records()[1].bytes == run


def test_several_values_on_one_line_are_kept_and_named_and_the_next_line_is_read(source: Source) -> None:
    one, two = prompt(source.kind, "one", "1"), prompt(source.kind, "two", "2")
    assert rules(source.land(one[:-1] + one + two)) == [("not_understood", 1, 0)]
    assert source.said() == ["two"]
    assert text_of(source.records()[0].parts[0]) != ""
    assert json.loads(bytes(source.records()[0].parts[0].data)) == (one[:-1] + one[:-1]).decode()  # type: ignore[arg-type]


def test_half_a_last_line_is_kept_for_the_next_pass(source: Source) -> None:
    one, two = prompt(source.kind, "one", "1"), prompt(source.kind, "two", "2")
    assert rules(source.land(one + two[:20])) == []
    assert source.said() == ["one"]
    assert rules(source.land(one + two)) == []
    assert source.said() == ["one", "two"]


def test_bytes_that_are_not_utf_8_become_marks_in_texts(source: Source) -> None:
    line = prompt(source.kind, "caf?!", "1").replace(b"?", b"\xe9")  # cp1252
    assert rules(source.land(line)) == []
    assert source.said() == ["caf\ufffd!"]
    assert source.records()[0].bytes == len(line) - 1


def test_halves_of_surrogate_pairs_become_marks_in_texts(source: Source) -> None:
    line = prompt(source.kind, "x?y", "1").replace(b"?", b"\\ud83d")
    whole = prompt(source.kind, "x?y", "2").replace(b"?", b"\\ud83d\\ude00")
    assert rules(source.land(line + whole)) == []
    assert source.said() == ["x\ufffdy", "x\U0001f600y"]


def test_lines_stay_in_order_when_clocks_go_back(source: Source) -> None:
    times = ["2026-03-01T10:00:00Z", "2025-01-01T00:00:00Z", "not a time", "", "9999-12-31T23:59:60Z"]
    lines = [prompt(source.kind, str(n), str(n), time) for n, time in enumerate(times)]
    assert rules(source.land(b"".join(lines))) == []
    assert source.said() == ["0", "1", "2", "3", "4"]
    assert [each.time for each in source.records()] == times


@pytest.mark.parametrize(
    "text", ['{\n  "type": "user",\n  "uuid": "u"\n}\n', '\ufeff\n[\r\n  {\r\n    "a": 1\r\n  }\r\n]', "[{\n}]\n"]
)
def test_document_over_several_lines_is_refused_and_leaves_the_note_when_it_is_mended(
    source: Source, text: str
) -> None:
    (problem,) = problems(source.land(text.encode()))
    assert (problem.rule, problem.file, problem.row) == ("one_document", source.key, None)
    assert "write each record on a line of its own" in problem.detail
    assert source.zone.landed_files(ID) == []
    assert rules(source.land(prompt(source.kind, "mended"))) == []
    assert source.said() == ["mended"]
    assert source.zone.store.children("_quarantine/landing/")[1] == []


def test_bracket_that_a_cut_line_left_refuses_nothing(source: Source) -> None:
    assert rules(source.land(b"{\n")) == [("one_document", None, None)]
    assert rules(source.land(b"{\n" + prompt(source.kind, "one"))) == [("not_understood", 1, 0)]
    assert source.said() == ["one"]


def test_line_above_the_limit_lands_by_its_size_and_digest_and_the_rest_as_it_is(source: Source) -> None:
    one, long, two = (
        prompt(source.kind, "one", "1"),
        prompt(source.kind, "x" * 5000, "l"),
        prompt(source.kind, "two", "2"),
    )
    found = problems(source.land(one + long + two, max_line_bytes=1000, max_delta_bytes=400))
    digest = sha256(long[:-1]).hexdigest()
    assert [(each.rule, each.row, each.off, each.sha) for each in found] == [
        ("not_understood", 2, len(one), digest[:12])
    ]
    assert digest in found[0].detail
    part = source.records()[1].parts[0]
    assert (part.k, part.state, part.bytes) == ("unknown", "unavailable", len(long) - 1)
    assert digest in text_of(part)
    assert source.said() == ["one", "two"]


def test_link_out_of_the_source_is_named_and_nothing_of_it_lands(source: Source, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(prompt(source.kind, "secret"))
    source.path.symlink_to(tmp_path / "secret")
    assert rules(source.land()) == [("unreadable", None, None)]
    assert source.zone.landed_files(ID) == []
    linked = source.folder / ("linked" if source.kind == "claude-code" else "sessions/linked")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / source.path.name).write_bytes(prompt(source.kind, "secret"))
    linked.symlink_to(tmp_path / "outside")
    assert source.zone.landed_files(ID) == []


def test_hostile_names_stay_in_the_zone_and_hide_nothing(source: Source, tmp_path: Path) -> None:
    source.path.write_bytes(prompt(source.kind, "one"))
    names = [
        b"..%2f..",
        b"a b\x1b[31m",
        b"new\nline",
        b"\xff\xfe",
        b"-rf",
        b"_conversations",
        b".tmp-x",
        b"con",
        b"x" * 255,
    ]
    for name in names:
        for below in (bytes(source.folder) + b"/" + name, bytes(source.path.parent) + b"/" + name):
            os.makedirs(below + b"/sessions", exist_ok=True)
            with open(below + b"/" + source.path.name.encode(), "wb") as file:
                file.write(prompt(source.kind, "other"))
            with open(below + b"/sessions/" + source.path.name.encode(), "wb") as file:
                file.write(prompt(source.kind, "other"))
    found = source.land()
    assert {rule for rule, _, _ in rules(found)} <= {"two_sources", "unlisted", "unreadable", "damaged"}
    assert source.said() in (["one"], ["other"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source", "zone"]
    for problem in problems(found):
        problem.model_dump_json()


def test_name_too_long_for_the_zone_stops_only_its_own_file(tmp_path: Path) -> None:
    archive = MemoryStore()  # as S3, which takes longer names than a file system
    source = Source(tmp_path, "codex")
    archive.objects[source.key] = prompt("codex", "one")
    archive.objects[f"sessions/rollout-{ID}_{'s' * 300}.jsonl"] = prompt("codex", "two")
    dialect, store, found = recognise(archive, "codex")
    for _ in range(2):
        outcomes = list(land_archive(source.zone, store, dialect, found, LandOptions(now=NOW)))
        assert [rule for rule, _, _ in rules(outcomes)] == ["unreadable"]
    assert source.said() == ["one"]


@pytest.mark.parametrize("body", [b"\0" * 40_000_000, (b'{"type":"x"}\n' * 4_000_000)])
def test_rollout_that_unpacks_to_much_too_much_is_refused(tmp_path: Path, body: bytes) -> None:
    source = Source(tmp_path, "codex")
    packed = zstandard.compress(body, 19)
    assert len(body) > 2000 * len(packed)
    source.path.with_name(source.path.name + ".zst").write_bytes(packed)
    (problem,) = problems(source.land())
    assert problem.rule == "unreadable"
    assert source.zone.landed_files(ID) == []


def test_packed_rollout_that_is_damaged_lands_up_to_there_and_leaves_the_note_when_it_is_whole(tmp_path: Path) -> None:
    source = Source(tmp_path, "codex")
    path = source.path.with_name(source.path.name + ".zst")
    one, two = zstandard.compress(prompt("codex", "one")), zstandard.compress(prompt("codex", "two"))
    path.write_bytes(one + two[:-5])
    for _ in range(3):
        (problem,) = problems(source.land())
        assert (problem.rule, problem.file) == ("damaged", f"{source.key}.zst")
        assert source.said() == ["one"]
    assert len(source.zone.store.children("_quarantine/landing/")[1]) == 1
    path.write_bytes(one + two)
    assert rules(source.land()) == []
    assert source.said() == ["one", "two"]
    assert source.zone.store.children("_quarantine/landing/")[1] == []


def test_packed_rollout_that_is_a_link_out_of_the_source_hides_no_other(tmp_path: Path) -> None:
    source = Source(tmp_path, "codex")
    source.path.write_bytes(prompt("codex", "one"))
    (tmp_path / "secret").write_bytes(zstandard.compress(prompt("codex", "secret")))
    source.path.with_name(source.path.name.replace(ID, ID[:-1] + "0") + ".zst").symlink_to(tmp_path / "secret")
    assert rules(source.land()) == [("unreadable", None, None)]
    assert source.said() == ["one"]


def test_packed_rollouts_that_have_landed_are_not_unpacked_again(tmp_path: Path) -> None:
    source = Source(tmp_path, "codex")
    body = prompt("codex", "one") + b"".join(prompt("codex", os.urandom(500).hex()) for _ in range(3000))
    archive = MemoryStore()
    archive.objects[f"{source.key}.zst"] = zstandard.compress(body)
    size = len(archive.objects[f"{source.key}.zst"])
    read: list[int] = []

    class Watched(MemoryStore):
        def read_range(self, key: str, start: int, length: int) -> bytes:
            read.append(length)
            return super().read_range(key, start, length)

    for _ in range(2):
        watched = Watched()
        watched.objects = archive.objects
        read.clear()
        dialect, store, found = recognise(watched, "codex")
        outcomes = list(land_archive(source.zone, store, dialect, found, LandOptions(now=NOW)))
    assert [each.unchanged for each in outcomes] == [True]
    assert sum(read) < size / 8


def test_packed_rollout_is_read_anywhere_without_being_held_whole(tmp_path: Path) -> None:
    source = Source(tmp_path, "codex")
    body = b"".join(b"%020d\n" % number for number in range(1_000_000))
    key = f"{source.key}.zst"
    (source.folder / key).write_bytes(zstandard.compress(body[:9_000_000]) + zstandard.compress(body[9_000_000:]))
    store = UnpackedStore(open_store(source.folder))
    stat = store.stat(key)
    assert stat is not None
    assert stat.size == len(body)
    for start, length in [
        (0, 10),
        (5, 100),
        (8_999_990, 20),
        (8_999_990, 2_000_000),
        (10_500_000, 7),
        (3, 9),
        (21_000_000, 9),
    ]:
        assert store.read_range(key, start, length) == body[start : start + length], start
    assert store.read_range(key, len(body) - 5, 100) == body[-5:]
    assert store.read(key) == body


MEASURED = """
import resource, sys
from pathlib import Path
from tests.unit.test_land_hygiene import measured
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
size, records, rules = measured(Path(sys.argv[1]), sys.argv[2])
print(size, records, rules, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def measured(folder: Path, kind: str) -> tuple[int, int, int]:
    """A line of 320 MB between two others, packed or not: its size, and the records and problems that land."""
    source = Source(folder, kind.removesuffix(" packed"))
    path = source.path.with_name(source.path.name + ".zst") if kind.endswith("packed") else source.path
    block = bytes(range(97, 107)) * 100_000
    with path.open("wb") as plain:
        target = zstandard.ZstdCompressor(level=1).stream_writer(plain) if kind.endswith("packed") else plain
        target.write(prompt(source.kind, "one", "1"))
        target.write(b'{"type":"file-history-snapshot","x":"')
        for _ in range(320):
            target.write(os.urandom(500).hex().encode() + block[1000:])
        target.write(b'"}\n' + prompt(source.kind, "two", "2"))
        if target is not plain:
            target.close()
    outcomes = source.land()
    assert source.said() == ["one", "two"]
    return source.records()[1].bytes, len(source.records()), len(problems(outcomes))


@pytest.mark.parametrize("kind", ["claude-code", "codex", "codex packed"])
def test_line_of_320_mb_takes_bounded_memory_and_costs_no_other_line(tmp_path: Path, kind: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(tmp_path), kind],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    size, records, found, megabytes = map(int, done.stdout.split())
    assert size > 320_000_000
    assert (records, found) == (3, 1)
    assert megabytes < 160


def deep(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


@pytest.mark.parametrize("levels", [900, 5_000, 9_990, 9_998])
def test_values_nested_deep_land_assemble_and_export(source: Source, levels: int) -> None:
    line = prompt(source.kind, "one")[:-2] + b',"result":' + deep(levels) + b"}\n"
    ends = b'{"type":"result","subtype":"success","is_error":false,"x":' + deep(levels) + b"}\n"
    found = rules(source.land(line + prompt(source.kind, "two", "2") + ends))
    assert {rule for rule, _, _ in found} <= {"not_understood"}
    assert source.said()[-1] == "two"
    assert source.records()[0].bytes == len(line) - 1
    exports = MemoryStore()
    (outcome,) = export_sessions(source.zone, exports, [ID], ExportOptions(as_of=2 * NOW))
    assert outcome.state == "unfinished"


def test_usage_nested_deep_keeps_its_numbers_beside_the_file(tmp_path: Path) -> None:
    source = Source(tmp_path, "claude-code")
    usage = b'{"output_tokens":7,"speed":"fast","iterations":' + deep(2_000) + b"}"
    row = b'{"type":"assistant","uuid":"u","message":{"id":"m","usage":' + usage + b"}}\n"
    assert rules(source.land(row)) == []
    data = zstandard.decompress(source.zone.store.read(calls_key(ID, 1)))
    (fact,) = read_call_facts(data, name="calls")
    assert json.loads(bytes(fact.usage)) == {"output_tokens": 7, "speed": "fast"}


def test_title_nested_deep_is_none(tmp_path: Path) -> None:
    source = Source(tmp_path, "codex")
    index = b'{"id":"' + ID.encode() + b'","thread_name":"One"'
    (source.folder / "session_index.jsonl").write_bytes(index + b"}\n" + index + b',"x":' + deep(9_998) + b"}\n")
    assert rules(source.land(prompt("codex", "one"))) == []
    assemble_session(source.zone, ID, AssembleOptions(now=NOW))
    assert verify_session(source.zone, ID).problems == []
    labels = [ref.prefix for ref in source.zone.landed_files(ID)]
    assert labels == ["transcript", "session_index"]
