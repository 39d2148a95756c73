"""Relavium's session files: one JSON record, and one JSON array of messages.

JSON is read as JavaScript reads it, because the exported bytes depend on it: every number is a double, -0 stays -0, a
later key replaces an earlier one, surrogates without a partner are kept, and bytes that are no UTF-8 become U+FFFD.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from pydantic import ValidationError

from schemas._relavium_refusals import refused
from schemas._relavium_values import kind_of
from schemas.errors import AgentSessionRejected
from schemas.relavium_session import AgentSessionRecord, SessionMessage

__all__ = ["parse_messages", "parse_record", "read_json", "read_messages", "read_record"]

_EXACT_INTEGER = 2**53
_MOST_DIGITS = 400
"""Beyond 309 digits every integer is infinite to JavaScript; Python's own limit is higher and raises."""


def read_record(data: bytes, *, name: str) -> AgentSessionRecord:
    """The record in ``data``; ``name`` is what errors call the file. Raises AgentSessionRejected."""
    return parse_record(read_json(data, name=name), name=name)


def read_messages(data: bytes, *, name: str) -> list[SessionMessage]:
    """The messages in ``data``, in the order they stand. Raises AgentSessionRejected."""
    return parse_messages(read_json(data, name=name), name=name)


def parse_record(value: Any, *, name: str) -> AgentSessionRecord:
    """A record from a JSON value. Raises AgentSessionRejected."""
    try:
        return AgentSessionRecord.model_validate(value)
    except ValidationError as error:
        raise refused(AgentSessionRejected, error, name) from None


def parse_messages(value: Any, *, name: str) -> list[SessionMessage]:
    """Messages from a JSON value. Raises AgentSessionRejected with the first bad message's row."""
    if not isinstance(value, list):
        detail = f"expected an array, received {kind_of(value)}"
        raise AgentSessionRejected(name, None, "invalid_type", "messages", detail)
    messages = []
    for row, item in enumerate(value, 1):
        try:
            messages.append(SessionMessage.model_validate(item))
        except ValidationError as error:
            raise refused(AgentSessionRejected, error, name, row) from None
    return messages


def read_json(data: bytes, *, name: str) -> Any:
    """The JSON value in ``data``. Raises AgentSessionRejected (``json``)."""
    try:
        return _decoder.decode(data.decode("utf-8", "replace"))
    except ValueError as error:
        raise AgentSessionRejected(name, None, "json", "", f"not JSON: {error}") from None
    except RecursionError:
        raise AgentSessionRejected(name, None, "json", "", "nested too deep") from None


def _integer(digits: str) -> int | float:
    value = int(digits) if len(digits) <= _MOST_DIGITS else math.copysign(math.inf, -1 if digits[0] == "-" else 1)
    if value == 0 and digits[0] == "-":
        return -0.0
    if -_EXACT_INTEGER <= value <= _EXACT_INTEGER:
        return value
    try:
        return float(value)
    except OverflowError:
        return -math.inf if value < 0 else math.inf


def _no_such_word(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


_decoder = json.JSONDecoder(parse_int=_integer, parse_constant=_no_such_word)
