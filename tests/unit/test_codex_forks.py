"""Forks of old clients whose parents are not at hand: they wait, then land by a guess, which is marked, looked at again
and corrected as far as evidence that is never taken back allows.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.zone import Zone
from tests.codex_forks import CHILD, CREATED, DAY, HOUR, LATER, PARENT, Forks, answer, at, meta, prompt
from tests.command import Command
from tests.memory_store import Killed, MemoryStore, killing

KILLED_EVERY = int(os.environ.get("FORKS_KILLED_EVERY", "23"))
Row = dict[str, Any]
OLD = [
    meta(PARENT, timestamp="2026-11-02T08:00:00Z"),
    *prompt("one"),
    *answer("1", 100),
    *prompt("two"),
    *answer("2", 250),
]
TWO = [("one", "1"), ("two", "2")]
OWN = [*prompt("three"), *answer("3", 400)]


def parent(*more: Row) -> list[Row]:
    return [at(-1, row) | {"timestamp": f"2026-11-02T08:{place:02}:00Z"} for place, row in enumerate([*OLD, *more])]


def fork(seconds: list[float], *own: tuple[float, Row], first: Row | None = None) -> list[Row]:
    """A fork with a copy that is written at these seconds, and lines of its own."""
    copies = [at(second, row) for second, row in zip(seconds, OLD, strict=True)]
    return [at(0, first or meta(CHILD, forked_from_id=PARENT)), *copies, *(at(second, row) for second, row in own)]


def right(*more: tuple[float, Row]) -> list[Row]:
    """A fork in which the pause tells rightly where its own lines begin."""
    return fork([0.1] * len(OLD), *((30 + place, row) for place, row in enumerate(OWN)), *more)


def early() -> list[Row]:
    """A fork whose copying took seconds, so that the second prompt of the copy comes after a pause."""
    return fork([0.1, 0.1, 0.2, 0.2, 3, 3, 3], *((30 + place, row) for place, row in enumerate(OWN)))


def late() -> list[Row]:
    """A fork whose own first prompt came at once, and its second after a pause."""
    more = [*prompt("four"), *answer("4", 600)]
    return fork(
        [0.1] * len(OLD),
        (0.5, OWN[0]),
        (5, OWN[1]),
        (5.1, OWN[2]),
        *((60 + place, row) for place, row in enumerate(more)),
    )


@pytest.fixture
def forks() -> Forks:
    return Forks()


def test_fork_waits_for_its_parent_and_then_lands_as_it_is(forks: Forks) -> None:
    forks.put(CHILD, early())
    outcome = forks.land(CREATED + HOUR)[CHILD]
    (waiting,) = outcome.waiting
    assert waiting.held
    assert f"its parent {PARENT} is not at hand" in waiting.detail
    assert "it lands by that in 23 h 0 min" in waiting.detail
    assert (outcome.files, outcome.problem_count, forks.zone.landed_files(CHILD)) == (0, 0, [])
    forks.put(PARENT, parent())
    outcomes = forks.land(CREATED + 2 * HOUR)
    assert (outcomes[CHILD].waiting, outcomes[CHILD].marked) == ([], [])
    assert forks.conversation() == [("three", "3")]
    assert forks.counted() == [(PARENT, "main", 100), (PARENT, "main", 150), (CHILD, "main", 150)]
    assert forks.flags() == set()
    assert all(each.unchanged for each in forks.land().values())


@pytest.mark.parametrize(
    ("now", "parent_wait", "is_held"),
    [
        (CREATED + DAY - HOUR, 86_400, True),
        (CREATED + DAY, 86_400, False),
        (CREATED, 0, False),
        (CREATED + HOUR, 7_200, True),
        (CREATED - HOUR, 86_400, True),  # the clocks of two machines differ
        (CREATED - 2 * DAY, 86_400, False),  # the pass has a clock of its own, which says nothing of this archive
    ],
)
def test_how_long_a_fork_waits_follows_from_its_own_words_and_the_clock_of_the_pass(
    forks: Forks, now: int, parent_wait: int, is_held: bool
) -> None:
    forks.put(CHILD, right())
    outcome = forks.land(now, parent_wait=parent_wait)[CHILD]
    assert ([each.held for each in outcome.waiting], outcome.files) == (([True], 0) if is_held else ([], 1))


def test_fork_whose_parent_never_comes_lands_by_a_guess_that_is_marked_in_every_pass(forks: Forks) -> None:
    forks.put(CHILD, right())
    for now in (LATER, LATER + DAY):
        (mark,) = forks.land(now)[CHILD].marked
        assert (mark.file, mark.mark) == (forks.key(CHILD), "replay_guessed")
    assert forks.conversation() == [("three", "3")]
    assert forks.own() == [150]
    assert [each.ord for each in forks.records(CHILD) if "replay_guessed" in each.flags] == [2]


def test_guess_that_was_right_is_settled_when_the_parent_comes(forks: Forks) -> None:
    forks.put(CHILD, right())
    forks.land()
    landed = forks.zone.landed_files(CHILD)
    assert forks.own() == [150]
    forks.put(PARENT, parent())
    assert forks.land()[CHILD].marked == []
    assert forks.zone.landed_files(CHILD) == landed
    assert forks.own() == [150]
    assert all(each.unchanged for each in forks.land().values())


def test_copies_that_a_guess_took_for_the_forks_own_are_taken_back(forks: Forks) -> None:
    forks.put(CHILD, early())
    forks.land()
    assert forks.own() == [150, 150]  # the parent's second call, as if it were the fork's own
    assert forks.conversation() == [("two", "2"), ("three", "3")]
    forks.put(PARENT, parent())
    outcome = forks.land()[CHILD]
    assert (outcome.files, outcome.marked, outcome.problem_count) == (1, [], 0)
    assert forks.counted() == [(PARENT, "main", 100), (PARENT, "main", 150), (CHILD, "main", 150)]
    assert forks.conversation() == [("three", "3")]
    assert forks.conversation(PARENT) == TWO
    assert forks.flags() == {"replay_guessed", "replay_corrected"}
    assert all(each.unchanged for each in forks.land().values())


def test_lines_of_its_own_that_a_guess_took_for_copies_land_in_their_place(forks: Forks) -> None:
    forks.put(CHILD, late())
    forks.land()
    assert forks.own() == [200]
    assert forks.conversation() == [("four", "4")]
    forks.put(PARENT, parent())
    forks.land()
    assert forks.own() == [150, 200]
    assert forks.conversation() == [("three", "3"), ("four", "4")]
    assert forks.texts(CHILD) == ["four", "three", "four"]  # each once by its id


@pytest.mark.parametrize("lines", [right(), early(), late()])
@pytest.mark.parametrize("max_delta_bytes", [150, 2_000_000])
def test_what_is_corrected_is_what_would_have_landed_with_the_parent(lines: list[Row], max_delta_bytes: int) -> None:
    together, after = Forks(), Forks()
    for each in (together, after):
        each.put(CHILD, lines)
    after.land(max_delta_bytes=max_delta_bytes)
    after.counted()
    for each in (together, after):
        each.put(PARENT, parent())
        each.land(max_delta_bytes=max_delta_bytes)
        grown = [*lines, *(at(120 + place, row) for place, row in enumerate([*prompt("five"), *answer("5", 900)]))]
        each.counted()
        each.put(CHILD, grown)
        each.land(max_delta_bytes=max_delta_bytes)
    assert after.counted() == together.counted()
    assert after.conversation() == together.conversation()
    assert ("five", "5") in after.conversation()


def test_correction_counts_when_all_of_it_has_landed_and_not_before(forks: Forks) -> None:
    more = [row for number in range(60) for row in [*prompt("more"), *answer("m", 500 + 100 * number)]]
    forks.put(CHILD, [*early(), *(at(60 + place, row) for place, row in enumerate(more))])
    forks.land()
    guessed = forks.own()
    forks.put(PARENT, parent())
    forks.land(max_delta_bytes=300)  # a line or two a file, of which a pass lands so many
    assert len(forks.records(CHILD)) < 2 * (len(early()) + len(more))
    assert forks.own() == guessed
    while not forks.land(max_delta_bytes=300)[CHILD].unchanged:
        pass
    assert len(forks.own()) == len(guessed) - 1


def test_fork_that_grows_by_a_guess_goes_on_as_it_began(forks: Forks) -> None:
    lines = early()
    forks.put(CHILD, lines[:6])
    forks.land()
    forks.put(CHILD, lines)
    assert [each.mark for each in forks.land()[CHILD].marked] == ["replay_guessed"]
    assert forks.conversation() == [("two", "2"), ("three", "3")]
    forks.put(PARENT, parent())
    forks.land()
    assert forks.conversation() == [("three", "3")]
    assert forks.own() == [150]


def test_fork_that_grows_while_it_waits_waits_on(forks: Forks) -> None:
    lines = right()
    for end in range(1, len(lines) + 1):
        forks.put(CHILD, lines[:end])
        assert forks.land(CREATED + HOUR)[CHILD].files == (end == 1)  # its own first line is no copy of anything
    forks.put(PARENT, parent())
    forks.land(CREATED + HOUR)
    assert forks.conversation() == [("three", "3")]


@pytest.mark.parametrize("lines", [right(), early(), late()])
def test_thread_knows_where_its_copy_ended_when_its_parent_is_gone_again(forks: Forks, lines: list[Row]) -> None:
    forks.put(PARENT, parent())
    forks.put(CHILD, lines)
    forks.land()
    expected = forks.counted()
    forks.drop(PARENT)
    more = [*prompt("five"), *answer("5", 900)]
    forks.put(CHILD, [*lines, *(at(120 + place, row) for place, row in enumerate(more))])
    assert forks.land(CREATED + HOUR)[CHILD].waiting == []
    assert forks.conversation()[-1] == ("five", "5")
    assert len(forks.counted()) == len(expected) + 1
    assert forks.conversation()[0] == ("three", "3")


@pytest.mark.parametrize("lines", [right(), early(), late()])
def test_parent_that_has_landed_before_is_at_hand_though_its_rollout_is_gone(forks: Forks, lines: list[Row]) -> None:
    forks.put(PARENT, parent())
    forks.land(CREATED + HOUR)
    forks.drop(PARENT)
    forks.put(CHILD, lines)
    assert forks.land()[CHILD].waiting == []
    assert forks.conversation()[0] == ("three", "3")
    assert forks.own()[0] == 150


def test_fork_that_goes_on_in_the_moment_in_which_its_parents_lines_end_waits_for_more_of_them(forks: Forks) -> None:
    forks.put(PARENT, parent())
    forks.put(CHILD, late())
    (waiting,) = forks.land(CREATED + HOUR)[CHILD].waiting
    assert "it goes on at once where the lines of its parent end" in waiting.detail
    assert [each.mark for each in forks.land()[CHILD].marked] == ["replay_guessed"]
    forks.put(PARENT, [*parent(), *(at(600 + place, row) for place, row in enumerate(prompt("elsewhere")))])
    assert forks.land()[CHILD].marked == []
    assert forks.own() == [150, 200]


@pytest.mark.parametrize("damage", ["packed", "archived", "middle", "unreadable"])
def test_parent_lies_packed_archived_or_damaged(forks: Forks, damage: str) -> None:
    forks.put(CHILD, early())
    if damage == "packed":
        forks.put(PARENT, parent(), packed=True)
    elif damage == "archived":
        forks.put(PARENT, parent(), folder="archived_sessions", packed=True)
    elif damage == "middle":
        forks.put(PARENT, parent())
        first, *rest = forks.source.objects[forks.key(PARENT)].splitlines(keepends=True)
        forks.source.objects[forks.key(PARENT)] = b"".join([first, b'{"timestamp":"20\n', *rest])
    else:
        forks.source.objects[forks.key(PARENT) + ".zst"] = b"no frame"
        forks.land(CREATED + HOUR)
        assert forks.zone.landed_files(CHILD) == []
        forks.put(PARENT, parent())
    forks.land(CREATED + HOUR)
    assert forks.conversation() == [("three", "3")]
    assert forks.own() == [150]


def test_parent_that_went_on_with_the_same_words_does_not_swallow_the_forks_own(forks: Forks) -> None:
    forks.put(CHILD, right())
    forks.put(PARENT, [*parent(), *(at(600 + place, row) for place, row in enumerate(OWN))])
    forks.land(CREATED + HOUR)
    assert forks.conversation() == [("three", "3")]
    assert forks.own() == [150]


def test_parent_of_which_only_a_beginning_is_there_is_asked_again_when_it_has_grown(forks: Forks) -> None:
    forks.put(PARENT, parent()[:5])  # an older copy of it
    forks.put(CHILD, right())
    assert [each.mark for each in forks.land()[CHILD].marked] == ["replay_guessed"]
    assert forks.own() == [150, 150]
    forks.put(PARENT, parent())
    assert forks.land()[CHILD].marked == []
    assert forks.own() == [150]
    assert forks.conversation() == [("three", "3")]


def test_fork_of_a_fork_waits_for_the_thread_it_was_made_from(forks: Forks) -> None:
    middle = "01a19b8a-9000-7001-8a01-51d0c0de0001"
    between = [*parent(), *(at(2 + place, row) for place, row in enumerate([*prompt("between"), *answer("b", 300)]))]
    first = at(1, meta(middle, forked_from_id=PARENT))
    copied = [row | at(60 + 2 * place, {}) for place, row in enumerate([first, *between])]
    own = [at(120 + place, row) for place, row in enumerate(OWN)]
    forks.put(CHILD, [at(60, meta(CHILD, forked_from_id=middle)), *copied, *own])
    forks.put(PARENT, parent())
    assert [each.held for each in forks.land(CREATED + HOUR)[CHILD].waiting] == [True]
    forks.land()
    assert len(forks.own()) > 1
    forks.put(middle, [first, *between])
    forks.land()
    assert forks.own() == [100]
    assert forks.conversation() == [("three", "3")]
    assert forks.own(middle) == [50]


@pytest.mark.parametrize("is_thinned", [False, True])
def test_sub_agent_of_an_old_client_is_corrected_in_its_stream(forks: Forks, is_thinned: bool) -> None:
    first = meta(CHILD, forked_from_id=PARENT, parent_thread_id=PARENT)
    lines = fork([0.1, 0.1, 0.2, 0.2, 3, 3, 3], *((30 + place, row) for place, row in enumerate(OWN)), first=first)
    if is_thinned:
        lines = [
            row for row in lines if row["payload"].get("role") != "assistant" or row["payload"] == OWN[1]["payload"]
        ]
    forks.put(CHILD, lines)
    outcome = forks.land()[PARENT]
    assert [each.mark for each in outcome.marked] == ["replay_guessed"]
    assert len(forks.counted()) == 2
    forks.put(PARENT, parent())
    assert forks.land()[PARENT].marked == []
    assert forks.counted() == [(PARENT, CHILD, 150), (PARENT, "main", 100), (PARENT, "main", 150)]
    assert forks.conversation(PARENT) == TWO


def test_tool_calls_that_land_anew_have_one_result_each(forks: Forks) -> None:
    def tool(name: str) -> list[Row]:
        call = {"type": "function_call", "name": "shell", "call_id": name, "arguments": "{}"}
        output = {"type": "function_call_output", "call_id": name, "output": "Exit code: 0"}
        return [{"type": "response_item", "payload": payload} for payload in (call, output)]

    lines = late()
    lines[9:9] = [at(4, row) for row in tool("mine")]
    lines[-2:-2] = [at(60.5, row) for row in tool("last")]
    forks.put(CHILD, lines)
    forks.land()
    forks.put(PARENT, parent())
    forks.land()
    assert forks.conversation() == [("three", "3"), ("four", "4")]
    view = forks.zone.chain(CHILD).fold()
    assert view.unresolved == {}
    assert {name for name in view.nodes if name.startswith("tool/")} == {"tool/mine", "tool/last"}


def test_turns_of_which_only_the_second_tells_whose_they_are_wait_as_well(forks: Forks) -> None:
    def turn(name: str, started_at: int) -> Row:
        return {"type": "event_msg", "payload": {"type": "task_started", "turn_id": name, "started_at": started_at}}

    made = CREATED // 1_000_000_000
    lines = [meta(CHILD, forked_from_id=PARENT), OLD[0], turn("t1", made), *OLD[1:4], turn("t2", made + 9), *OWN]
    forks.put(CHILD, [at(0, row) for row in lines])
    assert [each.held for each in forks.land(CREATED + HOUR)[CHILD].waiting] == [True]
    forks.put(PARENT, [at(0, row) for row in (OLD[0], turn("t1", made), *OLD[1:4])])
    assert forks.land(CREATED + HOUR)[CHILD].marked == []
    assert forks.texts(CHILD) == ["three"]


def test_turns_that_can_only_be_its_own_need_no_parent(forks: Forks) -> None:
    own = {"type": "event_msg", "payload": {"type": "task_started", "turn_id": "01a19b8b-0001-7001-8a01-51d0c0de0000"}}
    forks.put(CHILD, fork([0.1] * len(OLD), (1, own), *((2 + place, row) for place, row in enumerate(OWN))))
    outcome = forks.land(CREATED + HOUR)[CHILD]
    assert (outcome.waiting, outcome.marked) == ([], [])
    assert forks.texts(CHILD) == ["three"]


def corrected_by_turns(lines: list[Row]) -> Forks:
    """A fork that has landed by a guess in several files, and was counted; now its parent is there."""
    forks = Forks()
    forks.put(CHILD, lines)
    forks.land(max_delta_bytes=400)
    forks.counted()
    forks.put(PARENT, parent())
    return forks


@pytest.mark.parametrize("lines", [early(), late()])
def test_collector_that_is_killed_at_any_call_leaves_a_correction_that_the_next_completes(lines: list[Row]) -> None:
    whole = corrected_by_turns(lines)
    whole.land(max_delta_bytes=400)
    expected, conversation = whole.counted(), whole.conversation()
    for call in range(1, 1000, KILLED_EVERY):
        forks = corrected_by_turns(lines)
        assert isinstance(forks.store, MemoryStore)
        living, forks.zone = forks.zone, Zone(forks.store.beside(killing(call)))
        try:
            forks.land(max_delta_bytes=400)
        except Killed:
            forks.zone = living
        else:
            break
        forks.counted()  # whatever it is, a data set built anew has the same
        forks.land(max_delta_bytes=400)
        assert forks.counted() == expected
        assert [ref.seq for ref in forks.zone.landed_files(CHILD)] == list(
            range(1, len(whole.zone.landed_files(CHILD)) + 1)
        )
        assert forks.conversation() == conversation
    assert call > 40


@pytest.mark.parametrize("lines", [early(), late()])
@pytest.mark.parametrize("call", range(3, 60, 19))
def test_collectors_of_which_only_one_has_the_parent_come_to_the_same(lines: list[Row], call: int) -> None:
    forks, other = Forks(), Forks()
    other.source.url = "memory-2"
    for each in (forks, other):
        each.put(CHILD, lines)
    other.put(PARENT, parent())
    assert isinstance(forks.store, MemoryStore)
    other.zone = Zone(forks.store)

    def interrupt() -> None:
        other.land(max_delta_bytes=400)

    store = forks.store.beside(killing(10_000, interrupt, call))
    living, forks.zone = forks.zone, Zone(store)
    forks.land(max_delta_bytes=400)
    forks.zone = living
    forks.counted()
    for _ in range(2):
        other.land(max_delta_bytes=400)
        forks.land(max_delta_bytes=400)
    alone = corrected_by_turns(lines)
    alone.land(max_delta_bytes=400)
    assert forks.counted() == alone.counted()
    assert forks.conversation() == alone.conversation()


WORDS = st.integers(1, 500)
ASKED = st.lists(st.tuples(WORDS, st.sampled_from([0.0, 0.4, 1.5, 9.0])), max_size=3)


@settings(max_examples=int(os.environ.get("FORKS_EXAMPLES", "12")), deadline=None)
@given(st.data())
def test_whatever_comes_when_the_end_is_the_parents_calls_and_the_forks_own(data: st.DataObject) -> None:
    forks = Forks()
    calls: dict[str, list[int]] = {PARENT: [], CHILD: []}
    total, number, second = 0, 0, 0.1

    def ask(thread: str, used: int) -> list[Row]:
        nonlocal total, number
        total, number = total + used, number + 1
        calls[thread].append(used)
        return [*prompt(f"p{number}"), *answer(f"a{number}", total, used)]

    theirs = [row for used, _ in data.draw(ASKED) for row in ask(PARENT, used)]
    copied = [meta(PARENT, timestamp="2026-11-02T08:00:00Z"), *theirs]
    fork_total = total
    is_agents = data.draw(st.booleans())
    lines = [at(0, meta(CHILD, forked_from_id=PARENT, **({"parent_thread_id": PARENT} if is_agents else {})))]
    for row in copied:
        second += data.draw(st.sampled_from([0.0, 0.0, 0.0, 1.2]))
        lines.append(at(second, row))
    for used, pause in data.draw(ASKED):
        for row in ask(CHILD, used):
            second += pause
            lines.append(at(second, row))
    total = fork_total
    went_on = [at(3000, row) for used, _ in data.draw(ASKED) for row in ask(PARENT, used)]
    whole = [row | {"timestamp": f"2026-11-02T08:00:{place:02}Z"} for place, row in enumerate(copied)] + went_on
    parents, own = 0, 0
    for _ in range(data.draw(st.integers(0, 5))):
        parents = data.draw(st.integers(parents, len(whole)))
        own = data.draw(st.integers(own, len(lines)))
        if parents:
            forks.put(PARENT, whole[:parents])
        if own:
            forks.put(CHILD, lines[:own])
        if parents or own:
            forks.land(
                data.draw(st.sampled_from([CREATED + HOUR, LATER])),
                max_delta_bytes=data.draw(st.sampled_from([300, 9000])),
            )
        if data.draw(st.booleans()):
            forks.counted()
        if parents == len(whole) and data.draw(st.booleans()):
            forks.drop(PARENT)
    forks.put(PARENT, whole)
    forks.put(CHILD, lines)
    forks.land()
    forks.land()
    found = forks.counted()
    theirs_and_own = [sorted(used for *at, used in found if (CHILD in at) == is_own) for is_own in (False, True)]
    assert theirs_and_own == [sorted(calls[PARENT]), sorted(calls[CHILD])]
    prompts = [
        each["payload"]["content"][0]["text"]
        for each in lines[1 + len(copied) :]
        if each["payload"].get("role") == "user"
    ]
    if is_agents:
        assert forks.conversation(PARENT) is not None
    else:
        assert [asked for asked, _ in forks.conversation()] == prompts


def test_command_says_what_waits_and_what_was_guessed_and_ends_well(
    sessionmill: Command, forks: Forks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "codex" / forks.key(CHILD)
    path.parent.mkdir(parents=True)
    forks.put(CHILD, right())
    path.write_bytes(forks.source.objects[forks.key(CHILD)])
    command = ("land", tmp_path / "codex", tmp_path / "zone", "--now")
    held = sessionmill(*command, "2026-11-02T10:00:00Z")
    assert held.code == 0
    assert f"{forks.key(CHILD)}: waits: its parent {PARENT} is not at hand" in held.out
    (shown,) = sessionmill(*command, "2026-11-02T10:00:00Z", "--json").json["sessions"]
    assert [each["held"] for each in shown["waiting"]] == [True]
    monkeypatch.setenv("SESSIONMILL_PARENT_WAIT", "30m")
    guessed = sessionmill(*command, "2026-11-02T10:00:00Z")
    assert guessed.code == 0
    assert guessed.out.endswith("no problems; 1 file landed by a guess (--json names them)\n")
    (shown,) = sessionmill(*command, "2026-11-09T10:00:00Z", "--json").json["sessions"]
    assert shown["marked"] == [{"file": forks.key(CHILD), "mark": "replay_guessed"}]


def test_length_of_the_wait_has_to_be_one(
    sessionmill: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESSIONMILL_PARENT_WAIT", "long")
    done = sessionmill("land", tmp_path, tmp_path / "zone")
    assert done.code == 2
    assert "parent_wait" in done.err


@pytest.mark.parametrize("is_counted", [False, True])
def test_rollout_that_was_rewritten_is_a_conflict_and_does_not_land_anew(forks: Forks, is_counted: bool) -> None:
    forks.put(CHILD, early())
    forks.land()
    if is_counted:
        assert forks.own() == [150, 150]
    forks.put(
        CHILD, [*early()[:-3], *(at(40 + place, row) for place, row in enumerate([*prompt("x"), *answer("y", 900)]))]
    )
    forks.put(PARENT, parent())
    for _ in range(2):
        assert [each.rule for each in forks.land()[CHILD].problems] == ["conflict"]
    assert forks.own() == [150, 150]


def test_turn_that_the_parent_had_stays_a_copy_when_the_parent_is_gone(forks: Forks) -> None:
    def turn(name: str) -> Row:
        started = {"type": "task_started", "turn_id": name, "started_at": CREATED // 1_000_000_000 + 5}
        return at(1, {"type": "event_msg", "payload": started})

    copied = [at(1, OLD[0]), turn("t1"), *(at(1, row) for row in OLD[1:4])]
    lines = [at(0, meta(CHILD, forked_from_id=PARENT)), *copied]
    forks.put(PARENT, copied)
    forks.put(CHILD, lines)
    forks.land()
    assert forks.texts(CHILD) == []
    forks.drop(PARENT)
    assert isinstance(forks.store, MemoryStore)
    for key in [key for key in forks.store.objects if key.startswith(f"{PARENT}/")]:
        forks.store.delete(key)  # and so is what had landed of it
    forks.put(CHILD, [*lines, turn("t2"), *(at(2 + place, row) for place, row in enumerate(OWN))])
    forks.land()
    assert forks.texts(CHILD) == ["three"]
    assert [ref.prefix for ref in forks.zone.landed_files(CHILD)] == ["transcript", "transcript"]
