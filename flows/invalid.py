"""What is wrong with a value, in words for the one who gave it: pydantic's own are about Python's types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

__all__ = ["why_invalid"]

_NUMBER, _TEXT = "is not a whole number", "is not text"
_IS_NOT = {
    "int_parsing": _NUMBER,
    "int_type": _NUMBER,
    "int_from_float": _NUMBER,
    "int_parsing_size": "is a number of too many digits",
    "bool_parsing": "is neither true nor false",
    "bool_type": "is neither true nor false",
    "string_type": _TEXT,
    "string_too_short": "is empty",
    "tuple_type": "is not a list",
    "model_type": "is neither a place nor a mapping",
}


def why_invalid(error: ValidationError, noun: str, known: Iterable[str], *, show_values: bool) -> list[str]:
    """One sentence for each thing wrong, as in ``workers: 'many' is not a whole number``.

    `noun` is what a `known` name is called. A value is not shown where it may be a secret in the wrong place.
    """
    return [
        f"{'.'.join(map(str, each['loc']))}: {_sentence(each, noun, known, show_values)}"
        for each in error.errors(include_url=False)
    ]


def _sentence(error: Any, noun: str, known: Iterable[str], show_value: bool) -> str:
    kind, context = error["type"], error.get("ctx", {})
    value = repr(error["input"]) if show_value else "the value"
    if kind == "extra_forbidden" and len(error["loc"]) > 1:
        return "no such key"
    if kind == "extra_forbidden":
        return f"no such {noun} (there are: {', '.join(known)})"
    if kind == "greater_than_equal":
        return f"{value} is less than {context['ge']}"
    if kind == "value_error":
        return str(context["error"])
    if kind == "missing":
        return "is missing"
    if kind in _IS_NOT:
        return f"{'it' if kind == 'string_too_short' else value} {_IS_NOT[kind]}"
    return str(error["msg"])
