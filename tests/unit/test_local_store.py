"""Objects in a folder: beside what every store does, the file system's own traps."""

from __future__ import annotations

import errno
import os
import random
import signal
import stat as modes
import subprocess
import sys
import time
from pathlib import Path

import pytest

from schemas.errors import (
    ConfigurationRejected,
    KeyRefused,
    ObjectExists,
    ObjectMissing,
    ObjectTooLarge,
    StoreUnavailable,
)
from storage.local import LocalStore
from storage.objects import StoreSettings, open_store
from tests.store_behaviour import StoreBehaviour
from tests.store_race import race


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def store(root: Path) -> LocalStore:
    return LocalStore(str(root))


class TestLocalStore(StoreBehaviour):
    """The folder does what every store does."""


def test_evidence_is_read_only_and_caches_are_not(store: LocalStore, root: Path) -> None:
    old = os.umask(0o077)
    try:
        store.create("s/streams/main/x.sd", b"1")
        store.replace("s/index/y", b"2")
    finally:
        os.umask(old)
    assert modes.S_IMODE((root / "s/streams/main/x.sd").stat().st_mode) == 0o444
    assert modes.S_IMODE((root / "s/index/y").stat().st_mode) == 0o644
    assert modes.S_IMODE((root / "s/streams").stat().st_mode) == 0o755


def test_nothing_is_left_beside_what_was_written(store: LocalStore, root: Path) -> None:
    store.create("s/x", b"1")
    store.replace("s/y", b"2")
    with pytest.raises(ObjectExists):
        store.create("s/x", b"3")
    assert sorted(os.listdir(root / "s")) == ["x", "y"]


def test_what_a_killed_writer_left_goes_a_day_later(store: LocalStore, root: Path) -> None:
    (root / "s").mkdir(parents=True)
    day = 24 * 3600
    ages = {
        f".tmp-17-{'a' * 16}": day + 60,
        f".tmp-18-{'b' * 16}": day - 60,  # somebody may be writing it
        f".tmp-19-{'c' * 15}": 9 * day,  # another program's
        ".tmp-state": 9 * day,
        "x.tmp": 9 * day,
    }
    for name, age in ages.items():
        (root / "s" / name).write_bytes(b"half")
        then = time.time() - age
        os.utime(root / "s" / name, (then, then))
    (root / "s" / f".tmp-20-{'d' * 16}").symlink_to("nowhere")
    (root / "s" / f".tmp-21-{'e' * 16}").mkdir()
    LocalStore(str(root)).list("")
    assert len(list((root / "s").iterdir())) == 7  # reading removes nothing
    store.create("s/x", b"1")
    left = sorted([*ages, f".tmp-20-{'d' * 16}", f".tmp-21-{'e' * 16}"])
    left.remove(f".tmp-17-{'a' * 16}")
    assert sorted(os.listdir(root / "s")) == [*left[:-1], "x", "x.tmp"]
    store.replace("other/y", b"1")
    assert sorted(os.listdir(root / "other")) == ["y"]


