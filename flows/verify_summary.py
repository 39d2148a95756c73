"""The verify flow's parameters and its summary: what goes in, and what a run says at its end. No Prefect here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from pydantic import BaseModel, ConfigDict, computed_field

from flows.console import DONE, PROBLEMS, SYSTEM_FAILED, columns
from flows.parameters import ZoneParameters, counted
from flows.summary import first_complaints
from tasks.verify.outcome import VerifyOutcome

__all__ = ["VerifyParameters", "VerifySummary"]


class VerifyParameters(ZoneParameters):
    """What one run of the verify flow works on. What is not given is as configured where the flow runs."""


class VerifySummary(BaseModel):
    """A run's sessions, by name, and its totals."""

    model_config = ConfigDict(frozen=True)

    zone: str
    sessions: list[VerifyOutcome]

    @classmethod
    def of(cls, zone: str, outcomes: Iterable[VerifyOutcome]) -> Self:
        return cls(zone=zone, sessions=sorted(outcomes, key=lambda outcome: outcome.session))

    @computed_field  # type: ignore[prop-decorator]
    @property
    def problems(self) -> int:
        return sum(outcome.problems for outcome in self.sessions)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def failed(self) -> int:
        """Sessions that the system could not judge."""
        return sum(1 for outcome in self.sessions if outcome.failure is not None)

    @property
    def exit_code(self) -> int:
        if self.failed:
            return SYSTEM_FAILED
        return PROBLEMS if self.problems else DONE

    @property
    def sentence(self) -> str:
        """How the run went, for a state message and the last line on a terminal."""
        records = counted(sum(outcome.records for outcome in self.sessions), "record")
        rounds = counted(sum(outcome.rounds for outcome in self.sessions), "round")
        bad = [counted(self.problems, "problem")] if self.problems else []
        bad += [f"{self.failed} failed"] if self.failed else []
        return ", ".join([counted(len(self.sessions), "session"), records, rounds, *(bad or ["no problems"])])

    def rows(self) -> list[dict[str, object]]:
        """The summary table, one row a session."""
        return [
            {
                "session": outcome.session,
                "streams": outcome.streams,
                "records": outcome.records,
                "rounds": outcome.rounds,
                "problems": outcome.problems if outcome.failure is None else f"failed: {outcome.failure}",
            }
            for outcome in self.sessions
        ]

    def complaints(self) -> list[str]:
        """One line for each of a session's first problems."""
        return [
            line
            for outcome in self.sessions
            for line in first_complaints(outcome.session, outcome.reasons, outcome.problems)
        ]

    def text(self) -> str:
        """The summary table as aligned columns; there is at least one session."""
        rows = self.rows()
        return columns(list(rows[0]), [list(row.values()) for row in rows])
