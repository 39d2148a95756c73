"""Values that JSON can hold without loss, copied so that nobody changes them later (DSH specification, section 12).

What a log gives back equals what was put in: so no tuple, no other number than a double's, no -0, no object of a class.
"""

from __future__ import annotations

import math
from typing import Any, Final

import msgspec

from schemas._dsh_json import MAX_SAFE, holds_doubles

__all__ = ["NotLossless", "snapshot"]

DEEPEST: Final = 10_000
"""Values nested deeper than this could not be read again."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class NotLossless(ValueError):
    """A value that JSON cannot hold, or not as it is; the text says which."""


def snapshot(value: Any) -> Any:
    """A copy of ``value`` that shares nothing with it. Raises NotLossless."""
    try:
        text = _encode(value)
        if holds_doubles(text):
            copy = _decode(text)
            # 1 == True, but neither is ever written as the other.
            if copy == value:
                return copy
    except (TypeError, ValueError, msgspec.MsgspecError, RecursionError):
        pass  # surrogates, depth, or something that is no JSON: found out below
    return _copy(value)


def _copy(root: Any) -> Any:
    copied: list[Any] = []
    pending: list[tuple[Any, Any, Any, tuple[int, ...] | None, int]] = []
    within: set[int] = set()
    pending.append((root, copied, None, None, 0))
    while pending:
        value, target, key, leaving, depth = pending.pop()
        if leaving is not None:
            within.discard(leaving[0])
            continue
        copy: Any
        if isinstance(value, (dict, list)):
            if id(value) in within:
                raise NotLossless("a value contains itself")
            if depth >= DEEPEST:
                raise NotLossless(f"a value is nested deeper than {DEEPEST}")
            within.add(id(value))
            pending.append((None, None, None, (id(value),), 0))
            if isinstance(value, dict):
                copy = dict.fromkeys(value)
                if not all(type(each) is str for each in value):
                    raise NotLossless("an object has a key that is no text")
                pending.extend((value[each], copy, each, None, depth + 1) for each in reversed(value))
            else:
                copy = [None] * len(value)
                pending.extend((value[place], copy, place, None, depth + 1) for place in reversed(range(len(value))))
        else:
            copy = _scalar(value)
        if key is None:
            target.append(copy)
        else:
            target[key] = copy
    return copied[0]


def _scalar(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        if abs(value) > MAX_SAFE and not _is_double(value):
            raise NotLossless("a whole number is no double")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value) or (value == 0 and math.copysign(1, value) < 0):
            raise NotLossless(f"a number is {value!r}")
        return float(value)
    raise NotLossless(f"a value of type {type(value).__name__} is no JSON")


def _is_double(value: int) -> bool:
    try:
        return int(float(value)) == value
    except OverflowError:
        return False
