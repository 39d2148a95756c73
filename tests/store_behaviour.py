"""What every object store does, as tests to inherit: a zone moves between a folder and S3 without a difference."""

from __future__ import annotations

import asyncio
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from schemas.errors import KeyRefused, ObjectExists, ObjectMissing
from storage.ahead import read_in_order
from storage.objects import ObjectStore

ODD_KEYS = [
    "odd/ü ñ/日本",
    "odd/a b+c&d=e?f#g;h,i@j:k$l!m",
    "odd/100%/x%2Fy",
    "odd/quote'\"<>|*()[]{}~`^",
    "odd/.hidden",
    "odd/name?versionId=7",
    "odd/trailing space ",
]


class StoreBehaviour:
    """Inherit, and provide a fixture `store` with an empty store."""

    def test_created_object_reads_back(self, store: ObjectStore) -> None:
        store.create("a/b/c.sd", b"evidence")
        assert store.read("a/b/c.sd") == b"evidence"

    def test_create_never_overwrites(self, store: ObjectStore) -> None:
        store.create("a/b", b"first")
        with pytest.raises(ObjectExists):
            store.create("a/b", b"second")
        assert store.read("a/b") == b"first"

    def test_create_of_identical_bytes_is_refused_too(self, store: ObjectStore) -> None:
        store.create("a/b", b"same")
        with pytest.raises(ObjectExists):
            store.create("a/b", b"same")

    def test_replace_overwrites(self, store: ObjectStore) -> None:
        store.replace("cache", b"one")
        store.replace("cache", b"two")
        assert store.read("cache") == b"two"

    def test_empty_object(self, store: ObjectStore) -> None:
        store.create("empty", b"")
        assert store.read("empty") == b""
        assert [stat.size for stat in store.list("")] == [0]

    def test_missing_object(self, store: ObjectStore) -> None:
        with pytest.raises(ObjectMissing):
            store.read("nowhere/x")
        with pytest.raises(ObjectMissing):
            store.read_range("nowhere/x", 0, 1)
        with pytest.raises(ObjectMissing):
            store.read_range("nowhere/x", 0, 0)
        assert store.stat("nowhere/x") is None
        assert store.list("nowhere/") == []
        assert store.children("nowhere/") == ([], [])

    def test_folder_is_no_object(self, store: ObjectStore) -> None:
        store.create("a/b/c", b"1")
        assert store.stat("a/b") is None
        with pytest.raises(ObjectMissing):
            store.read("a/b")

    @pytest.mark.parametrize(
        ("start", "length", "expected"),
        [
            (0, 3, b"012"),
            (4, 2, b"45"),
            (8, 100, b"89"),
            (10, 5, b""),
            (500, 5, b""),
            (3, 0, b""),
            (0, 10, b"0123456789"),
        ],
    )
    def test_range(self, store: ObjectStore, start: int, length: int, expected: bytes) -> None:
        store.create("digits", b"0123456789")
        assert store.read_range("digits", start, length) == expected

    def test_list_is_everything_below_sorted_by_key(self, store: ObjectStore) -> None:
        for key in ("s/b/2", "s/a-b/1", "s/a/1", "s/a.x", "t/1", "s/B/1"):
            store.create(key, key.encode())
        assert [stat.key for stat in store.list("s/")] == ["s/B/1", "s/a-b/1", "s/a.x", "s/a/1", "s/b/2"]
        assert [stat.size for stat in store.list("s/")] == [5, 7, 5, 5, 5]

    def test_children_are_one_level(self, store: ObjectStore) -> None:
        for key in ("s/b/2", "s/a/1/x", "s/z", "s/y", "top"):
            store.create(key, b"")
        folders, objects = store.children("s/")
        assert folders == ["a", "b"]
        assert [stat.key for stat in objects] == ["s/y", "s/z"]
        assert store.children("")[0] == ["s"]

    def test_unfinished_writes_are_not_shown(self, store: ObjectStore) -> None:
        store.create("s/.tmp-1-abc", b"half")
        store.create("s/.tmp-dir/x", b"half")
        store.create("s/done", b"whole")
        assert [stat.key for stat in store.list("s/")] == ["s/done"]
        assert store.children("s/") == ([], store.list("s/"))

    def test_stat_agrees_with_list(self, store: ObjectStore) -> None:
        store.create("s/x", b"12345")
        (listed,) = store.list("s/")
        found = store.stat("s/x")
        assert found is not None
        assert (found.key, found.size, found.etag) == (listed.key, 5, listed.etag)
        assert abs(found.modified - listed.modified) < 2

    def test_etag_follows_content(self, store: ObjectStore) -> None:
        store.replace("x", b"one")
        before = store.stat("x")
        store.replace("x", b"two!")
        after = store.stat("x")
        assert before is not None
        assert after is not None
        assert before.etag != after.etag

    def test_delete_is_final_and_can_be_repeated(self, store: ObjectStore) -> None:
        store.create("s/x", b"1")
        store.delete("s/x")
        store.delete("s/x")
        assert store.list("s/") == []
        assert store.stat("s/x") is None
        store.create("s/x", b"2")
        assert store.read("s/x") == b"2"

    @pytest.mark.parametrize("key", ODD_KEYS)
    def test_key_with_odd_characters(self, store: ObjectStore, key: str) -> None:
        store.create(key, key.encode())
        with pytest.raises(ObjectExists):
            store.create(key, b"other")
        assert store.read(key) == key.encode()
        assert [stat.key for stat in store.list("odd/")] == [key]

    @pytest.mark.parametrize(
        "key", ["", "/etc/passwd", "../x", "a/../../x", "a/./b", "a//b", "a/", "a\\..\\b", "a\0b", "a\nb"]
    )
    def test_key_that_could_leave_the_root_is_refused(self, store: ObjectStore, key: str) -> None:
        for call in (store.read, store.stat, store.delete):
            with pytest.raises(KeyRefused):
                call(key)
        with pytest.raises(KeyRefused):
            store.create(key, b"")
        with pytest.raises(KeyRefused):
            store.replace(key, b"")

    @pytest.mark.parametrize("prefix", ["a", "../", "/", "a//", "a/../"])
    def test_prefix_that_could_leave_the_root_is_refused(self, store: ObjectStore, prefix: str) -> None:
        with pytest.raises(KeyRefused):
            store.list(prefix)
        with pytest.raises(KeyRefused):
            store.children(prefix)

    def test_pickled_store_is_the_same_place(self, store: ObjectStore) -> None:
        store.create("x", b"1")
        again: ObjectStore = pickle.loads(pickle.dumps(store))
        assert again.url == store.url
        assert again.read("x") == b"1"

    def test_threads_share_a_store(self, store: ObjectStore) -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda n: store.create(f"t/{n:02d}", str(n).encode()), range(40)))
            read = list(pool.map(lambda n: store.read(f"t/{n:02d}"), range(40)))
        assert read == [str(n).encode() for n in range(40)]

    def test_sixteen_threads_create_one_key_and_one_wins(self, store: ObjectStore) -> None:
        def attempt(number: int) -> bool:
            try:
                store.create("race", str(number).encode())
            except ObjectExists:
                return False
            return True

        with ThreadPoolExecutor(16) as pool:
            won = [number for number, result in enumerate(pool.map(attempt, range(16))) if result]
        assert [store.read("race")] == [str(number).encode() for number in won]

    def test_inside_a_running_event_loop(self, store: ObjectStore) -> None:
        async def work() -> list[bytes]:
            store.create("loop/1", b"1")
            await asyncio.to_thread(store.create, "loop/2", b"2")
            return [store.read(stat.key) for stat in store.list("loop/")]

        assert asyncio.run(work()) == [b"1", b"2"]
        assert asyncio.run(work_again(store)) == [b"1", b"2"]

    def test_objects_are_read_in_the_order_asked(self, store: ObjectStore) -> None:
        for number in range(30):
            store.create(f"o/{number:02d}", bytes([number]) * number)
        wanted = store.list("o/")[::-1]
        assert [(stat.key, data) for stat, data in read_in_order(store, wanted)] == [
            (f"o/{number:02d}", bytes([number]) * number) for number in reversed(range(30))
        ]

    def test_a_reader_that_stops_early_leaves_nothing_running(self, store: ObjectStore) -> None:
        for number in range(30):
            store.create(f"o/{number:02d}", b"x")
        reading = read_in_order(store, store.list("o/"))
        assert next(reading)[1] == b"x"
        reading.close()
        store.create("o/after", b"y")
        assert store.read("o/after") == b"y"


async def work_again(store: ObjectStore) -> list[bytes]:
    return [store.read(stat.key) for stat in store.list("loop/")]
