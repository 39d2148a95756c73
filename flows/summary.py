"""The ingest flow's parameters and its summary: what goes in, and what a run says at its end. No Prefect here."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, computed_field, field_validator

from flows.console import DONE, PROBLEMS, SYSTEM_FAILED, columns, printable
from flows.export_summary import ExportParameters, ExportSummary
from flows.parameters import ZoneParameters, configured, counted
from schemas.errors import WrongUse
from schemas.times import NO_TIME, parse_time
from storage.zone import quarantine_key
from tasks.ingest.outcome import IngestOptions, Reason, SessionOutcome
from tasks.verify import Problem

__all__ = ["IngestParameters", "IngestSummary", "clock", "complaint", "first_complaints"]

REASONS_SHOWN = 3


def clock(now: str | None) -> int:
    """`now`, RFC 3339 with up to nine digits of a second, in nanoseconds; the real clock when None. Raises
    `WrongUse`."""
    if now is None:
        return time.time_ns()
    value = parse_time(now)
    # 64 bits of nanoseconds end in 2262, and a year beyond them would come back as another.
    if value == NO_TIME or not "1678" <= now[:4] <= "2261":
        raise WrongUse(f"now: {now!r} is no time; write it as 2026-08-07T10:00:00.123456789Z")
    return value


def complaint(session: str, reason: Reason | Problem) -> str:
    """One thing that is wrong with a session, in one line."""
    place = reason.file if reason.row is None else f"{reason.file} row {reason.row}"
    places = [session] if place == session else [session, place]
    return printable(": ".join([*places, reason.rule, reason.detail]))


def first_complaints(session: str, reasons: list[Reason], problems: int) -> list[str]:
    """The first reasons, one line each, and how to see the rest."""
    lines = [complaint(session, reason) for reason in reasons[:REASONS_SHOWN]]
    if problems > REASONS_SHOWN:
        more = problems - REASONS_SHOWN
        lines.append(printable(f"{session}: {more} more; list them with `sessionmill verify`"))
    return lines


class IngestParameters(ZoneParameters):
    """What one run of the ingest flow works on. What is not given is as configured where the flow runs."""

    max_round_bytes: int = Field(
        default_factory=configured("max_round_bytes"), description="A round's byte budget; 0 or less: the default."
    )
    now: str | None = Field(None, description="The clock, RFC 3339; only conversation.state shows it.")
    export_to: str | None = Field(None, description="Export completed sessions here afterwards; none: do not export.")

    @field_validator("now")
    @classmethod
    def _now_is_a_time(cls, value: str | None) -> str | None:
        if value is not None and parse_time(value) == NO_TIME:
            raise ValueError("is no time; write it as 2026-08-07T10:00:00.123456789Z")
        return value

    def options(self) -> IngestOptions:
        """For one session; reads the clock when no `now` is given."""
        return IngestOptions(now=clock(self.now), max_round_bytes=self.max_round_bytes)

    def export(self) -> ExportParameters | None:
        """The export that follows, if one does: the same sessions, the rest as configured."""
        if self.export_to is None:
            return None
        return ExportParameters(
            zone=self.zone,
            to=self.export_to,
            sessions=self.sessions,
            workers=self.workers,
            shard_bytes=self.shard_bytes,
        )


class IngestSummary(BaseModel):
    """A run's sessions, by name, and its totals."""

    model_config = ConfigDict(frozen=True)

    zone: str
    sessions: list[SessionOutcome]
    exports: ExportSummary | None = None

    @classmethod
    def of(cls, zone: str, outcomes: Iterable[SessionOutcome], exports: ExportSummary | None = None) -> Self:
        return cls(zone=zone, sessions=sorted(outcomes, key=lambda outcome: outcome.session), exports=exports)

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

    @computed_field  # type: ignore[prop-decorator]
    @property
    def unchanged(self) -> int:
        """Sessions that were not read again, for nothing has changed since they were found good."""
        return sum(1 for outcome in self.sessions if outcome.unchanged)

    @property
    def exit_code(self) -> int:
        of_exports = DONE if self.exports is None else self.exports.exit_code
        if self.failed:
            return SYSTEM_FAILED
        return max(PROBLEMS if self.quarantined else DONE, of_exports)

    @property
    def sentence(self) -> str:
        """How the run went, for a state message and the last line on a terminal."""
        bad = [f"{self.quarantined} quarantined"] if self.quarantined else []
        bad += [f"{self.failed} failed"] if self.failed else []
        found = f"{counted(len(self.sessions), 'session')}, {counted(self.rounds_written, 'round')} written"
        said = ", ".join([found, *(bad or ["no problems"])])
        if self.unchanged:
            said += f" ({self.unchanged} unchanged since found good, not read again)"
        return said if self.exports is None else f"{said}; exports: {self.exports.sentence}"

    def rows(self) -> list[dict[str, object]]:
        """The summary table, one row a session."""
        return [
            {
                "session": outcome.session,
                "rounds": outcome.round,
                "nodes": outcome.nodes,
                "relations": outcome.relations,
                "open unresolved": outcome.open_unresolved,
                "state": outcome.state,
                "problems": outcome.problems if outcome.failure is None else f"failed: {outcome.failure}",
            }
            for outcome in self.sessions
        ]

    def complaints(self) -> list[str]:
        """One line for each of a bad session's first reasons, and where to find the rest."""
        lines: list[str] = []
        for outcome in self.sessions:
            lines += first_complaints(outcome.session, outcome.reasons, outcome.problems)
            if outcome.problems:
                lines.append(printable(f"{outcome.session}: the note is {quarantine_key(outcome.session)} in the zone"))
        return lines

    def text(self) -> str:
        """The summary table as aligned columns; there is at least one session."""
        rows = self.rows()
        return columns(list(rows[0]), [list(row.values()) for row in rows])
