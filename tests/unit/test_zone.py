"""The layout of a storage root."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.errors import KeyRefused
from storage.objects import open_store
from storage.zone import Zone


@pytest.fixture
def zone(tmp_path: Path) -> Zone:
    return Zone(open_store(tmp_path))


def put(zone: Zone, *keys: str) -> None:
    for key in keys:
        zone.store.create(key, b"x")


def test_sessions_are_folders_that_do_not_start_with_an_underscore(zone: Zone) -> None:
    put(zone, "b/streams/main/x", "a/y", "_conversations/a/rounds/z", "_quarantine/a.json", "file", "_x/y")
    assert zone.sessions() == ["a", "b"]
    assert zone.conversations() == ["a"]


def test_landed_files_are_in_sequence_order_across_folders(zone: Zone) -> None:
    put(
        zone,
        "s/streams/main/transcript-20260807T090100.500000000Z-000010.sd",
        "s/streams/main/transcript-20260807T090100.500000000Z-000002.sd",
        "s/streams/ag1/meta-20260807T090100.500000000Z-000001.sd",
        "s/runs/wf_1/journal-20260807T090100.500000000Z-1000000.sd",
        "s/provider_body/provider_body-20260807T090100.500000000Z-000007.sd",
    )
    assert [(ref.seq, ref.folder, ref.place, ref.prefix, ref.size) for ref in zone.landed_files("s")] == [
        (1, "streams", "ag1", "meta", 1),
        (2, "streams", "main", "transcript", 1),
        (7, "provider_body", "", "provider_body", 1),
        (10, "streams", "main", "transcript", 1),
        (1000000, "runs", "wf_1", "journal", 1),
    ]


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("transcript_019bd9fd-1300-704f-8a4f-51d0c0e78bc1-20260807T090100.500000000Z-000001.sd",) * 2,
        ("transcript~2-20260807T090100.500000000Z-000001.sd", "transcript~2"),
        ("transcript-x-000001.sd", "transcript"),
        ("transcript-000001.sd", "transcript"),
    ],
)
def test_prefix_of_a_landed_file_is_what_stands_before_its_time(zone: Zone, name: str, prefix: str) -> None:
    put(zone, f"s/streams/main/{name}")
    assert [ref.prefix for ref in zone.landed_files("s")] == [prefix.partition("-20260807")[0]]


def test_files_of_one_sequence_keep_the_order_of_the_walk(zone: Zone) -> None:
    put(zone, "s/runs/a/journal-x-000001.sd", "s/streams/b/meta-x-000001.sd", "s/streams/a-b/meta-x-000001.sd")
    put(zone, "s/streams/a/transcript-x-000001.sd", "s/streams/a/meta-x-000001.sd")
    assert [(ref.place, ref.prefix) for ref in zone.landed_files("s")] == [
        ("a", "meta"),
        ("a", "transcript"),
        ("a-b", "meta"),
        ("b", "meta"),
        ("a", "journal"),
    ]


@pytest.mark.parametrize(
    "key",
    [
        "s/streams/main/transcript-x-00001.sd",
        "s/streams/main/transcript-x-000001.sf",
        "s/streams/main/transcript-x-000001.sd.bak",
        "s/streams/main/transcript_000001.sd",
        "s/streams/main/.tmp-000001.sd",
        "s/streams/main/deeper/transcript-x-000001.sd",
        "s/streams/transcript-x-000001.sd",
        "s/provider_body/deeper/provider_body-x-000001.sd",
        "s/other/main/transcript-x-000001.sd",
        "s/transcript-x-000001.sd",
        "s/streams/main/transcript-x-\u0661\u0661\u0661\u0661\u0661\u0661.sd",
    ],
)
def test_what_is_no_landed_file_is_left_alone(zone: Zone, key: str) -> None:
    put(zone, key)
    assert zone.landed_files("s") == []


def test_session_without_a_folder_is_empty(zone: Zone) -> None:
    assert zone.landed_files("nobody") == []
    assert zone.cursors("nobody") == []
    assert zone.read_index("nobody") is None
    assert zone.chain("nobody").rounds() == []


def test_session_that_would_leave_the_root_is_refused(zone: Zone) -> None:
    with pytest.raises(KeyRefused):
        zone.landed_files("../elsewhere")
    with pytest.raises(KeyRefused):
        zone.chain("../../elsewhere").rounds()


def test_landed_files_are_read_in_order(zone: Zone) -> None:
    for seq in (3, 1, 2):
        zone.store.create(f"s/streams/main/transcript-x-{seq:06d}.sd", str(seq).encode())
    assert [(ref.seq, data) for ref, data in zone.read_many(zone.landed_files("s"))] == [
        (1, b"1"),
        (2, b"2"),
        (3, b"3"),
    ]
    assert zone.read(zone.landed_files("s")[1]) == b"2"


def test_cursors_are_state_files_of_streams_and_runs(zone: Zone) -> None:
    text = b"schema        1\nkind          append\nsource        a b/c.jsonl\nord           12\noffset        2454\n"
    zone.store.replace("s/streams/main/transcript.cursor", text)
    zone.store.replace("s/runs/wf_1/journal.cursor", b"kind append\n")
    zone.store.replace("s/streams/main/deeper/x.cursor", b"")
    zone.store.replace("s/session.state", b"")
    main, journal = zone.cursors("s")
    assert (main.folder, main.place, main.prefix) == ("streams", "main", "transcript")
    assert main.values == {"schema": "1", "kind": "append", "source": "a b/c.jsonl", "ord": "12", "offset": "2454"}
    assert (journal.key, journal.values) == ("s/runs/wf_1/journal.cursor", {"kind": "append"})


def test_index_is_kept_and_replaced(zone: Zone) -> None:
    zone.write_index("s", b"one")
    zone.write_index("s", b"two")
    assert zone.read_index("s") == b"two"
    assert zone.store.read("s/index/sessionmill.state") == b"two"


def test_quarantine_notes_why_and_is_taken_back(zone: Zone) -> None:
    zone.quarantine("s", {"problems": 1, "reasons": [{"rule": "digest", "file": "odd \udcff name"}]})
    zone.quarantine("a/b", {})
    zone.store.replace("_quarantine/not a note.txt%", b"")
    assert zone.quarantined() == ["a/b", "s"]
    assert zone.quarantine_reason("s") == {"problems": 1, "reasons": [{"rule": "digest", "file": "odd \udcff name"}]}
    zone.clear_quarantine("s")
    zone.clear_quarantine("s")
    assert zone.quarantined() == ["a/b"]
    assert zone.quarantine_reason("s") is None
    assert zone.sessions() == []
