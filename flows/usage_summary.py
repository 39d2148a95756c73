"""The usage flow's parameters and its summary: what goes in, and what a run says at its end. No Prefect here."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator

from flows.clock import checked_now, clock
from flows.console import DONE, PROBLEMS, printable
from flows.parameters import configured, counted, one_is_a_list
from flows.settings import Settings
from schemas.errors import WrongUse

if TYPE_CHECKING:
    from storage.zone import Zone
    from tasks.usage.outcome import UsageOptions, UsageOutcome
    from tasks.usage.rates import RateCard

__all__ = ["UsageParameters", "UsageSummary", "rate_card"]

PROBLEMS_SHOWN = 10


def rate_card(prices: str | None, settings: Settings) -> RateCard:
    """The prices of a file of the operator's own, before those that are shipped. Raises `WrongUse` for a file that is
    not there, and `ConfigurationRejected` for one that is no table."""
    from tasks.usage import RateCard, load_price_table
    from tasks.usage.price_table import SHIPPED

    documents = [(SHIPPED.name, SHIPPED.read_bytes())]
    own = prices if prices is not None else settings.prices
    if own is not None:
        try:
            documents.insert(0, (own, Path(own).read_bytes()))
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise WrongUse(f"{own}: no such file of prices") from None
    return RateCard(load_price_table(documents))


class UsageParameters(BaseModel):
    """What one run of the usage flow works on. What is not given is as configured where the flow runs."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    zone: str = Field(default_factory=configured("zone"), min_length=1, description="A folder or s3://bucket/prefix.")
    to: str = Field(default_factory=configured("usage"), min_length=1, description="Where the data set is.")
    sessions: tuple[str, ...] = Field((), description="Only sessions that match one of these shell patterns.")
    reprice: bool = Field(False, description="Price again what has a price.")
    prices: str | None = Field(
        default_factory=configured("prices"), description="A file of prices that hold before the others."
    )
    now: str | None = Field(None, description="The clock, RFC 3339: what yesterday is in the artifact.")

    @field_validator("zone", "to", mode="before")
    @classmethod
    def _place_is_known(cls, value: object) -> object:
        if value is None:
            raise ValueError("give -p zone=ZONE and -p to=USAGE, or configure them")
        return value

    @field_validator("sessions", mode="before")
    @classmethod
    def _one_pattern_is_a_list_of_one(cls, value: object) -> object:
        return one_is_a_list(value)

    @field_validator("now")
    @classmethod
    def _now_is_a_time(cls, value: str | None) -> str | None:
        return checked_now(value)

    def options(self, zone: Zone) -> UsageOptions:
        """How to count; reads the clock when no `now` is given. Raises `WrongUse` without any session, or any that
        matches."""
        from flows.sessions import chosen, matching
        from tasks.usage.outcome import UsageOptions

        there = chosen(zone, zone.sessions(), None)
        sessions = tuple(matching(zone, there, self._wanted)) if self.sessions else None
        return UsageOptions(now=clock(self.now), sessions=sessions, reprice=self.reprice)

    def _wanted(self, session: str) -> bool:
        return any(fnmatch.fnmatchcase(session, pattern) for pattern in self.sessions)


class UsageSummary(BaseModel):
    """What a run came to, and the totals of yesterday and its month by model."""

    model_config = ConfigDict(frozen=True)

    zone: str
    usage: str
    changed: bool
    sessions: int
    sessions_counted: int
    records: int
    calls: int
    days_written: int
    files: int
    generation: int
    prices_gained: int
    prices_lost: int
    price_version: str
    problem_count: int
    problems: list[dict[str, Any]]
    totals: list[dict[str, Any]] = []

    @classmethod
    def of(cls, outcome: UsageOutcome, totals: list[dict[str, Any]] | None = None) -> Self:
        return cls(**outcome.model_dump(), totals=totals or [])

    @property
    def exit_code(self) -> int:
        return PROBLEMS if self.problem_count else DONE

    @property
    def sentence(self) -> str:
        """How the run went, for a state message and the last line on a terminal."""
        done = f"{counted(self.days_written, 'day')} written" if self.changed else "nothing new"
        bad = [counted(self.problem_count, "problem")] if self.problem_count else ["no problems"]
        prices = [f"{counted(self.prices_gained, 'call')} got a price"] if self.prices_gained else []
        if self.prices_lost:
            prices.append(f"{counted(self.prices_lost, 'call')} lost the price (no table of this run knows the model)")
        calls = f"{counted(self.calls, 'call')} of {counted(self.sessions, 'session')}"
        return ", ".join([calls, done, *prices, *bad])

    def rows(self) -> list[dict[str, object]]:
        """The artifact: the totals, one row a period and model, in the words and figures of a report."""
        from tasks.report.figures import count, money, named

        return [
            {
                "Period": row["period"],
                "Model": named(row["model"], "model"),
                "Calls": count(row["calls"]),
                "Input": count(row["input"]),
                "Cache write": count(row["cache_write"]),
                "Cache read": count(row["cache_read"]),
                "Output": count(row["output"]),
                "Tokens": count(row["tokens"]),
                "Cost": money(row["cost_microusd"]),
                "No price": count(row["without_price"]) if row["without_price"] else "",
            }
            for row in self.totals
        ]

    def complaints(self) -> list[str]:
        """One line for each of the first problems, and how many more there are."""
        lines = []
        for problem in self.problems[:PROBLEMS_SHOWN]:
            place = problem["file"] if problem["row"] is None else f"{problem['file']} row {problem['row']}"
            lines.append(printable(f"{problem['session']}: {place}: {problem['rule']}: {problem['detail']}"))
        if self.problem_count > PROBLEMS_SHOWN:
            lines.append(f"{self.problem_count - PROBLEMS_SHOWN} more; --json lists the first hundred")
        return lines
