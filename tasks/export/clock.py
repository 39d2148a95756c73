"""The zone's own clock: the newest time that any of its records names.

Whether a session is quiet must not depend on when somebody looks, so the moment to measure to comes from the evidence.
The newest round of each conversation says how far its session reaches; only its first line is read.
"""

from __future__ import annotations

import msgspec

from schemas.errors import StoreError
from schemas.times import NO_TIME, parse_time
from storage.chains import ChainStore
from storage.zone import Zone

__all__ = ["newest_time"]

_FIRST_READ = 16 * 1024
_LONGEST_LINE = 4 * 1024 * 1024


class _Header(msgspec.Struct):
    session_through_time: str = ""


def newest_time(zone: Zone) -> int:
    """Nanoseconds since the epoch; `NO_TIME` when no round names a time. A round that cannot be read counts for
    nothing here: its own session says so."""
    times = (_newest_of(zone.chain(conversation)) for conversation in zone.conversations())
    return max(times, default=NO_TIME)


def _newest_of(chain: ChainStore) -> int:
    try:
        rounds = chain.rounds()
        if not rounds:
            return NO_TIME
        length = _FIRST_READ
        line, end, _ = chain.store.read_range(rounds[-1].key, 0, length).partition(b"\n")
        while not end and len(line) == length < _LONGEST_LINE:
            length *= 8
            line, end, _ = chain.store.read_range(rounds[-1].key, 0, length).partition(b"\n")
        return parse_time(msgspec.json.decode(line, type=_Header).session_through_time)
    except (StoreError, msgspec.DecodeError, UnicodeDecodeError):
        return NO_TIME
