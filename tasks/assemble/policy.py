"""The interpretation that a chain carries: parser and policy, never mixed in one chain (session-flow specification,
sections 7 and 8).
"""

from __future__ import annotations

__all__ = ["IDLE_GAP", "PARSER", "policy"]

PARSER = "v1"
IDLE_GAP = 600_000_000_000
"""The idle gap that ends an activity window: ten minutes, in nanoseconds."""

_SECOND = 1_000_000_000


def policy(gap: int) -> str:
    """The policy's name for an idle gap in nanoseconds: `v1+idle=` and a duration such as `10m0s`."""
    return f"v1+idle={_duration(gap)}"


def _duration(nanoseconds: int) -> str:
    """A duration in the original's notation: `1h0m0s`, `1.5s`, `250ms`, `3µs`, `0s`."""
    if nanoseconds < 0:
        return f"-{_duration(-nanoseconds)}"
    if nanoseconds == 0:
        return "0s"
    if nanoseconds < _SECOND:
        for unit, size in (("ms", 1_000_000), ("µs", 1_000), ("ns", 1)):
            if nanoseconds >= size:
                return f"{_decimal(nanoseconds, size)}{unit}"
    minutes, rest = divmod(nanoseconds, 60 * _SECOND)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{_decimal(rest, _SECOND)}s"
    if hours:
        return f"{hours}h{minutes}m{seconds}"
    return f"{minutes}m{seconds}" if minutes else seconds


def _decimal(value: int, unit: int) -> str:
    whole, fraction = divmod(value, unit)
    if not fraction:
        return str(whole)
    return f"{whole}.{str(fraction).zfill(len(str(unit)) - 1).rstrip('0')}"
