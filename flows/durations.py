"""Lengths of time as people write them: `90m`, `1h30m`, `2d`, or a number of seconds."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

__all__ = ["Duration", "parse_duration"]

_FORM = re.compile(r"(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,9})s)?|(\d{1,9})", re.ASCII)
_SECONDS = (86_400, 3_600, 60, 1, 1)


def parse_duration(text: str) -> int:
    """`text` in nanoseconds; raises ValueError when it is no length of time."""
    found = _FORM.fullmatch(text)
    if not text or found is None:
        raise ValueError(f"{text!r} is no length of time; write it as 1h, 90m or 1h30m")
    pairs = zip(found.groups("0"), _SECONDS, strict=True)
    return sum(int(number) * seconds for number, seconds in pairs) * 1_000_000_000


def _checked(text: str) -> str:
    parse_duration(text)
    return text


Duration = Annotated[str, AfterValidator(_checked)]
"""A text of a setting or parameter that is a length of time; it is kept as it was written."""