def test_writer_whose_file_was_swept_fails_as_the_store_and_may_try_again(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def swept(temporary: str, path: str) -> None:
        os.unlink(temporary)
        link(temporary, path)

    monkeypatch.setattr(os, "link", swept)
    with pytest.raises(StoreUnavailable):
        store.create("s/x", b"1")
    monkeypatch.undo()
    store.create("s/x", b"1")
    assert store.read("s/x") == b"1"


def test_file_system_without_hard_links_still_creates_once(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*names: str) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    store.create("s/x", b"first")
    with pytest.raises(ObjectExists):
        store.create("s/x", b"second")
    assert store.read("s/x") == b"first"
    assert modes.S_IMODE((root / "s/x").stat().st_mode) == 0o444
    assert os.listdir(root / "s") == ["x"]


def test_failed_write_leaves_nothing(store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store.create("s/before", b"")
    monkeypatch.setattr(os, "fsync", full)
    for write in (store.create, store.replace):
        with pytest.raises(Exception, match="No space left"):
            write("s/x", b"data")
    assert os.listdir(root / "s") == ["before"]


def test_linked_folder_that_leads_out_is_refused(store: LocalStore, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (root / "s").mkdir(parents=True)
    (root / "s/link").symlink_to(outside)
    (root / "s/up").symlink_to("..")
    for key in ("s/link/secret", "s/up/../outside/secret"):
        with pytest.raises(KeyRefused):
            store.read(key)
    for call in (store.create, store.replace):
        with pytest.raises(KeyRefused):
            call("s/link/new", b"")
    for prefix in ("s/link/", "s/link/deeper/"):
        with pytest.raises(KeyRefused):
            store.list(prefix)
    with pytest.raises(KeyRefused):
        store.delete("s/link/secret")
    assert os.listdir(outside) == ["secret"]


def test_linked_file_is_read_only_while_it_stays_inside(store: LocalStore, root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    store.create("s/real", b"evidence")
    (root / "s/inside").symlink_to("real")
    (root / "s/outside").symlink_to(tmp_path / "secret")
    (root / "s/broken").symlink_to("nothing")
    assert store.read("s/inside") == b"evidence"
    with pytest.raises(KeyRefused):
        store.read("s/outside")
    with pytest.raises(ObjectMissing):
        store.read("s/broken")
    with pytest.raises(ObjectExists):
        store.create("s/broken", b"")
    assert [each.key for each in store.list("s/")] == ["s/broken", "s/inside", "s/outside", "s/real"]


def test_linked_folder_is_not_listed_as_a_folder(store: LocalStore, root: Path) -> None:
    store.create("s/real/x", b"")
    (root / "s/link").symlink_to("real")
    assert store.children("s/")[0] == ["real"]
    assert [each.key for each in store.list("") if each.key.endswith("/x")] == ["s/real/x"]
    assert store.read("s/link/x") == b""


def test_root_may_itself_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to("real")
    store = LocalStore(str(tmp_path / "root"))
    store.create("a/b", b"1")
    assert (tmp_path / "real/a/b").read_bytes() == b"1"


def test_pipes_and_sockets_are_no_objects(store: LocalStore, root: Path) -> None:
    store.create("s/x", b"")
    os.mkfifo(root / "s/pipe")
    assert [each.key for each in store.list("s/")] == ["s/x"]
    with pytest.raises(ObjectMissing):
        store.read("s/pipe")


def test_object_below_an_object_is_refused(store: LocalStore) -> None:
    store.create("s/x", b"")
    with pytest.raises(KeyRefused):
        store.create("s/x/y", b"")
    with pytest.raises(KeyRefused):
        store.replace("s/x/y", b"")
    with pytest.raises(ObjectMissing):
        store.read("s/x/y")


def test_object_above_the_limit_is_not_read(root: Path) -> None:
    small = LocalStore(str(root), StoreSettings(max_object_bytes=10))
    LocalStore(str(root)).create("big", b"0123456789x")
    with pytest.raises(ObjectTooLarge) as refused:
        small.read("big")
    assert (refused.value.size, refused.value.limit) == (11, 10)
    with pytest.raises(ObjectTooLarge):
        small.create("new", b"0123456789x")
    assert small.read_range("big", 5, 10) == b"56789x"
    with pytest.raises(ObjectTooLarge):
        small.read_range("big", 0, 11)


def test_sparse_giant_meets_the_default_limit(store: LocalStore, root: Path) -> None:
    root.mkdir()
    with (root / "giant").open("wb") as file:
        file.truncate(3 * 1024**3)
    with pytest.raises(ObjectTooLarge):
        store.read("giant")


def test_missing_root_is_wrong_use_only_when_asked(store: LocalStore) -> None:
    assert store.list("") == []
    with pytest.raises(ConfigurationRejected):
        store.check_root()
    store.create("x", b"")
    store.check_root()


@pytest.mark.parametrize(
    "where", ["gs://bucket/x", "http://host/x", "file://host/x", "", "s3://", "s3:///x", "s3://b/../x"]
)
def test_unusable_root_is_refused(where: str) -> None:
    with pytest.raises(ConfigurationRejected):
        open_store(where)


def test_root_may_be_a_file_url(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/a%20zone")
    store.create("x", b"1")
    assert (tmp_path / "a zone/x").read_bytes() == b"1"


def test_two_processes_create_one_key_two_hundred_times(root: Path) -> None:
    winners = race(str(root), 200)
    assert [len(each) for each in winners] == [1] * 200
    store = LocalStore(str(root))
    assert [store.read(f"race/{n:04d}") for n in range(200)] == [str(won[0]).encode() * 1000 for won in winners]


WRITER = """
import itertools, sys
from storage.local import LocalStore
store = LocalStore(sys.argv[1])
data = b"x" * 2_000_000 + b"end"
for number in itertools.count():
    store.create(f"{sys.argv[2]}/{number:06d}", data)
    store.replace(f"cache/{number % 3}", data)
    if number == 0:
        print("writing", flush=True)
"""


def test_killed_writer_leaves_only_whole_objects(store: LocalStore, root: Path) -> None:
    chance = random.Random(1)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for turn in range(20):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(root), f"w{turn}"], stdout=subprocess.PIPE, env=environment
        )
        with process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"writing\n"
            time.sleep(chance.uniform(0, 0.05))
            process.send_signal(signal.SIGKILL)
    seen = store.list("")
    assert len({each.key.split("/")[0] for each in seen}) == 21
    for each in seen:
        assert each.size == 2_000_003
        assert store.read_range(each.key, 1_999_999, 10) == b"xend"
