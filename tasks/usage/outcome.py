"""What counting is asked for, and what comes of it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from schemas.errors import RejectedData

__all__ = ["PROBLEMS_KEPT", "UsageOptions", "UsageOutcome", "UsageProblem"]

PROBLEMS_KEPT = 100


class UsageProblem(BaseModel):
    """One thing that is wrong with the evidence. `row` counts from 1 and is None when the whole file is meant."""

    model_config = ConfigDict(frozen=True)

    session: str
    file: str
    row: int | None = None
    rule: str
    detail: str

    @classmethod
    def of(cls, session: str, error: Exception) -> UsageProblem:
        shown = session.encode("utf-8", "backslashreplace").decode()
        if isinstance(error, RejectedData):
            return cls(session=shown, file=error.file, row=error.row, rule=error.rule, detail=error.detail)
        if isinstance(error, UnicodeEncodeError):
            return cls(session=shown, file=shown, rule="unreadable", detail="the folder's name is not UTF-8 text")
        return cls(session=shown, file=getattr(error, "key", shown), rule="unreadable", detail=str(error))


class UsageOptions(BaseModel):
    """`sessions` None means all. `now`, in nanoseconds since the epoch, only judges which forgotten files are old.

    `part_rows` bounds the rows of one call file, `batch_rows` how many are in memory at once, about; neither has to do
    with what is counted.
    """

    model_config = ConfigDict(frozen=True)

    now: int
    sessions: tuple[str, ...] | None = None
    reprice: bool = False
    part_rows: Annotated[int, Field(ge=1)] = 1_000_000
    batch_rows: Annotated[int, Field(ge=1)] = 1_000_000


class UsageOutcome(BaseModel):
    """What one run did to a data set. `records` are those with usage that were new; `calls` are all rows afterwards.

    `prices_gained` are rows that were there without a price and have one now, `prices_lost` the other way around.
    """

    zone: str
    usage: str
    generation: int
    changed: bool
    sessions: int
    sessions_counted: int
    records: int
    calls: int
    days_written: int
    files: int
    prices_gained: int
    prices_lost: int
    price_version: str
    problem_count: int
    problems: list[UsageProblem]

    @property
    def exit_code(self) -> int:
        """1 when something is wrong with the evidence."""
        return 1 if self.problem_count else 0
