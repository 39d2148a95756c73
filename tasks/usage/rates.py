"""What a token of a model costs at a time: our own table first, then the packaged genai-prices, offline.

US dollars a million tokens are micro-dollars a token. Rates come in steps: from some size of the whole input on, other
rates hold for the whole call (usage specification, "Money").
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal, NamedTuple

from tasks.usage.price_table import Entry, PriceTable

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice, Provider, TieredPrices

__all__ = ["SCALE", "Ask", "RateCard", "Rates", "Step"]

SCALE = 10**9
"""Rates are whole numbers of this part of a micro-dollar a token."""

LARGEST_RATE = 4_000
PACKAGE = "genai-prices"
OVERRIDES = "overrides"

Grain = Literal["ever", "day", "minute"]
_WITHOUT_RATE = ("requests_kcount", "output_reasoning_mtok", "output_citation_mtok")


class Ask(NamedTuple):
    """What a rate depends on besides time: the model as written, the service tier and the speed it was asked for."""

    model: str
    tier: str | None = None
    speed: str | None = None


class Rates(NamedTuple):
    """Micro-dollars a token, and a web search."""

    input: Decimal
    cache_read: Decimal
    cache_write: Decimal
    cache_write_1h: Decimal
    cache_write_unknown: Decimal
    output: Decimal
    web_search: Decimal


@dataclass(frozen=True, slots=True)
class Step:
    """Rates of calls whose whole input is more than `above` tokens and at most `upto`, and whose they are. What is
    lacking are kinds of tokens without a rate: they cost nothing here. `guesses_writes` says that cache writes of
    unknown time may cost something else than is written here."""

    above: int
    upto: int
    provider: str
    price_model: str
    price_source: str
    rates: Rates
    lacks_input: bool = False
    lacks_output: bool = False
    lacks_other: bool = False
    guesses_writes: bool = False

    def scaled(self) -> tuple[int, ...]:
        """The rates as whole numbers of `SCALE` parts; what is smaller than a part is left out."""
        return tuple(int(rate * SCALE) for rate in self.rates)

    @property
    def is_exact(self) -> bool:
        """Whether `scaled` leaves nothing out, and a million tokens of them still fit into 64 bits."""
        rates = self.rates._replace(web_search=Decimal(0))
        return all(rate * SCALE == part for rate, part in zip(self.rates, self.scaled(), strict=True)) and (
            max(rates) <= LARGEST_RATE
        )


_ENDLESS = 2**62


class RateCard:
    """The rates of both tables. Both versions are in `version`, which rows keep."""

    def __init__(self, table: PriceTable) -> None:
        self._table = table
        self.version = f"{PACKAGE} {version('genai-prices')}, {OVERRIDES} {table.version}"
        self._models: dict[str, tuple[tuple[Entry, ...], tuple[Provider, ModelInfo] | None]] = {}

    def grain(self, ask: Ask) -> Grain:
        """How finely time matters to the rates of `ask`."""
        entries, found = self._look_up(ask.model)
        if entries:
            return "minute"
        if found is None:
            return "ever"
        prices, variants = found[1].prices, found[1].price_variants or ()
        constraints = [each.constraint for each in prices] if isinstance(prices, list) else []
        kinds = {type(each).__name__ for each in (*constraints, *(variant.constraint for variant in variants))}
        if "TimeOfDateConstraint" in kinds:
            return "minute"
        return "day" if "StartDateConstraint" in kinds else "ever"

    def steps(self, ask: Ask, time: datetime) -> list[Step]:
        """The rates at `time`, by size of input; none when no table knows the model."""
        entries, found = self._look_up(ask.model)
        for entry in entries:
            if (rates := entry.rates_at(time)) is not None:
                read = rates.input if rates.cache_read is None else rates.cache_read
                write = rates.input if rates.cache_write is None else rates.cache_write
                hour = write if rates.cache_write_1h is None else rates.cache_write_1h
                unknown = write if rates.cache_write_unknown is None else rates.cache_write_unknown
                every = Rates(rates.input, read, write, hour, unknown, rates.output, Decimal(0))
                guesses = rates.cache_write_unknown is None and write != hour
                return [Step(-1, _ENDLESS, entry.provider, entry.model, OVERRIDES, every, guesses_writes=guesses)]
        if found is None:
            return []
        provider, model = found
        return list(_packaged(model.get_prices(time, _context(ask)), provider.id, model.id))

    def _look_up(self, model: str) -> tuple[tuple[Entry, ...], tuple[Provider, ModelInfo] | None]:
        if model not in self._models:
            self._models[model] = self._table.of(model), _find(model)
        return self._models[model]


def _find(model: str) -> tuple[Provider, ModelInfo] | None:
    """The packaged model of that name, or of the name after the provider's; None for one that is unknown."""
    from genai_prices.data_snapshot import get_snapshot

    snapshot = get_snapshot()
    provider, slash, rest = model.partition("/")
    for name, of in ((model, None), (rest, provider)) if slash else ((model, None),):
        try:
            return snapshot.find_provider_model(name, None, of, None)
        except LookupError:
            continue
    return None


def _context(ask: Ask) -> dict[str, str]:
    """What the package calls the circumstances of a call that have prices of their own."""
    context = {"speed": ask.speed} if ask.speed else {}
    if ask.tier == "batch":
        context["processing"] = "batch"
    elif ask.tier:
        context["service_tier"] = ask.tier
    return context


def _packaged(price: ModelPrice, provider: str, model: str) -> Iterator[Step]:
    rates = {name: value for name, value in price.__dict__.items() if value is not None}
    starts = sorted({tier.start for value in rates.values() for tier in getattr(value, "tiers", ())})
    for above, upto in itertools.pairwise([-1, *starts, _ENDLESS]):
        at = {name: _in_tier(value, above) for name, value in rates.items()}
        base = at.get("input_mtok", Decimal(0))
        write = at.get("cache_write_mtok", base)
        every = Rates(
            input=base,
            cache_read=at.get("cache_read_mtok", base),
            cache_write=at.get("cache_write_5m_mtok", write),
            cache_write_1h=at.get("cache_write_1h_mtok", write),
            cache_write_unknown=at.get("cache_write_5m_mtok", write),
            output=at.get("output_mtok", Decimal(0)),
            web_search=at.get("web_searches_kcount", Decimal(0)) * 1000,
        )
        yield Step(
            above,
            upto,
            provider,
            model,
            PACKAGE,
            every,
            lacks_input="input_mtok" not in at,
            lacks_output="output_mtok" not in at,
            lacks_other=any(name in at for name in _WITHOUT_RATE),
            guesses_writes=every.cache_write != every.cache_write_1h,
        )


def _in_tier(value: Decimal | TieredPrices, above: int) -> Decimal:
    """The rate for inputs of more than `above` tokens: of the highest tier that starts there or below."""
    if isinstance(value, Decimal):
        return value
    rate = value.base
    for tier in value.tiers:
        if tier.start <= above:
            rate = tier.price
    return rate
