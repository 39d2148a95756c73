"""Where the parent of an old client's fork is found: in the source or landed, the longer of both, in whatever way, at
whatever time and on whatever machine it came.
"""

from __future__ import annotations

from typing import Any

import pytest
import zstandard

from tests.codex_forks import CREATED, HOUR, Forks, answer, at, meta, prompt
from tests.memory_store import MemoryStore

A = "01a19b8a-7238-7001-8a01-51d0c0de000a"
B = "01a19b8a-9000-7001-8a01-51d0c0de000b"
C = "01a19b8b-0000-7001-8a01-51d0c0de000c"
D = "01a19b8c-0000-7001-8a01-51d0c0de000d"
Row = dict[str, Any]
FAST, SLOW = [0.1] * 7, [0.1, 0.1, 0.2, 0.2, 3, 3, 3]
"""Seconds at which seven lines are copied: with a pause before a prompt a guess ends the copy there."""


def root(*turns: list[Row]) -> list[Row]:
    """The thread that others are made from, minute by minute of the hour before."""
    rows = [meta(A, timestamp="2026-11-02T08:00:00Z"), *(row for turn in turns for row in turn)]
    return [row | {"timestamp": f"2026-11-02T08:{minute:02}:00Z"} for minute, row in enumerate(rows)]


def made(thread: str, start: float, lines: list[Row], seconds: list[float], own: list[Row], **fields: Any) -> list[Row]:
    """A thread made `start` seconds after nine that copies these lines at these seconds, and half a minute later has
    lines of its own."""
    created = f"2026-11-02T09:{int(start) // 60:02}:00Z"
    first = at(start, meta(thread, timestamp=created, **fields))
    copied = [row | at(start + second, {}) for row, second in zip(lines, seconds, strict=True)]
    return [first, *copied, *(at(start + 30 + second, row) for second, row in enumerate(own))]


def turn(words: str, total: int, last: int | None = None) -> list[Row]:
    return [*prompt(words), *answer(words, total, last)]


def agents(parent: str) -> dict[str, str]:
    """What an old client says of a sub-agent; it does not name the session."""
    return {"parent_thread_id": parent, "forked_from_id": parent}


TWO = root(turn("one", 100), turn("two", 250))
THREE = turn("three", 400)


def fork(seconds: list[float]) -> list[Row]:
    return made(B, 0, TWO, seconds, THREE, forked_from_id=A)


@pytest.fixture
def forks() -> Forks:
    return Forks()


@pytest.mark.parametrize("keeps_times", [False, True])
def test_parent_that_landed_anew_and_is_gone_is_what_landed_last(forks: Forks, keeps_times: bool) -> None:
    middle = fork(SLOW)
    forks.put(B, middle)
    forks.land()  # by a guess
    forks.put(A, TWO)
    forks.land()
    middle += [at(100 + second, row) for second, row in enumerate(turn("four", 900))]
    forks.put(B, middle)
    forks.land()
    assert forks.own(B) == [150, 500]
    forks.drop(B)
    child = made(C, 600, middle, [0.1] * len(middle), turn("five", 1000), forked_from_id=B)
    if keeps_times:
        child[1 : len(middle) + 1] = middle
    forks.put(C, child)
    assert forks.land()[C].marked == []
    assert forks.own(C) == [100]
    assert forks.own(B) == [150, 500]


def test_thinned_copy_of_a_fork_stays_one_when_the_fork_is_gone(forks: Forks) -> None:
    one = root(turn("one", 100, 100))
    middle = made(B, 0, one, [0.1] * 4, turn("two", 250, 150), forked_from_id=A)
    thin = [row for row in middle if row["payload"].get("role") != "assistant"]
    for thread, lines in ((A, one), (B, middle), (C, made(C, 60, thin, [0.1] * len(thin), [], **agents(B)))):
        forks.put(thread, lines)
    forks.land()
    counted = [(A, "main", 100), (B, "main", 150)]
    assert forks.counted() == counted
    forks.drop(B)
    forks.land()
    assert forks.counted() == counted
    assert not [key for key in forks.zone.cursors(B) if "~" in key.key]


