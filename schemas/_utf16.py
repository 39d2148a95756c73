"""Text as UTF-16 code units, which is how Relavium counts: lengths, positions and the order of keys.

A Python string holds one item per code point. `to_units` gives a string with one item per UTF-16 unit instead, in which
a character beyond U+FFFF is a pair of surrogates; `from_units` joins the pairs again. A surrogate that is no half of a
pair stays as it is in both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["LONE_SURROGATE", "from_units", "sorted_keys", "to_units", "unit_count"]

LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""A surrogate that is no half of a pair, in text whose pairs are joined."""

_BEYOND = re.compile("[\U00010000-\U0010ffff]")


def unit_count(text: str) -> int:
    """The length of ``text`` in UTF-16 code units."""
    return len(text) if text.isascii() else len(text) + len(_BEYOND.findall(text))


def to_units(text: str) -> str:
    """``text`` with every character beyond U+FFFF as its pair of surrogates."""
    if text.isascii() or _BEYOND.search(text) is None:
        return text
    return _BEYOND.sub(_pair, text)


def from_units(text: str) -> str:
    """``text`` with every pair of surrogates as the one character it stands for."""
    if text.isascii() or LONE_SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def sorted_keys(mapping: Mapping[str, object]) -> list[str]:
    """The keys of ``mapping`` by code unit: U+1F600 comes before U+FF5E."""
    if all(map(str.isascii, mapping)):
        return sorted(mapping)
    return sorted(mapping, key=_units_as_bytes)


def _units_as_bytes(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def _pair(found: re.Match[str]) -> str:
    above = ord(found[0]) - 0x10000
    return chr(0xD800 + (above >> 10)) + chr(0xDC00 + (above & 0x3FF))
