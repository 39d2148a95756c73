"""The ingest flow's parameters and its summary: what goes in, and what a run says at its end. No Prefect here."""

from __future__ import annotations

import fnmatch
import json
import time
from collections.abc import Callable, Iterable
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, computed_field, field_validator

from flows.console import DONE, PROBLEMS, SYSTEM_FAILED, columns, printable
from flows.settings import load_settings
from schemas.errors import WrongUse
from schemas.times import NO_TIME, parse_time
from tasks.ingest.outcome import IngestOptions, SessionOutcome

__all__ = ["IngestParameters", "IngestSummary", "clock", "parameters_from"]

REASONS_SHOWN = 3


def clock(now: str | None) -> int:
    """`now`, RFC 3339 with up to nine digits of a second, in nanoseconds; the real clock when None. Raises
    `WrongUse`."""
    if now is None:
        return time.time_ns()
    value = parse_time(now)
    if value == NO_TIME:
        raise WrongUse(f"now: {now!r} is no time; write it as 2026-08-07T10:00:00.123456789Z")
    return value


def _configured(name: str) -> Callable[[], Any]:
    return lambda: getattr(load_settings(), name)


class IngestParameters(BaseModel):
    """What one run of the ingest flow works on. What is not given is as configured where the flow runs."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    zone: str = Field(default_factory=_configured("zone"), min_length=1, description="A folder or s3://bucket/prefix.")
    sessions: tuple[str, ...] = Field((), description="Only sessions that match one of these shell patterns.")
    shard_bytes: int = Field(
        default_factory=_configured("shard_bytes"), ge=1, description="Landed bytes that one task works on."
    )
    workers: int = Field(
        default_factory=_configured("workers"), ge=1, description="Shards worked on at once, one process each."
    )
    max_round_bytes: int = Field(
        default_factory=_configured("max_round_bytes"), description="A round's byte budget; 0 or less: the default."
    )
    now: str | None = Field(None, description="The clock, RFC 3339; only conversation.state shows it.")

    @field_validator("zone", mode="before")
    @classmethod
    def _zone_is_known(cls, value: object) -> object:
        if value is None:
            raise ValueError("give -p zone=ZONE, or configure it")
        return value

    @field_validator("sessions", mode="before")
    @classmethod
    def _one_pattern_is_a_list_of_one(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("now")
    @classmethod
    def _now_is_a_time(cls, value: str | None) -> str | None:
        if value is not None and parse_time(value) == NO_TIME:
            raise ValueError("is no time; write it as 2026-08-07T10:00:00.123456789Z")
        return value

    def options(self) -> IngestOptions:
        """For one session; reads the clock when no `now` is given."""
        return IngestOptions(now=clock(self.now), max_round_bytes=self.max_round_bytes)

    def wanted(self, session: str) -> bool:
        """Whether the session filter lets `session` through."""
        return not self.sessions or any(fnmatch.fnmatchcase(session, pattern) for pattern in self.sessions)


def parameters_from(assignments: Iterable[str]) -> IngestParameters:
    """`NAME=VALUE` texts over the settings; several `sessions` are a JSON list. Raises `WrongUse`."""
    given: dict[str, Any] = {}
    for assignment in assignments:
        name, separator, text = assignment.partition("=")
        if not separator:
            raise WrongUse(f"-p {assignment}: write a parameter as NAME=VALUE")
        given[name] = _names(text) if name == "sessions" and text.startswith("[") else text
    try:
        return IngestParameters(**given)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise WrongUse(f"-p {problems}") from None


def _names(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise WrongUse(f"-p sessions: {text} is not a JSON list of patterns") from None


class IngestSummary(BaseModel):
    """A run's sessions, by name, and its totals."""

    model_config = ConfigDict(frozen=True)

    zone: str
    sessions: list[SessionOutcome]

    @classmethod
    def of(cls, zone: str, outcomes: Iterable[SessionOutcome]) -> Self:
        return cls(zone=zone, sessions=sorted(outcomes, key=lambda outcome: outcome.session))

    @computed_field  # type: ignore[prop-decorator]
    @property
    def quarantined(self) -> int:
        """Sessions set aside because their data is bad."""
        return sum(1 for outcome in self.sessions if outcome.problems)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def failed(self) -> int:
        """Sessions that the system could not judge."""
        return sum(1 for outcome in self.sessions if outcome.failure is not None)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def rounds_written(self) -> int:
        return sum(outcome.rounds_written for outcome in self.sessions)

    @property
    def exit_code(self) -> int:
        if self.failed:
            return SYSTEM_FAILED
        return PROBLEMS if self.quarantined else DONE

    @property
    def sentence(self) -> str:
        """How the run went, for a state message and the last line on a terminal."""
        bad = [f"{self.quarantined} quarantined"] if self.quarantined else []
        bad += [f"{self.failed} failed"] if self.failed else []
        found = f"{_counted(len(self.sessions), 'session')}, {_counted(self.rounds_written, 'round')} written"
        return ", ".join([found, *(bad or ["no problems"])])

    def rows(self) -> list[dict[str, object]]:
        """The summary table, one row a session."""
        return [
            {
                "session": outcome.session,
                "rounds": outcome.round,
                "nodes": outcome.nodes,
                "relations": outcome.relations,
                "open unresolved": outcome.open_unresolved,
                "problems": outcome.problems if outcome.failure is None else f"failed: {outcome.failure}",
            }
            for outcome in self.sessions
        ]

    def complaints(self) -> list[str]:
        """One line for each of a bad session's first reasons, and where to find the rest."""
        lines: list[str] = []
        for outcome in self.sessions:
            for reason in outcome.reasons[:REASONS_SHOWN]:
                place = reason.file if reason.row is None else f"{reason.file} row {reason.row}"
                lines.append(printable(f"{outcome.session}: {place}: {reason.rule}: {reason.detail}"))
            if outcome.problems > REASONS_SHOWN:
                more = outcome.problems - REASONS_SHOWN
                lines.append(printable(f"{outcome.session}: {more} more; list them with `sessionmill verify`"))
        return lines

    def text(self) -> str:
        """The summary table as aligned columns; there is at least one session."""
        rows = self.rows()
        return columns(list(rows[0]), [list(row.values()) for row in rows])


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
