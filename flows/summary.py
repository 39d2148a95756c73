"""The ingest flow's parameters and its summary: what goes in, and what a run says at its end. No Prefect here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, computed_field, field_validator

from flows.clock import checked_now, clock
from flows.console import DONE, PROBLEMS, SYSTEM_FAILED, columns, printable
from flows.export_summary import ExportParameters, ExportSummary
from flows.land_summary import LandSummary, landed
from flows.parameters import ZoneParameters, configured, counted
from flows.sources import Sources
from flows.usage_summary import UsageParameters, UsageSummary
from storage.zone import quarantine_key
from tasks.ingest.outcome import IngestOptions, Reason, SessionOutcome
from tasks.verify import Problem

__all__ = ["IngestParameters", "IngestSummary", "complaint", "first_complaints"]

REASONS_SHOWN = 3


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
    usage_to: str | None = Field(None, description="Count usage into this data set afterwards; none: do not count.")
    sources: Sources = Field(
        default_factory=configured("sources"), description="Archives that are landed before; none: land nothing."
    )

    @field_validator("now")
    @classmethod
    def _now_is_a_time(cls, value: str | None) -> str | None:
        return checked_now(value)

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

    def usage(self) -> UsageParameters | None:
        """The count that follows, if one does: of the same sessions, the rest as configured."""
        if self.usage_to is None:
            return None
        return UsageParameters(zone=self.zone, to=self.usage_to, sessions=self.sessions, now=self.now)


class IngestSummary(BaseModel):
    """A run's sessions, by name, and its totals."""

    model_config = ConfigDict(frozen=True)

    zone: str
    sessions: list[SessionOutcome]
    exports: ExportSummary | None = None
    landings: list[LandSummary] = []
    usage: UsageSummary | None = None

    @classmethod
    def of(
        cls,
        zone: str,
        outcomes: Iterable[SessionOutcome],
        exports: ExportSummary | None = None,
        landings: Iterable[LandSummary] = (),
        usage: UsageSummary | None = None,
    ) -> Self:
        sessions = sorted(outcomes, key=lambda outcome: outcome.session)
        return cls(zone=zone, sessions=sessions, exports=exports, landings=list(landings), usage=usage)

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
        others = [each.exit_code for each in (*self.landings, self.exports, self.usage) if each is not None]
        if self.failed:
            return SYSTEM_FAILED
        return max(PROBLEMS if self.quarantined else DONE, *others, DONE)

    @property
    def sentence(self) -> str:
        """How the run went, for a state message and the last line on a terminal."""
        bad = [f"{self.quarantined} quarantined"] if self.quarantined else []
        bad += [f"{self.failed} failed"] if self.failed else []
        found = f"{counted(len(self.sessions), 'session')}, {counted(self.rounds_written, 'round')} written"
        said = ", ".join([found, *(bad or ["no problems"])])
        if self.unchanged:
            said += f" ({self.unchanged} unchanged since found good, not read again)"
        if self.landings:
            said = f"{landed(self.landings)}; {said}"
        said += f"; exports: {self.exports.sentence}" if self.exports is not None else ""
        return f"{said}; usage: {self.usage.sentence}" if self.usage is not None else said

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
        lines = [line for landing in self.landings for line in landing.complaints()]
        for outcome in self.sessions:
            lines += first_complaints(outcome.session, outcome.reasons, outcome.problems)
            if outcome.problems:
                lines.append(printable(f"{outcome.session}: the note is {quarantine_key(outcome.session)} in the zone"))
        return lines

    def text(self) -> str:
        """The summary table as aligned columns; there is at least one session."""
        rows = self.rows()
        return columns(list(rows[0]), [list(row.values()) for row in rows])
