"""Blocks `<tag>…</tag>` that a runtime writes into texts: taken off a text, or found to be all of it.

A text that only mentions a tag, or never closes it, is somebody's words. All of this takes time linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Container

__all__ = ["begins_with_block", "blocks_of", "without_blocks"]

_OPENING = re.compile(r"\s*<([a-z][a-z_-]*)>")
_OUTPUTS = ("-stdout", "-stderr")


def blocks_of(text: str, tags: Container[str]) -> list[str]:
    """The tags of the blocks that `text` consists of, in order; empty when there is anything but them in it."""
    found: list[str] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        opening = _OPENING.match(text, at, end)
        if opening is None or opening[1] not in tags:
            return []
        closing = f"</{opening[1]}>"
        # What a program puts out may hold its own tag.
        find = text.rfind if opening[1].endswith(_OUTPUTS) else text.find
        if (closes := find(closing, opening.end(), end)) < 0:
            return []
        at = closes + len(closing)
        found.append(opening[1])
    return found


def begins_with_block(text: str, tags: re.Pattern[str]) -> bool:
    """Whether a whole block with such a tag is the first thing in `text`."""
    return _after_leading(text, tags) > 0


def without_blocks(text: str, tags: re.Pattern[str]) -> str:
    """`text` without the blocks at its beginning and end whose tags match; as it is when there are none."""
    start, end = _after_leading(text, tags), len(text.rstrip())
    while start < end and (begins := _begin_of_trailing(text, start, end, tags)) is not None:
        end = begins
        while end > start and text[end - 1].isspace():
            end -= 1
    return text if start == 0 and end == len(text.rstrip()) else text[start:end].strip()


def _after_leading(text: str, tags: re.Pattern[str]) -> int:
    at = 0
    while (opening := _OPENING.match(text, at)) is not None and tags.fullmatch(opening[1]):
        closing = f"</{opening[1]}>"
        closes = text.find(closing, opening.end())
        if closes < 0:
            break
        at = closes + len(closing)
    return at


def _begin_of_trailing(text: str, start: int, end: int, tags: re.Pattern[str]) -> int | None:
    """Where the block begins that ends at `end`."""
    if not text.endswith(">", start, end) or (closes := text.rfind("</", start, end)) < 0:
        return None
    tag = text[closes + 2 : end - 1]
    if tags.fullmatch(tag) is None:
        return None
    begins = text.rfind(f"<{tag}>", start, closes)
    return begins if begins >= 0 else None
