"""Our own table of prices, laid over the packaged one: what that has wrong, and what an operator pays instead.

An entry says for which models and from when to when its rates hold; bands are hours of the week with rates of their own
(usage specification, "Money"). ``prices.yaml`` beside this module is the table that is shipped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fnmatch import translate
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import yaml
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from schemas.errors import ConfigurationRejected

__all__ = ["Entry", "PriceTable", "Rates", "load_price_table", "shipped_price_table"]

SHIPPED = Path(__file__).with_name("prices.yaml")

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
_DAYS: tuple[Day, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_HOURS = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-4]):([0-5][0-9])")
_STRICT = ConfigDict(frozen=True, extra="forbid")
_FORM = "prices: [{model: my-model, provider: example, rates: {input: 0.10, output: 0.40}}]"
_WORDS = {"missing": "it is missing", "extra_forbidden": "there is no such key"}


def _whole_minute(time: datetime) -> datetime:
    if time.second or time.microsecond:
        raise ValueError("a price begins and ends on a whole minute")
    return time


def _minutes(hours: str) -> str:
    match = _HOURS.fullmatch(hours)
    if match is None:
        raise ValueError("hours are written HH:MM-HH:MM, as in 01:00-04:00")
    start, end = _span(hours)
    if not start < end <= 24 * 60:
        raise ValueError("hours end after they start, on the same day: write two spans to pass midnight")
    return hours


def _span(hours: str) -> tuple[int, int]:
    start, end = ((int(text[:2]) * 60 + int(text[3:])) for text in hours.split("-"))
    return start, end


def _zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"no time zone is called {name}") from None
    return name


Rate = Annotated[Decimal, Field(ge=0, le=4_000, allow_inf_nan=False)]
Minute = Annotated[AwareDatetime, AfterValidator(_whole_minute)]


class Rates(BaseModel):
    """US dollars a million tokens. Without rates of their own, cache writes of one hour and of unknown time cost what
    one of five minutes does (`cache_write`), and that, as a cache read, what other input does."""

    model_config = _STRICT

    input: Rate
    output: Rate
    cache_read: Rate | None = None
    cache_write: Rate | None = None
    cache_write_1h: Rate | None = None
    cache_write_unknown: Rate | None = None


class Band(BaseModel):
    """Hours of the week, in a zone's own time, at which other rates hold; without `days`, of every day."""

    model_config = _STRICT

    zone: Annotated[str, AfterValidator(_zone)] = "UTC"
    days: tuple[Day, ...] = _DAYS
    hours: tuple[Annotated[str, AfterValidator(_minutes)], ...] = ("00:00-24:00",)
    rates: Rates

    def holds(self, time: datetime) -> bool:
        local = time.astimezone(ZoneInfo(self.zone))
        minute = local.hour * 60 + local.minute
        return _DAYS[local.weekday()] in self.days and any(
            start <= minute < end for start, end in map(_span, self.hours)
        )


class Entry(BaseModel):
    """Rates of the models that `model` matches (a pattern with * and ?, whatever the case), from `valid_from` until
    before `valid_to`, whole minutes both. Of several bands that hold, the first counts."""

    model_config = _STRICT

    model: Annotated[str, Field(min_length=1)]
    provider: Annotated[str, Field(min_length=1)]
    valid_from: Minute | None = None
    valid_to: Minute | None = None
    rates: Rates
    bands: tuple[Band, ...] = ()

    @model_validator(mode="after")
    def _ends_after_it_begins(self) -> Entry:
        if self.valid_from is not None and self.valid_to is not None and self.valid_from >= self.valid_to:
            raise ValueError("valid_to is after valid_from")
        return self

    def matches(self, model: str) -> bool:
        """Whether `model`, with or without this provider's name and a slash before it, is one of the entry's."""
        name = model.lower().removeprefix(f"{self.provider.lower()}/")
        return re.fullmatch(translate(self.model.lower()), name) is not None

    def rates_at(self, time: datetime) -> Rates | None:
        """The rates at that time, None outside the entry's validity."""
        if (self.valid_from is not None and time < self.valid_from) or (
            self.valid_to is not None and time >= self.valid_to
        ):
            return None
        return next((band.rates for band in self.bands if band.holds(time)), self.rates)


class _File(BaseModel):
    model_config = _STRICT

    prices: tuple[Entry, ...]


@dataclass(frozen=True)
class PriceTable:
    """Entries, the most important first, and the digest of the files they are from."""

    entries: tuple[Entry, ...]
    digest: str

    @cached_property
    def version(self) -> str:
        return self.digest[:12]

    def of(self, model: str) -> tuple[Entry, ...]:
        """The entries for that model, whatever their time."""
        return tuple(entry for entry in self.entries if entry.matches(model))


def load_price_table(documents: Sequence[tuple[str, bytes]]) -> PriceTable:
    """The table of (name, YAML) documents: an earlier one's entries come before a later one's.

    Raises `ConfigurationRejected`, which names the entry by its number from 1, and the key.
    """
    entries: list[Entry] = []
    for name, data in documents:
        try:
            value: Any = yaml.safe_load(data)
        except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
            detail = " ".join(str(error).split())
            raise _rejected(name, f"it is not YAML: {detail}") from None
        try:
            entries += _File.model_validate(value).prices
        except ValidationError as error:
            raise _rejected(name, _first_of(error)) from None
    return PriceTable(tuple(entries), sha256(b"\0".join(data for _, data in documents)).hexdigest())


def _first_of(error: ValidationError) -> str:
    """The first thing that is wrong, and where: the row, and the keys that lead to it."""
    first = error.errors()[0]
    row = [f"row {each + 1}" for each in first["loc"][1:2] if isinstance(each, int)]
    keys = ".".join(str(each) for each in (first["loc"][2:] if row else first["loc"]))
    words = _WORDS.get(first["type"], first["msg"].removeprefix("Value error, "))
    return ": ".join([*row, *([keys] if keys else []), words])


def _rejected(name: str, detail: str) -> ConfigurationRejected:
    return ConfigurationRejected(f"{name}: {detail} — a file of prices is written as in {_FORM}")


def shipped_price_table() -> PriceTable:
    """The table that is part of this project."""
    return load_price_table([(SHIPPED.name, SHIPPED.read_bytes())])
