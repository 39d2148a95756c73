"""Where long text is broken into lines (Relavium notes, sections 4.5, 4.7 and 4.8).

All three functions take text in UTF-16 units and the indent of its continuation lines, and count in those units. A line
may be broken at a single space, which the break replaces. `width_left` is what the first line has room for.
"""

from __future__ import annotations

import re

__all__ = ["LINE_WIDTH", "fold_block", "fold_flow", "fold_quoted", "step_of"]

LINE_WIDTH = 80
MIN_CONTENT = 20

_BLANK = " \t\n"
_TURNING_POINT = re.compile(r"[ \\\n\t]")


def step_of(indent: int) -> int:
    """How far a continuation line reaches; text that is not longer is never broken."""
    return max(1 + MIN_CONTENT, 1 + LINE_WIDTH - indent)


def fold_flow(text: str, indent: str, key_width: int | None) -> str:
    """A plain or single-quoted scalar of one line, broken where it gets too long.

    ``key_width`` is the width of ``key:`` and a space, on whose line the text begins; None where it begins at the
    indent.
    """
    step = step_of(len(indent))
    if len(text) <= step:
        return text
    folds, end = _first_line(indent, key_width)
    last = 0
    while end < len(text):
        split = _last_split(text, last, end)
        if split < 0:
            split = _next_split(text, max(last, end))
            if split < 0:
                break
        folds.append(split)
        last, end = split, split + step
    return _broken(text, indent, folds, frozenset())


def fold_block(text: str, indent: str) -> str | None:
    """The body of a folded block, its lines already indented; None when a line cannot be kept within the width."""
    step = step_of(len(indent))
    if len(text) <= step:
        return text
    folds, end = _first_line(indent, len(indent))
    start = _skip_more_indented(text, -1, len(indent))
    if start != -1:
        end = start + step
    position = start
    while True:
        newline = text.find("\n", position + 1)
        stop = len(text) if newline < 0 else newline
        last = max(position, 0)
        end = max(end, position + 1)
        while end < stop:
            split = _last_split(text, last, end)
            if split < 0:
                return None
            folds.append(split)
            last, end = split, split + step
        if newline < 0:
            return _broken(text, indent, folds, frozenset())
        position = _skip_more_indented(text, newline, len(indent))
        end = position + len(indent) + step


def fold_quoted(text: str, indent: str, key_width: int | None) -> str:
    """A double-quoted scalar, quotes included. Where no space offers itself, a line ends in a backslash instead."""
    step = step_of(len(indent))
    if len(text) <= step:
        return text
    folds, end = _first_line(indent, key_width)
    hard: set[int] = set()
    split = 0
    before = ""
    escape_start = escape_end = -1
    length = len(text)
    i = -1
    while True:
        i += 1
        if i < end:
            # Nothing happens before the next blank or escape, or the limit.
            found = _TURNING_POINT.search(text, i, end)
            ahead = found.start() if found else end
            if ahead > i:
                before = text[min(ahead, length) - 1]
                i = ahead
        if i >= length:
            break
        unit = text[i]
        if unit == "\\":
            escape_start = i
            i += {"x": 3, "u": 5}.get(text[i + 1 : i + 2], 1)
            escape_end = i
        if unit == "\n":
            end = i + len(indent) + step
            split = 0
        else:
            if unit == " " and before and before not in _BLANK and text[i + 1 : i + 2] not in ("", " ", "\n", "\t"):
                split = i
            if i >= end:
                if split:
                    folds.append(split)
                    end = split + step
                    split = 0
                else:
                    while before in (" ", "\t"):
                        before = unit
                        i += 1
                        unit = text[i : i + 1]
                    place = i - 2 if i > escape_end + 1 else escape_start - 1
                    if place in hard:
                        return text
                    folds.append(place)
                    hard.add(place)
                    end = place + step
                    split = 0
        before = unit
    return _broken(text, indent, folds, hard)


def _first_line(indent: str, key_width: int | None) -> tuple[list[int], int]:
    """The breaks that are made before looking at the text, and the limit of its first line."""
    if key_width is None:
        return [], LINE_WIDTH - len(indent)
    if key_width > LINE_WIDTH - MIN_CONTENT:
        return [0], LINE_WIDTH - len(indent)
    return [], LINE_WIDTH - key_width


def _last_split(text: str, after: int, end: int) -> int:
    """The last place in ``after`` < place <= ``end`` where a line may be broken, or -1."""
    while end > after:
        place = text.rfind(" ", after + 1, end + 1)
        if place < 0 or _may_break(text, place):
            return place
        end = place - 1
    return -1


def _next_split(text: str, after: int) -> int:
    """The first place beyond ``after`` where a line may be broken, or -1."""
    place = after
    while True:
        place = text.find(" ", place + 1)
        if place < 0 or _may_break(text, place):
            return place


def _may_break(text: str, place: int) -> bool:
    return 0 < place < len(text) - 1 and text[place - 1] not in _BLANK and text[place + 1] not in _BLANK


def _skip_more_indented(text: str, newline: int, indent: int) -> int:
    """The line feed that ends the more-indented lines after ``newline``, which are never broken; ``newline`` itself
    when the next line is not of that kind.

    "More indented" is a line that starts with a space or a tab after the indent. The last line of the text ends at its
    end.
    """
    end = newline
    start = newline + 1
    i = newline
    unit = text[start : start + 1]
    while unit in (" ", "\t"):
        if i < start + indent:
            i += 1
            unit = text[i : i + 1]
        else:
            # The unit at i is a blank beyond the indent: the whole line is left alone.
            found = text.find("\n", i + 1)
            i = end = len(text) if found < 0 else found
            start = i + 1
            unit = text[start : start + 1]
    return end


def _broken(text: str, indent: str, folds: list[int], hard: frozenset[int] | set[int]) -> str:
    if not folds:
        return text
    pieces = [text[: folds[0]]]
    for place, following in zip(folds, [*folds[1:], len(text)], strict=True):
        if place == 0:
            pieces = [f"\n{indent}{text[:following]}"]
            continue
        if place in hard:
            # With an indent beyond the line's width the original breaks before the text's beginning, and prints this.
            pieces.append((text[place] if place >= 0 else "undefined") + "\\")
        pieces.append(f"\n{indent}{text[place + 1 : following]}")
    return "".join(pieces)
