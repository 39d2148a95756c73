"""The differences of two lists of lines, as Myers' linear-space bisection finds them.

The bisection decides which of several shortest scripts comes out, and with that the bytes of a change record: common
ends are cut off first, then the middle snake splits what is left. The work grows with the product of length and
difference, so it has a limit: two files of 5,000 lines without one in common would take half a minute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["MAX_STEPS", "LineHunk", "TooDifferent", "line_hunks"]

CONTEXT = 3
MAX_STEPS = 16_000_000
"""Some four seconds of work: two files of 3,500 lines without one in common."""


class TooDifferent(Exception):
    """The two lists would take more steps to compare than are allowed."""


class LineHunk(NamedTuple):
    """One hunk of a unified diff. A side without lines starts one line earlier, at 0 in an empty file."""

    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    lines: list[str]


class _Block(NamedTuple):
    """Old lines from `old` to `old_end` gave way to new ones from `new` to `new_end`."""

    old: int
    old_end: int
    new: int
    new_end: int


def line_hunks(old: Sequence[str], new: Sequence[str], max_steps: int = MAX_STEPS) -> list[LineHunk]:
    """The hunks that turn `old` into `new`, with three lines around each change; none when they are equal.

    Raises `TooDifferent` beyond `max_steps`.
    """
    hunks: list[LineHunk] = []
    group: list[_Block] = []
    for block in _blocks(old, new, max_steps):
        if group and block.old - group[-1].old_end > 2 * CONTEXT:
            hunks.append(_hunk(old, new, group))
            group = []
        group.append(block)
    if group:
        hunks.append(_hunk(old, new, group))
    return hunks


def _hunk(old: Sequence[str], new: Sequence[str], group: list[_Block]) -> LineHunk:
    before = min(CONTEXT, group[0].old)
    after = min(CONTEXT, len(old) - group[-1].old_end)
    old_start, old_end = group[0].old - before, group[-1].old_end + after
    new_start, new_end = group[0].new - before, group[-1].new_end + after
    lines: list[str] = []
    position = old_start
    for block in group:
        lines += [" " + line for line in old[position : block.old]]
        lines += ["-" + line for line in old[block.old : block.old_end]]
        lines += ["+" + line for line in new[block.new : block.new_end]]
        position = block.old_end
    lines += [" " + line for line in old[position:old_end]]
    old_lines, new_lines = old_end - old_start, new_end - new_start
    return LineHunk(
        old_start + (1 if old_lines else 0), old_lines, new_start + (1 if new_lines else 0), new_lines, lines
    )


def _blocks(old: Sequence[str], new: Sequence[str], steps: int) -> list[_Block]:
    """Maximal changed blocks in order."""
    numbers: dict[str, int] = {}
    a = [numbers.setdefault(line, len(numbers)) for line in old]
    b = [numbers.setdefault(line, len(numbers)) for line in new]
    removed, added = bytearray(len(a)), bytearray(len(b))
    waiting = [(0, len(a), 0, len(b))]
    while waiting:
        i, i_end, j, j_end = waiting.pop()
        while i < i_end and j < j_end and a[i] == b[j]:
            i, j = i + 1, j + 1
        while i < i_end and j < j_end and a[i_end - 1] == b[j_end - 1]:
            i_end, j_end = i_end - 1, j_end - 1
        if i == i_end or j == j_end:
            removed[i:i_end] = b"\1" * (i_end - i)
            added[j:j_end] = b"\1" * (j_end - j)
            continue
        x, y, steps = _middle(a, i, i_end, b, j, j_end, steps)
        waiting += [(i, x, j, y), (x, i_end, y, j_end)]
    return _gather(removed, added)


def _gather(removed: bytearray, added: bytearray) -> list[_Block]:
    blocks: list[_Block] = []
    i = j = 0
    while i < len(removed) or j < len(added):
        start_i, start_j = i, j
        while i < len(removed) and removed[i]:
            i += 1
        while j < len(added) and added[j]:
            j += 1
        if i > start_i or j > start_j:
            blocks.append(_Block(start_i, i, start_j, j))
        else:
            i, j = i + 1, j + 1
    return blocks


def _middle(a: list[int], i: int, i_end: int, b: list[int], j: int, j_end: int, steps: int) -> tuple[int, int, int]:
    """A point on a shortest path through the box that is neither of its corners, and the steps that are left; both ends
    of the box differ."""
    n, m = i_end - i, j_end - j
    delta = n - m
    odd = delta % 2 != 0
    half = (n + m + 1) // 2
    size = 2 * half + 2
    forward, backward = [0] * size, [0] * size
    for d in range(half + 1):
        steps -= 2 * (d + 1)
        if steps < 0:
            raise TooDifferent
        for k in range(-d, d + 1, 2):
            x = forward[k + 1] if k == -d or (k != d and forward[k - 1] < forward[k + 1]) else forward[k - 1] + 1
            y = x - k
            while 0 <= x < n and 0 <= y < m and a[i + x] == b[j + y]:
                x, y = x + 1, y + 1
            forward[k] = x
            if odd and -(d - 1) <= delta - k <= d - 1 and x + backward[delta - k] >= n:
                return i + x, j + y, steps
        for k in range(-d, d + 1, 2):
            x = backward[k + 1] if k == -d or (k != d and backward[k - 1] < backward[k + 1]) else backward[k - 1] + 1
            y = x - k
            while 0 <= x < n and 0 <= y < m and a[i_end - 1 - x] == b[j_end - 1 - y]:
                x, y = x + 1, y + 1
            backward[k] = x
            if not odd and -d <= delta - k <= d and x + forward[delta - k] >= n:
                return i_end - x, j_end - y, steps
    raise AssertionError("two paths that fill the box meet")
