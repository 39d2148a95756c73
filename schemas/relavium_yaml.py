"""Writing YAML exactly as Relavium's files are written (Relavium notes, section 4).

The dialect is what the `yaml` library for JavaScript prints by default with its map keys sorted. No other emitter can
be tuned into it, so this is one of its own, for plain values: maps with string keys, lists, strings, numbers, booleans
and None. In a page:

**Layout.** Two spaces of indent, lists two deeper than their key, no ``---``, UTF-8 without a byte order mark, line
feeds, one final line feed. Keys are sorted by UTF-16 code unit. A non-empty map or list starts on the line after its
key; a map or list in a list starts on the line of its dash (``- - 1``). Empty ones are ``{}`` and ``[]``. There are no
anchors: a value that appears twice is written twice. A key of more than 1024 units is written ``? key``, with ``: ``
and its value on the next line. Numbers are JavaScript's (``1``, ``1e+21``, ``-0``).

**Strings**, the first rule that fits. (1) Control characters other than tab and line feed, DEL, the C1 range and
surrogates without a partner need double quotes. (2) Text of several lines is a block; as a key, quoted. (3) Text is
quoted that, written plain, would start or end in something YAML gives a meaning to, would hold ``: `` or `` #``, or
would be read as null, a boolean or a number by YAML 1.2's core schema; that YAML 1.1 reads more (``yes``, dates,
``1:30``, ``1_000``) does not matter. (4) Everything else is plain. Quotes are double, or single around text that has
double but no single quotes. Double quotes escape as JSON does, with YAML's ``\\0 \\a \\v \\e`` and ``\\xXX`` for the
rest of the control characters; in text whose JSON form has 40 units or more, a line feed is shown as a blank line.

**Blocks** are literal (``|``), or folded (``>``) when a line is longer than the width allows and breaking it helps.
Chomping keeps the final line feeds; the indent is named (``2``) when the text begins with a space. Text that ends in a
line of blanks cannot be a block and is double-quoted.

**Folding.** Lines are at most 80 wide where there is a space to break at, counted in UTF-16 units, with at least 20 for
content however deep the indent. The first line of a scalar is measured from its key's width alone, as if the map began
at the margin. A double-quoted scalar without a space to break at is broken anywhere, after a backslash; this may
separate the halves of a character beyond U+FFFF, which then become two U+FFFD, as they do in the original's files.

**What does not survive being read again**, in the original's files as in these: text of only blanks and line feeds; in
double-quoted text with shown line feeds, a line that is a single space (its backslash is doubled); characters cut in
half as above; and, where the indent is wider than the line, double-quoted text without a space to break at. A surrogate
without a partner is written as an escape, which many readers refuse.

Reading is `schemas.relavium_yaml_reader`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from schemas._utf16 import LONE_SURROGATE, from_units, sorted_keys
from schemas._yaml_scalars import SHORT, key_text, number_text, short_text, string_text

__all__ = ["write_yaml"]

_LONGEST_SIMPLE_KEY: Final = 1024
_STEP: Final = "  "


def write_yaml(document: Mapping[str, Any]) -> bytes:
    """``document`` in the dialect, as UTF-8, however deep it is nested. Raises TypeError for a value JSON has no word
    for.
    """
    if not document:
        return b"{}\n"
    pieces: list[str] = []
    _write(pieces, document)
    pieces.append("\n")
    text = "".join(pieces)
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Pairs of surrogates come from counting in UTF-16 units; one without a partner was cut by a line break.
        return LONE_SURROGATE.sub("\ufffd", from_units(text)).encode()


def _write(pieces: list[str], document: Mapping[str, Any]) -> None:
    """The lines of a non-empty map. Collections that are not finished wait on a stack of our own: Python's is short."""
    waiting: list[tuple[Iterator[Any], Mapping[str, Any] | None, str]] = []
    # What is still to be written of the collection at hand: keys of the map `values`, or items of a list (None).
    entries: Iterator[Any] = iter(sorted_keys(document))
    values: Mapping[str, Any] | None = document
    indent = lead = ""
    while True:
        line = "\n" + indent
        inner = indent + _STEP
        for entry in entries:
            # `key_width` is that of "key: " on the value's line; None where the value starts at its indent.
            key_width: int | None = None
            if values is None:
                value = entry
                pieces.append(lead + "- ")
            else:
                value = values[entry]
                printed = key_text(entry, not indent)
                if len(printed) > _LONGEST_SIMPLE_KEY:
                    pieces.append(f"{lead}? {printed}{line}: ")
                else:
                    pieces.append(f"{lead}{printed}:")
                    key_width = len(printed) + 2
            lead = line
            if isinstance(value, dict | list) and value:
                if key_width is not None:
                    pieces.append("\n" + inner)
                waiting.append((entries, values, indent))
                entries, values = (iter(sorted_keys(value)), value) if isinstance(value, dict) else (iter(value), None)
                indent, lead = inner, ""
                break
            pieces.append(_scalar(value, inner, key_width))
        else:
            if not waiting:
                return
            entries, values, indent = waiting.pop()
            lead = "\n" + indent


def _scalar(value: Any, indent: str, key_width: int | None) -> str:
    """A string, number, word or empty collection, with the space after its key's colon."""
    if isinstance(value, str):
        printed = short_text(value) if len(value) <= SHORT >= len(indent) else None
        if printed is None:
            printed = string_text(value, indent, key_width)
    else:
        printed = _plain_text(value)
    return printed if key_width is None or printed[0] == "\n" else " " + printed


def _plain_text(value: Any) -> str:
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int | float):
        return number_text(value)
    if isinstance(value, dict):
        return "{}"
    if isinstance(value, list):
        return "[]"
    raise TypeError(f"{type(value).__name__} is no value of this dialect")
