"""The kinds of single values in Relavium's data, and what makes one refused (Relavium notes, section 1).

The rules are those of the validator the original uses, which differ from pydantic's own: a value is never converted,
an optional field may be absent but never null, lengths count UTF-16 units, patterns are ASCII and match to the true
end, and an integer is any number without a fraction (``1.0``, ``1e300``). Every refusal names its rule, see `refuse`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Annotated, Any, Final, NoReturn, TypeVar

from pydantic import GetCoreSchemaHandler, PlainValidator
from pydantic_core import CoreSchema, PydanticCustomError

from schemas._utf16 import unit_count
from schemas._whatwg_url import is_network_url

__all__ = [
    "KEBAB",
    "MAX_SAFE_INTEGER",
    "AnyText",
    "Count",
    "Flag",
    "JsonMap",
    "Kebab",
    "Maybe",
    "Natural",
    "Temperature",
    "Text",
    "TextMap",
    "Timestamp",
    "Url",
    "integer",
    "kind_of",
    "matching",
    "one_of",
    "refuse",
    "text",
]

MAX_SAFE_INTEGER: Final = 2**53 - 1
KEBAB: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")

_TIMESTAMP = re.compile(
    r"(?:(?:[0-9]{2}[2468][048]|[0-9]{2}[13579][26]|[0-9]{2}0[48]|[02468][048]00|[13579][26]00)-02-29"
    r"|[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8])))"
    r"T(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]+)?)?"
    r"(?:Z|[+-][0-9]{2}:?[0-9]{2})"
)

T = TypeVar("T")
Check = Callable[[Any], Any]


class _NeverNull:
    """Takes None out of what an optional field accepts: it may be absent, and is None then, but null is refused."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema: Any = handler(source)
        assert schema["type"] == "nullable"
        inner: CoreSchema = schema["schema"]
        return inner


Maybe = Annotated[T | None, _NeverNull()]
"""An optional field, with None as its default."""


def refuse(rule: str, message: str, at: str = "") -> NoReturn:
    """End the validation of a value by ``rule``, a short name; ``at`` is where below the value the rule is broken."""
    raise PydanticCustomError("refused", "{message}", {"rule": rule, "message": message, "at": at})


def kind_of(value: object) -> str:
    """What JSON calls the type of ``value``."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list | tuple) else "object"


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    refuse("invalid_type", f"expected a string, received {kind_of(value)}")


def text(*, shortest: int = 0, longest: int | None = None) -> Check:
    """A string of ``shortest`` to ``longest`` UTF-16 units."""

    def check(value: Any) -> str:
        _string(value)
        if longest is not None and len(value) * 2 > longest and unit_count(value) > longest:
            refuse("too_big", f"longer than {longest} UTF-16 units")
        if len(value) < shortest:
            refuse("too_small", "an empty string")
        return str(value)

    return check


def matching(pattern: re.Pattern[str], what: str, *, longest: int | None = None) -> Check:
    """A string that ``pattern`` matches as a whole."""
    within = text(longest=longest)

    def check(value: Any) -> str:
        within(value)
        if pattern.fullmatch(value) is None:
            refuse("invalid_string", f"expected {what}")
        return str(value)

    return check


def integer(least: int, most: int | None = None) -> Check:
    """A whole number of ``least`` to ``most``. What JSON writes as -0 stays it, as a float: it is printed so."""

    def check(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            refuse("invalid_type", f"expected an integer, received {kind_of(value)}")
        if isinstance(value, float):
            if not value.is_integer():
                refuse("invalid_type", "expected an integer, received a number with a fraction")
            if value or math.copysign(1, value) > 0:
                value = int(value)
        if value < least:
            refuse("too_small", f"less than {least}")
        if most is not None and value > most:
            refuse("too_big", f"greater than {most}")
        return value

    return check


def one_of(*choices: str) -> Check:
    """One of a few strings."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in choices:
            refuse("invalid_enum_value", f"expected one of {', '.join(choices)}")
        return value

    return check


def _boolean(value: Any) -> bool:
    if value is True or value is False:
        return value
    refuse("invalid_type", f"expected a boolean, received {kind_of(value)}")


def _temperature(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse("invalid_type", f"expected a number, received {kind_of(value)}")
    if not value >= 0:
        refuse("too_small", "less than 0")
    if value > 2:
        refuse("too_big", "greater than 2")
    return value


def _json_map(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        refuse("invalid_type", f"expected an object, received {kind_of(value)}")
    # The original rebuilds such a map key by key, and this one it cannot set.
    return {key: item for key, item in value.items() if key != "__proto__"}


def _text_map(value: Any) -> dict[str, str]:
    items = _json_map(value)
    for key, item in items.items():
        if not isinstance(item, str):
            refuse("invalid_type", f"expected a string, received {kind_of(item)}", at=key)
    return items


def _url(value: Any) -> str:
    _string(value)
    if not is_network_url(value):
        refuse("invalid_string", "expected an address that can be parsed")
    return str(value)


AnyText = Annotated[str, PlainValidator(_string)]
Text = Annotated[str, PlainValidator(text(shortest=1))]
"""A string that is not empty; " " is one."""
Kebab = Annotated[str, PlainValidator(matching(KEBAB, "kebab-case: lower-case letters and digits, joined by dashes"))]
Timestamp = Annotated[str, PlainValidator(matching(_TIMESTAMP, "a date and time with an offset"))]
Natural = Annotated[int, PlainValidator(integer(0))]
Count = Annotated[int, PlainValidator(integer(1))]
"""An integer of at least 1."""
Flag = Annotated[bool, PlainValidator(_boolean)]
Temperature = Annotated[float, PlainValidator(_temperature)]
JsonMap = Annotated[dict[str, Any], PlainValidator(_json_map)]
TextMap = Annotated[dict[str, str], PlainValidator(_text_map)]
Url = Annotated[str, PlainValidator(_url)]
