"""One JSON value as JavaScript reads and writes it, which session logs are made of.

Every number is a double, a later key replaces an earlier one, a surrogate without its partner is kept, and bytes that
are no UTF-8 become U+FFFD. Nothing here recurses: input nested deeper than 10,000 is refused, never a full stack.
"""

from __future__ import annotations

import json
import math
import re
from json.encoder import encode_basestring
from typing import Any, Final, TypeGuard

import msgspec

from schemas._json_text import NestedTooDeep, Token, UndecodableJSON, check, match_token
from schemas._utf16 import LONE_SURROGATE
from schemas._yaml_scalars import number_text

__all__ = ["MAX_SAFE", "NestedTooDeep", "UndecodableJSON", "holds_doubles", "is_safe", "read_value", "write_value"]

MAX_SAFE = 2**53 - 1
"""Integers up to here, either way from zero, are exact in a double: JavaScript's safe integers."""

_decode_strict = msgspec.json.Decoder().decode
# For finding where an integer of 16 digits may begin: a digit is "0", what stands before a value is ",".
_MARKS: Final = bytes(48 if 48 <= byte < 58 else 44 if byte in b":,[- \t\r\n" else 120 for byte in range(256))
_SIXTEEN_DIGITS: Final = b"0" * 16
_LONG_INTEGER: Final = b"," + _SIXTEEN_DIGITS
# A negative zero is looked for in two steps: dates and identifiers are full of "-0".
_has_negative_zero = re.compile(rb"(?:^|[:,\[\s])-0").search
# What Python's own writer spells otherwise: doubles, integers that are no doubles, and keys that come first.
_may_be_written_otherwise = re.compile(r"\"[0-9]{1,10}\":|[0-9](?:\.[0-9]|e[+-]?[0-9]|[0-9]{15})").search
_encode_quickly = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")
).encode
_WORDS: dict[bytes, bool | None] = {b"true": True, b"false": False, b"null": None}
_ARRAY_INDEX = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)


class _Written(str):
    """Text that is JSON already, among values that are still to be written."""

    __slots__ = ()


def read_value(line: bytes) -> tuple[Any, bool]:
    """The value in ``line``, and whether all its numbers are finite and none is -0.

    Raises UndecodableJSON; NestedTooDeep, one of its kinds, is about a limit of ours and not about the grammar.
    """
    if holds_doubles(line):
        try:
            return _decode_strict(line), True
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
    check(line)
    return _build(line)


def write_value(value: Any) -> bytes:
    """``value`` as JSON.stringify writes it: no spaces, integer-like keys first, doubles as JavaScript prints them.

    Raises ValueError for a number that is not finite.
    """
    try:
        text = _encode_quickly(value)
    except (RecursionError, ValueError):
        text = _write(value)
    else:
        if _may_be_written_otherwise(text):
            text = _write(value)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def _write(value: Any) -> str:
    pieces: list[str] = []
    pending: list[Any] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            pieces.append(item if type(item) is _Written else encode_basestring(item))
        elif item is None:
            pieces.append("null")
        elif isinstance(item, bool):
            pieces.append("true" if item else "false")
        elif isinstance(item, (int, float)):
            if isinstance(item, float) and not math.isfinite(item):
                raise ValueError(f"{item} is no JSON")
            pieces.append(number_text(item) if item else "0")
        elif isinstance(item, dict):
            pieces.append("{")
            pending.append(_Written("}"))
            for position, key in enumerate(reversed(_keys_in_order(item)), 1):
                pending.append(item[key])
                comma = "" if position == len(item) else ","
                pending.append(_Written(f"{comma}{encode_basestring(key)}:"))
        else:
            pieces.append("[")
            pending.append(_Written("]"))
            for position, element in enumerate(reversed(item), 1):
                pending.append(element)
                if position < len(item):
                    pending.append(_Written(","))
    return "".join(pieces)


def holds_doubles(line: bytes) -> bool:
    """Whether the C decoder surely reads every number in ``line`` as JavaScript does, and none of them is -0."""
    return not _may_hold_long_integer(line) and not (b"-0" in line and _has_negative_zero(line))


def _may_hold_long_integer(line: bytes) -> bool:
    """Whether an integer may stand in ``line`` of which the C decoder makes something else than a double: it has 16
    digits and more. Texts are full of such, so it is looked for where a value begins.
    """
    marks = line.translate(_MARKS)
    return _LONG_INTEGER in marks or marks.startswith(_SIXTEEN_DIGITS)


def is_safe(value: Any, *, lowest: int = 0) -> TypeGuard[int]:
    """Whether ``value`` is a safe integer from ``lowest`` up, as Number.isSafeInteger says."""
    if type(value) is int:
        return lowest <= value <= MAX_SAFE
    return type(value) is float and value.is_integer() and lowest <= value <= MAX_SAFE


def _keys_in_order(value: dict[str, Any]) -> list[str]:
    """A JavaScript object's keys: array indices ascending, then the rest as they were put in."""
    indices = [key for key in value if _ARRAY_INDEX.fullmatch(key) and int(key) < 2**32 - 1]
    if not indices:
        return list(value)
    indices.sort(key=int)
    taken = set(indices)
    return indices + [key for key in value if key not in taken]


def _build(data: bytes) -> tuple[Any, bool]:
    root: list[Any] = []
    # The containers around the place being read, each with the key its next value belongs to (None in a list).
    open_containers: list[tuple[Any, str | None]] = [(root, None)]
    position = 0
    finite = True
    end = len(data.rstrip(b" \t\r\n"))
    while position < end:
        found = match_token(data, position)
        assert found is not None
        assert found.lastindex is not None
        token, text, position = found.lastindex, found[found.lastindex], found.end()
        container, key = open_containers[-1]
        if token == Token.SEPARATOR:
            continue
        if token == Token.CLOSE:
            open_containers.pop()
            continue
        if isinstance(container, dict) and key is None:
            open_containers[-1] = container, _string(text)
            continue
        value = _value_of(token, text)
        if type(value) is float and (not math.isfinite(value) or (value == 0 and text.startswith(b"-"))):
            finite = False
        if key is None:
            container.append(value)
        else:
            container[key] = value
            open_containers[-1] = container, None
        if token == Token.OPEN:
            open_containers.append((value, None))
    return root[0], finite


def _value_of(token: int, text: bytes) -> Any:
    if token == Token.STRING:
        return _string(text)
    if token == Token.OPEN:
        return {} if text == b"{" else []
    if token == Token.WORD:
        return _WORDS[text]
    if len(text) <= 16 and text.lstrip(b"-").isdigit() and text != b"-0":
        value = int(text)
        if abs(value) <= MAX_SAFE:
            return value
    return float(text)


def _string(literal: bytes) -> str:
    return str(json.loads(literal.decode("utf-8", "replace")))
