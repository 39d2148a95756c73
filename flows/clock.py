"""The one place where a command or a flow reads the clock."""

from __future__ import annotations

import time

from schemas.errors import WrongUse
from schemas.times import NO_TIME, parse_time

__all__ = ["checked_now", "clock"]

_HOW = "is no time from 1678 to 2261; write it as 2026-08-07T10:00:00.123456789Z"


def clock(now: str | None) -> int:
    """`now`, RFC 3339 with up to nine digits of a second, in nanoseconds; the real clock when None. Raises
    `WrongUse`, which names the option."""
    if now is None:
        return time.time_ns()
    if not _is_time(now):
        raise WrongUse(f"--now: {now!r} {_HOW}")
    return parse_time(now)


def checked_now(now: str | None) -> str | None:
    """The parameter `now` of a flow, when `clock` takes it; raises ValueError otherwise."""
    if now is not None and not _is_time(now):
        raise ValueError(_HOW)
    return now


def _is_time(text: str) -> bool:
    # 64 bits of nanoseconds end in 2262, and a year beyond them would come back as another.
    return parse_time(text) != NO_TIME and "1678" <= text[:4] <= "2261"