@pytest.mark.parametrize("is_damaged", [False, True])
def test_landed_parent_that_begins_with_copies_itself(forks: Forks, is_damaged: bool) -> None:
    one = root(turn("one", 100))
    middle = made(B, 0, one, [0.1] * 4, turn("two", 250), forked_from_id=A)
    forks.put(A, one)
    forks.put(B, middle)
    if is_damaged:
        lines = forks.source.objects[forks.key(B)].split(b"\n")
        lines.insert(3, b'{"timestamp":"2026-11-02T09:00:00.100Z","type":"respon')
        forks.source.objects[forks.key(B)] = b"\n".join(lines)
    forks.land()
    forks.drop(B)
    forks.put(C, made(C, 60, middle, [0.1] * len(middle), THREE, forked_from_id=B))
    forks.land()
    assert (forks.own(B), forks.own(C)) == ([150], [150])


@pytest.mark.parametrize("seconds", [FAST, SLOW])
@pytest.mark.parametrize("how", ["truncated", "cut", "gone"])
def test_rollout_that_lost_its_end_takes_nothing_back(forks: Forks, how: str, seconds: list[float]) -> None:
    forks.put(A, TWO)
    forks.put(B, fork(seconds))
    forks.land()
    assert forks.own(B) == [150]
    if how == "truncated":
        forks.put(A, TWO[:4])
    else:
        lines = forks.source.objects[forks.key(A)].splitlines(keepends=True)
        forks.drop(A)
        if how == "cut":
            frames = [zstandard.compress(line) for line in lines]
            forks.source.objects[forks.key(A) + ".zst"] = b"".join(frames[:4]) + frames[4][:5]
    outcome = forks.land()[B]
    assert (forks.own(B), outcome.marked) == ([150], [])


def test_parent_that_never_landed_and_lost_its_end_takes_nothing_back(forks: Forks) -> None:
    forks.put(A, TWO)
    forks.put(B, fork(SLOW))
    forks.land(only=B)
    assert forks.counted() == [(B, "main", 150)]
    forks.put(A, TWO[:4])
    assert forks.land(only=B)[B].marked == []
    assert forks.counted() == [(B, "main", 150)]


@pytest.mark.parametrize("seconds", [FAST, SLOW])
def test_older_copy_of_the_parent_on_another_machine_takes_nothing_back(forks: Forks, seconds: list[float]) -> None:
    forks.put(A, TWO)
    forks.put(B, fork(seconds))
    forks.land()
    other = forks.elsewhere("other")
    other.put(A, TWO[:4])
    other.put(B, fork(seconds))
    for machine in (other, forks, other):
        machine.land()
        assert forks.own(B) == [150]
    assert [cursor.prefix for cursor in forks.zone.cursors(B)] == ["transcript"]


@pytest.mark.parametrize("seconds", [FAST, SLOW])
def test_longer_parent_on_another_machine_is_the_one_that_is_asked(forks: Forks, seconds: list[float]) -> None:
    forks.put(A, TWO)
    forks.land()
    other = forks.elsewhere("other")
    other.put(A, TWO[:4])
    other.put(B, fork(seconds))
    other.land()
    assert forks.own(B) == [150]


def test_fork_is_looked_at_again_when_its_parent_has_grown_on_another_machine(forks: Forks) -> None:
    forks.put(A, TWO[:4])
    forks.land()
    other = forks.elsewhere("other")
    other.put(B, fork(SLOW))
    assert other.land()[B].marked == []
    assert forks.own(B) == [150, 150]  # the copying paused just where what has landed of the parent ends
    forks.put(A, TWO)
    forks.land()
    other.land()
    assert forks.own(B) == [150]
    assert other.land()[B].unchanged


@pytest.mark.parametrize("is_packed", [False, True])
def test_pass_in_which_nothing_is_new_changes_nothing(forks: Forks, is_packed: bool) -> None:
    forks.put(A, TWO, packed=is_packed)
    forks.put(B, fork(SLOW), packed=is_packed)
    forks.land()
    store = forks.store
    assert isinstance(store, MemoryStore)
    before = dict(store.objects)
    assert all(outcome.unchanged for outcome in forks.land().values())
    assert store.objects == before


