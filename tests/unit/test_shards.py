"""How sessions are divided over tasks."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tasks.shards.plan import MOST_SHARDS, plan_shards

sizes = st.dictionaries(st.text(max_size=6), st.integers(0, 10_000), max_size=300)


def test_small_sessions_share_one_shard() -> None:
    (shard,) = plan_shards({"b": 10, "a": 20}, shard_bytes=100)
    assert (shard.number, shard.sessions, shard.size) == (1, ("a", "b"), 30)


def test_large_session_has_a_shard_to_itself() -> None:
    shards = plan_shards({"large": 100, "a": 30, "b": 30, "c": 30}, shard_bytes=100)
    assert [(shard.sessions, shard.size) for shard in shards] == [(("large",), 100), (("a", "b", "c"), 90)]


def test_session_without_landed_bytes_is_not_forgotten() -> None:
    assert [shard.sessions for shard in plan_shards({"empty": 0}, shard_bytes=100)] == [("empty",)]


def test_no_sessions_need_no_shard() -> None:
    assert plan_shards({}, shard_bytes=100) == []


def test_a_great_archive_makes_no_more_tasks_than_a_server_can_record() -> None:
    shards = plan_shards({f"s{n:05d}": 1000 for n in range(5000)}, shard_bytes=1)
    assert len(shards) == MOST_SHARDS
    assert {len(shard.sessions) for shard in shards} == {25}


@given(sizes, st.integers(1, 20_000))
def test_every_session_is_in_exactly_one_shard(sizes: dict[str, int], shard_bytes: int) -> None:
    shards = plan_shards(sizes, shard_bytes)
    assert sorted(session for shard in shards for session in shard.sessions) == sorted(sizes)
    assert [shard.size for shard in shards] == [sum(sizes[name] for name in shard.sessions) for shard in shards]
    assert len(shards) <= MOST_SHARDS


@given(sizes, st.integers(1, 20_000), st.randoms())
def test_order_of_the_listing_does_not_matter(sizes: dict[str, int], shard_bytes: int, random: Random) -> None:
    shuffled = list(sizes.items())
    random.shuffle(shuffled)
    assert plan_shards(dict(shuffled), shard_bytes) == plan_shards(sizes, shard_bytes)
