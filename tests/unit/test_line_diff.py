"""The line diff: what it says turns one text into the other, with as few changes as there can be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.land.line_diff import LineHunk, TooDifferent, line_hunks

LINES = st.lists(st.sampled_from("abc"), max_size=14)


def applied(old: list[str], hunks: list[LineHunk]) -> list[str]:
    new: list[str] = []
    position = 0
    for hunk in hunks:
        start = hunk.old_start - (1 if hunk.old_lines else 0)
        new += old[position:start]
        assert [line[1:] for line in hunk.lines if line[0] != "+"] == old[start : start + hunk.old_lines]
        new += [line[1:] for line in hunk.lines if line[0] != "-"]
        position = start + hunk.old_lines
    return new + old[position:]


def common(old: list[str], new: list[str]) -> int:
    """Length of the longest common subsequence, by the textbook's table."""
    row = [0] * (len(new) + 1)
    for line in old:
        before = row
        row = [0]
        for column, other in enumerate(new):
            row.append(before[column] + 1 if line == other else max(row[column], before[column + 1]))
    return row[-1]


@given(LINES, LINES)
def test_hunks_turn_the_old_lines_into_the_new_ones(old: list[str], new: list[str]) -> None:
    assert applied(old, line_hunks(old, new)) == new


@given(LINES, LINES)
def test_no_shorter_script_exists(old: list[str], new: list[str]) -> None:
    changed = sum(line[0] != " " for hunk in line_hunks(old, new) for line in hunk.lines)
    assert changed == len(old) + len(new) - 2 * common(old, new)


def test_equal_texts_have_no_hunks() -> None:
    assert line_hunks(["a", "b"], ["a", "b"]) == []


def test_an_empty_side_starts_at_zero() -> None:
    assert line_hunks([], ["a", "b"]) == [LineHunk(0, 0, 1, 2, ["+a", "+b"])]


def test_removed_lines_come_before_added_ones_and_three_lines_stand_around() -> None:
    old = list("123456789")
    new = list("1234x6789")
    assert line_hunks(old, new) == [LineHunk(2, 7, 2, 7, [" 2", " 3", " 4", "-5", "+x", " 6", " 7", " 8"])]


def test_changes_seven_lines_apart_are_two_hunks_and_six_are_one() -> None:
    assert len(line_hunks(list("a1234567b"), list("A1234567B"))) == 2
    assert len(line_hunks(list("a123456b"), list("A123456B"))) == 1


def test_work_has_a_limit() -> None:
    old, new = [f"a{n}" for n in range(300)], [f"b{n}" for n in range(300)]
    assert len(line_hunks(old, new)[0].lines) == 600
    with pytest.raises(TooDifferent):
        line_hunks(old, new, max_steps=10_000)
