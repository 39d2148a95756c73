"""What came of verifying one session, as a plain value that crosses process boundaries as JSON."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, NonNegativeInt

from tasks.ingest.outcome import REASONS_KEPT, Reason
from tasks.verify.problems import SessionVerification

__all__ = ["VerifyOutcome", "outcome_of"]


class VerifyOutcome(BaseModel):
    """One session, verified: what was read, how many rules are broken, and the first of them."""

    model_config = ConfigDict(frozen=True)

    session: str
    streams: NonNegativeInt = 0
    records: NonNegativeInt = 0
    relanded: NonNegativeInt = 0
    rounds: NonNegativeInt = 0
    problems: NonNegativeInt = 0
    reasons: list[Reason] = []
    failure: str | None = None
    """Set when the system failed rather than the data: the session was not judged at all."""


def outcome_of(verification: SessionVerification) -> VerifyOutcome:
    """A verification with its first problems."""
    reasons = [
        Reason(file=problem.file, row=problem.row, rule=problem.rule, detail=problem.detail)
        for problem in verification.problems[:REASONS_KEPT]
    ]
    return VerifyOutcome(
        session=verification.session,
        streams=verification.streams,
        records=verification.records,
        relanded=verification.relanded,
        rounds=verification.rounds,
        problems=len(verification.problems),
        reasons=reasons,
    )