@pytest.mark.parametrize("known", [0, 6])
def test_turn_of_the_parent_in_the_second_of_the_making_is_told_when_it_is_there(forks: Forks, known: int) -> None:
    def task(kind: str, name: str, started: int) -> Row:
        payload = {"type": f"task_{kind}", "turn_id": name, "started_at": CREATED // 1_000_000_000 + started}
        return {"type": "event_msg", "payload": payload}

    parent = [
        at(0, meta(A, timestamp="2026-11-02T08:58:00Z")) | {"timestamp": "2026-11-02T08:58:00Z"},
        *(
            row | {"timestamp": "2026-11-02T08:59:00Z"}
            for row in (task("started", "1", -60), *prompt("one"), *answer("one", 100, 100), task("complete", "1", -60))
        ),
        *(at(0.1, row) for row in (task("started", "2", 0), *prompt("two"), *answer("two", 250, 150))),
        at(0.5, task("complete", "2", 0)),
    ]
    own = [task("started", "3", 30), *prompt("three"), *answer("three", 400, 150), task("complete", "3", 30)]
    if known:
        forks.put(A, parent[:known])
    forks.put(B, made(B, 0.7, parent, [0.1] * len(parent), own, forked_from_id=A))
    forks.land()
    forks.put(A, parent)
    assert forks.land()[B].marked == []
    assert forks.own(B) == [150]


def family() -> dict[str, list[Row]]:
    """A root, its sub-agent, a sub-agent of that, and one of that, of a client that names no session."""
    lines = {A: root(turn("one", 100))}
    lines[B] = made(B, 0, lines[A], [0.1] * 4, turn("two", 250), **agents(A))
    lines[C] = made(C, 60, lines[B], [0.1] * 5 + [2.0] * 3, THREE, **agents(B))
    copied = lines[C]
    seconds = [1.2 * place for place in range(1, len(copied) + 1)]
    lines[D] = made(D, 120, copied, seconds, turn("four", 900), **agents(C))
    return lines


USED = [(A, B, 150), (A, C, 150), (A, D, 500), (A, "main", 100)]


@pytest.mark.parametrize("first", [[C], [A, C], [D], [D, C], [B, D], [A, B, C]])
def test_sub_agents_of_sub_agents_are_in_one_session_whichever_comes_first(forks: Forks, first: list[str]) -> None:
    lines = family()
    for thread in first:
        forks.put(thread, lines[thread])
    forks.land()
    for thread, rows in lines.items():
        forks.put(thread, rows)
    forks.land()
    assert forks.counted() == USED
    assert forks.zone.sessions() == [A]


@pytest.mark.parametrize("gone", [B, C])
def test_sub_agent_stays_where_it_landed_when_the_one_between_is_gone(forks: Forks, gone: str) -> None:
    lines = family()
    last = lines.pop(D)
    for thread, rows in lines.items():
        forks.put(thread, rows)
    forks.land()
    forks.drop(gone)
    forks.put(D, last)
    outcomes = forks.land()
    assert (list(outcomes), outcomes[A].marked) == ([A], [])
    assert forks.counted() == USED
    assert forks.zone.sessions() == [A]


def test_thread_that_names_no_parent_of_its_parent_stays_in_the_session_it_has_landed_in(forks: Forks) -> None:
    lines = family()
    alone = [lines[C][0], *(at(90 + second, row) for second, row in enumerate(turn("three", 150, 150)))]
    forks.put(C, alone)
    forks.land()
    assert forks.zone.sessions() == [B]  # nothing says whose sub-agent that is
    for thread in (A, B):
        forks.put(thread, lines[thread])
    forks.land()
    assert forks.counted() == [(A, B, 150), (A, "main", 100), (B, C, 150)]


@pytest.mark.parametrize("is_gone", [False, True])
def test_line_that_was_too_long_to_land_is_left_out_on_both_sides(forks: Forks, is_gone: bool) -> None:
    payload = {"type": "function_call_output", "call_id": "c1", "output": "x" * 5000}
    long: Row = {"type": "response_item", "payload": payload}
    parent = root([*prompt("one"), long, *answer("one", 100)], turn("two", 250))
    sizes: dict[str, Any] = {"max_line_bytes": 1000, "max_delta_bytes": 500}
    forks.put(A, parent)
    forks.land(**sizes)
    if is_gone:
        forks.drop(A)
    seconds = [0.1] * 5 + [1.3] * 3
    forks.put(B, made(B, 0, parent, seconds, THREE, forked_from_id=A))
    outcome = forks.land(CREATED + HOUR, **sizes)[B]
    assert (outcome.waiting, outcome.marked) == ([], [])
    assert forks.own(B) == [150]
