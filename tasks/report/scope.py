"""Which calls a report is about, and in which time zone its days begin and end.

Times are stored as instants; one zone, named in the report, decides the day of a call in every table alike, on the days
when clocks change too (field report 15). Dates are days of that zone and include both ends.
"""

from __future__ import annotations

import contextlib
import difflib
import re
import zoneinfo
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from itertools import islice

import polars as pl

from schemas.errors import WrongUse

__all__ = ["Scope", "local_time", "scope_of"]


@dataclass(frozen=True, slots=True)
class Scope:
    """`zone` is an IANA name; `since` and `until` are days there, inclusive; a pattern of `projects` or `models` is a
    shell pattern or the name itself, and "" stands for rows that name none. Nothing given is no limit."""

    zone: str = "UTC"
    since: date | None = None
    until: date | None = None
    projects: tuple[str, ...] = ()
    models: tuple[str, ...] = ()

    def may_hold(self, utc_day: date) -> bool:
        """Whether calls of a UTC day can be in scope: no zone is more than a day from UTC."""
        day = utc_day.toordinal()
        return (self.since is None or day >= self.since.toordinal() - 1) and (
            self.until is None or day <= self.until.toordinal() + 1
        )

    def within(self, calls: pl.DataFrame) -> pl.DataFrame:
        """The rows of `calls` (columns `day`, `project`, `model`) that are in scope."""
        if self.since is not None:
            calls = calls.filter(pl.col("day") >= self.since)
        if self.until is not None:
            calls = calls.filter(pl.col("day") <= self.until)
        for column, patterns in (("project", self.projects), ("model", self.models)):
            if patterns:
                named = _matching(calls[column].unique().to_list(), patterns)
                calls = calls.filter(pl.col(column).is_in(named, nulls_equal=True))
        return calls


def scope_of(
    *,
    zone: str = "UTC",
    since: str | None = None,
    until: str | None = None,
    projects: Sequence[str] = (),
    models: Sequence[str] = (),
) -> Scope:
    """The scope that options describe; a date is ``2026-03-08`` or ``20260308``. Raises `WrongUse`."""
    first, last = _day("since", since), _day("until", until)
    if first is not None and last is not None and first > last:
        raise WrongUse(f"--since {first} is after --until {last}: no day is in between")
    return Scope(_zone(zone), first, last, tuple(projects), tuple(models))


def local_time(moment: datetime, zone: str) -> datetime:
    """What clocks in `zone` show at `moment`, without a zone; by the same tables as days are."""
    shown = pl.Series([moment]).dt.convert_time_zone(zone).dt.replace_time_zone(None)
    local: datetime = shown.clip(datetime.min, datetime.max)[0]
    return local


def _zone(name: str) -> str:
    """`name`, when the library that converts times knows it."""
    if _is_zone(name):
        return name
    # This machine may have names that the library has not: "localtime" is one.
    close = filter(_is_zone, difflib.get_close_matches(name, sorted(zoneinfo.available_timezones()), 5))
    meant = "".join(f"; did you mean {each}?" for each in islice(close, 1))
    raise WrongUse(f"--zone {name!r} is no time zone: give a name such as America/Los_Angeles{meant}")


def _is_zone(name: str) -> bool:
    noon = pl.Series([datetime(2000, 1, 1, 12, tzinfo=UTC)], dtype=pl.Datetime("us", "UTC"))
    try:
        noon.dt.convert_time_zone(name)
    except (pl.exceptions.ComputeError, ValueError):
        return False
    return bool(name)


_DAY = re.compile(r"[0-9]{4}(-?)[0-9]{2}\1[0-9]{2}")


def _day(option: str, text: str | None) -> date | None:
    if text is None:
        return None
    if _DAY.fullmatch(text):
        with contextlib.suppress(ValueError):
            return date.fromisoformat(text)
    raise WrongUse(f"--{option} {text!r} is no date: write one as in 2026-03-08")


def _matching(names: Iterable[str | None], patterns: Sequence[str]) -> list[str | None]:
    return [
        name
        for name in names
        if any((name or "") == pattern or fnmatchcase(name or "", pattern) for pattern in patterns)
    ]
