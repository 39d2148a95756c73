"""Source files that are moved, renamed, replaced, shortened, copied to other machines, or were landed by another
collector: what lands goes on where it was, or the file is named, and nothing lands twice.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest
import zstandard

from schemas.session_data import SessionDataHeader, read_session_data, write_session_data
from storage.objects import open_store
from storage.zone import Zone
from tasks.land.archive import land_archive
from tasks.land.claude_code.convert import convert
from tasks.land.claude_code.discover import source_file
from tasks.land.kinds import recognise
from tasks.land.outcome import LandOptions
from tasks.land.source import Line
from tasks.verify import verify_session

NOW = 1_772_359_200_000_000_000
ID = "01a19b8a-7238-7001-8a01-51d0c0de1eef"
CLAUDE = f"-srv-app/{ID}.jsonl"
ROLLOUT = f"rollout-2026-11-02T09-15-04-{ID}.jsonl"
SESSIONS, ARCHIVED = f"sessions/2026/11/02/{ROLLOUT}", f"archived_sessions/{ROLLOUT}"
PLACES = {
    "claude-code": [CLAUDE, f"-srv-other/{ID}.jsonl", f"machine/.claude/projects/-srv-app/{ID}.jsonl"],
    "codex": [SESSIONS, ARCHIVED, f"{ARCHIVED}.zst", f"{SESSIONS}.zst", f"machine/.codex/{SESSIONS}"],
}


def lines(*names: str) -> bytes:
    return b"".join(
        json.dumps({"type": "user", "uuid": name, "payload": {"n": name}}).encode() + b"\n" for name in names
    )


class Place:
    """A folder of archives and a zone."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder, self.kind = folder, kind
        (folder / "zone").mkdir()
        self.zone = Zone(open_store(folder / "zone"))

    def put(self, key: str, data: bytes, source: str = "source") -> None:
        path = self.folder / source / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zstandard.compress(data) if key.endswith(".zst") else data)

    def drop(self, key: str, source: str = "source") -> None:
        (self.folder / source / key).unlink()

    def land(self, source: str = "source") -> list[str]:
        dialect, store, found = recognise(open_store(self.folder / source), self.kind)
        outcomes = land_archive(self.zone, store, dialect, found, LandOptions(now=NOW))
        return [problem.rule for outcome in outcomes for problem in outcome.problems]

    def landed(self) -> bytes:
        """The lines whose records have landed, put together again from their digests' order: offsets without a gap."""
        off = 0
        refs = self.zone.landed_files(ID)
        assert [ref.seq for ref in refs] == list(range(1, len(refs) + 1))
        shas = []
        for ref in refs:
            for record in read_session_data(self.zone.read(ref), name=ref.key).records:
                assert record.off == off
                off += record.bytes + 1
                shas.append(record.sha)
        assert verify_session(self.zone, ID).problems == []
        return b" ".join(sha.encode() for sha in shas)


def digests(data: bytes) -> bytes:
    return b" ".join(sha256(line).hexdigest()[:12].encode() for line in data.split(b"\n")[:-1])


@pytest.fixture(params=sorted(PLACES))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path, request.param)


def test_file_that_moves_about_while_it_grows_is_one_stream(place: Place) -> None:
    content = b""
    before = ""
    for number, key in enumerate(PLACES[place.kind] * 2):
        content += lines(f"{number}a", f"{number}b")
        place.put(key, content)
        if before:
            place.drop(before)
        assert place.land() == []
        assert place.landed() == digests(content)
        before = key


def test_file_that_was_replaced_by_one_as_long_is_a_conflict_and_what_landed_stays(place: Place) -> None:
    key = PLACES[place.kind][0]
    place.put(key, lines("aa", "bb"))
    assert place.land() == []
    place.put(key, lines("xx", "yy"))
    assert place.land() == ["conflict"]
    place.put(key, lines("xx", "yy", "zz"))
    assert place.land() == ["conflict"]
    assert place.landed() == digests(lines("aa", "bb"))


def test_file_that_was_touched_or_copied_anew_is_the_same(place: Place) -> None:
    key = PLACES[place.kind][0]
    place.put(key, lines("aa", "bb"))
    assert place.land() == []
    place.drop(key)
    place.put(key, lines("aa", "bb"))  # another inode and time
    assert place.land() == []
    place.put(key, lines("aa", "bb", "cc"))
    assert place.land() == []
    assert place.landed() == digests(lines("aa", "bb", "cc"))


def test_emptied_file_is_a_conflict_and_a_deleted_one_is_none(place: Place) -> None:
    key = PLACES[place.kind][0]
    place.put(key, lines("aa"))
    assert place.land() == []
    place.put(key, b"")
    assert place.land() == ["conflict"]
    place.drop(key)
    assert place.land() == []
    assert place.landed() == digests(lines("aa"))


def test_copy_of_another_machine_that_is_longer_goes_on_and_one_of_its_own_is_named(place: Place) -> None:
    key = PLACES[place.kind][0]
    place.put(key, lines("aa"), "one")
    place.put(key, lines("aa", "bb"), "two")
    place.put(key, lines("xx", "yy", "zz"), "three")
    assert place.land("one") == []
    assert place.land("two") == []
    assert place.land("three") == ["conflict"]
    assert place.landed() == digests(lines("aa", "bb"))
    place.put(key, lines("aa", "bb", "cc"), "one")
    assert place.land("one") == []
    assert place.land("two") == []  # it is behind, and as it was
    place.put(key, lines("aa", "bb", "cc", "dd"), "two")
    assert place.land("two") == []
    assert place.landed() == digests(lines("aa", "bb", "cc", "dd"))


def test_zone_of_the_original_collector_is_gone_on_with(tmp_path: Path) -> None:
    place = Place(tmp_path, "claude-code")
    data = lines("aa", "bb")
    file = source_file(CLAUDE)
    assert file is not None
    header = SessionDataHeader(
        h=1, schema="sd/1", seq=1, at="2026-03-01T10:00:00Z", kind="transcript", adapter="claude-code-local/0.1.0",
        dialect="claude-code/1", src=CLAUDE, session=ID, stream="main",
    )  # fmt: skip
    first, second = data.split(b"\n")[:-1]
    records = [convert(line, file).record for line in (Line(1, 0, first), Line(2, len(first) + 1, second))]
    store, folder = place.zone.store, f"{ID}/streams/main"
    store.create(f"{folder}/transcript-20260301T100000.000000000Z-000001.sd", write_session_data(header, records))
    cursor = {
        "schema": "1", "kind": "append", "source": CLAUDE, "dev": "64512", "ino": "7", "offset": str(len(data)),
        "ord": "2", "tail_sha256": sha256(data).hexdigest(), "size": str(len(data)), "mtime": "1", "last_seq": "1",
        "state": "active",
    }  # fmt: skip
    text = "".join(f"{key:<13} {value}\n" for key, value in cursor.items())
    store.replace(f"{folder}/transcript.cursor", text.encode())
    place.put(CLAUDE, data + lines("cc"))
    assert place.land() == []
    assert place.landed() == digests(data + lines("cc"))


def test_one_place_by_any_of_its_names_is_one_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path, "claude-code")
    place.put(CLAUDE, lines("aa"))
    (tmp_path / "link").symlink_to(tmp_path / "source")
    monkeypatch.chdir(tmp_path)
    roots = {
        open_store(name).url
        for name in ("source", "./source/", "link", f"{tmp_path}/source", f"file://{tmp_path}/link")
    }
    assert len(roots) == 1
    assert len({open_store(name).url for name in ("s3://bucket/a", "s3://bucket/a/")}) == 1
