"""What is asked for a session, and what came of it; plain values that cross process boundaries as JSON."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, NonNegativeInt

__all__ = ["REASONS_KEPT", "IngestOptions", "Reason", "SessionOutcome"]

REASONS_KEPT = 1000
"""A damaged session can break a rule on every line; `sessionmill verify` lists them all, an outcome this many."""


class IngestOptions(BaseModel):
    """How to assemble: the clock in nanoseconds, and a round's budget in bytes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    now: int
    max_round_bytes: int


class Reason(BaseModel):
    """Why a session is set aside: one rule that one file, or the session as a whole, breaks."""

    model_config = ConfigDict(frozen=True)

    file: str
    row: int | None
    rule: str
    detail: str


class SessionOutcome(BaseModel):
    """One session after its turn. Counts are those of the conversation's newest round; zero when there is none."""

    model_config = ConfigDict(frozen=True)

    session: str
    conversation: str = ""
    rounds_written: NonNegativeInt = 0
    round: NonNegativeInt = 0
    digest: str = ""
    nodes: NonNegativeInt = 0
    relations: NonNegativeInt = 0
    open_unresolved: NonNegativeInt = 0
    through_seq: NonNegativeInt = 0
    records: NonNegativeInt = 0
    unchanged: bool = False
    """Nothing has changed since it was found good, so it was not read again."""
    problems: NonNegativeInt = 0
    reasons: list[Reason] = []
    failure: str | None = None
    """Set when the system failed rather than the data: the session was not judged at all."""

    @property
    def state(self) -> str:
        """One word for how it stands."""
        if self.failure is not None:
            return "failed"
        if self.problems:
            return "quarantined"
        return "unchanged" if self.unchanged else "good"
