"""Record times: RFC 3339 text to signed 64-bit nanoseconds since the epoch, and back (session-flow specification,
section 3).

The accepted forms are those of the original's parser, which is looser than RFC 3339 in the hour (one or two digits), in
the fraction (`.` or `,`, any number of digits, those past nine dropped) and in the offset (up to 24 hours, 60 minutes).
The value 0 stands for "no time": for text that is no time, and for the epoch itself.
"""

from __future__ import annotations

import datetime
import re
from functools import lru_cache

__all__ = ["NO_TIME", "file_stamp", "format_time", "held_time", "parse_time"]

NO_TIME = 0

_FORM = re.compile(
    r"(\d{4}-\d\d-\d\d)T(\d\d?):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))",
    re.ASCII,
)
_DAYS_BEFORE = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
_DAYS_IN = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_SECOND = 1_000_000_000
_DAY = 86_400
_WRAP = 1 << 64
_SIGN = 1 << 63


def parse_time(text: str) -> int:
    """Nanoseconds since 1970-01-01T00:00:00Z, wrapped to 64 bits as the original wraps; `NO_TIME` when `text` is no
    time.
    """
    value = _unwrapped(text)
    return value if -_SIGN <= value < _SIGN else (value + _SIGN) % _WRAP - _SIGN


def held_time(text: str) -> int:
    """Nanoseconds since 1970-01-01T00:00:00Z; `NO_TIME` when `text` is no time, and for an instant that 64 bits do not
    hold, which to the original is another one: those from 1677-09-21 to 2262-04-11 they do.
    """
    value = _unwrapped(text)
    return value if -_SIGN <= value < _SIGN else NO_TIME


def _unwrapped(text: str) -> int:
    match = _FORM.fullmatch(text)
    if match is None:
        return NO_TIME
    date, hour, minute, second, fraction, sign, zone_hour, zone_minute = match.groups()
    h, m, s = int(hour), int(minute), int(second)
    if h > 23 or m > 59 or s > 59:
        return NO_TIME
    days = _days_since_epoch(date)
    if days is None:
        return NO_TIME
    seconds = days * _DAY + h * 3600 + m * 60 + s
    if sign is not None:
        zh, zm = int(zone_hour), int(zone_minute)
        if zh > 24 or zm > 60:
            return NO_TIME
        offset = zh * 3600 + zm * 60
        seconds += offset if sign == "-" else -offset
    value = seconds * _SECOND
    if fraction is not None:
        value += int(fraction[:9].ljust(9, "0"))
    return value


def format_time(value: int) -> str:
    """`value` nanoseconds as UTC `YYYY-MM-DDTHH:MM:SS[.fraction]Z`, trailing zeros of the fraction dropped."""
    date, clock, nanoseconds = _split(value)
    fraction = f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""
    return f"{date[0]:04d}-{date[1]:02d}-{date[2]:02d}T{clock[0]:02d}:{clock[1]:02d}:{clock[2]:02d}{fraction}Z"


def file_stamp(value: int) -> str:
    """`value` nanoseconds as the stamp of a landed file's name, `YYYYMMDDTHHMMSS.nnnnnnnnnZ` (section 2)."""
    date, clock, nanoseconds = _split(value)
    return f"{date[0]:04d}{date[1]:02d}{date[2]:02d}T{clock[0]:02d}{clock[1]:02d}{clock[2]:02d}.{nanoseconds:09d}Z"


@lru_cache(maxsize=1024)  # a session's records share few days
def _days_since_epoch(date: str) -> int | None:
    """Days of the proleptic Gregorian calendar, year 0 included; None for a day that the calendar lacks."""
    year, month, day = int(date[:4]), int(date[5:7]), int(date[8:])
    if not 1 <= month <= 12:
        return None
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= day <= _DAYS_IN[month - 1] + (1 if leap and month == 2 else 0):
        return None
    before = year - 1
    days = before * 365 + before // 4 - before // 100 + before // 400 - 719_162
    return days + _DAYS_BEFORE[month - 1] + (1 if leap and month > 2 else 0) + day - 1


def _split(value: int) -> tuple[tuple[int, int, int], tuple[int, int, int], int]:
    """(year, month, day), (hour, minute, second), nanoseconds; years run from 1677 to 2262, so the calendar is
    datetime's.
    """
    seconds, nanoseconds = divmod(value, _SECOND)
    days, rest = divmod(seconds, _DAY)
    date = datetime.date.fromordinal(days + 719_163)
    return (date.year, date.month, date.day), (rest // 3600, rest // 60 % 60, rest % 60), nanoseconds
