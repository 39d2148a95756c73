"""What is asked of the collector, and what came of it; plain values that cross process boundaries as JSON."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveInt

__all__ = ["MAX_DELTA_BYTES", "MAX_LINE_BYTES", "PROBLEMS_KEPT", "LandOptions", "LandProblem", "SessionLanding"]

MAX_DELTA_BYTES = 2 << 20
MAX_LINE_BYTES = 32 << 20
PROBLEMS_KEPT = 1000
"""A damaged file can be wrong on every line; an outcome names this many and counts the rest."""


class LandOptions(BaseModel):
    """How to land: the clock in nanoseconds, the source bytes of one landed file, and of one line in memory."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    now: int
    max_delta_bytes: PositiveInt = MAX_DELTA_BYTES
    max_line_bytes: PositiveInt = MAX_LINE_BYTES


class LandProblem(BaseModel):
    """One rule that a file of the source breaks; `row` is a line's number from 1, None for the file as a whole."""

    model_config = ConfigDict(frozen=True)

    file: str
    row: int | None
    rule: str
    detail: str


class SessionLanding(BaseModel):
    """One session after its turn: landed files, their records, and the bytes of the source they are made from."""

    model_config = ConfigDict(frozen=True)

    session: str
    files: NonNegativeInt = 0
    records: NonNegativeInt = 0
    source_bytes: NonNegativeInt = 0
    problem_count: NonNegativeInt = 0
    problems: list[LandProblem] = []
    more: bool = False
    """There is more to land than one pass takes; the next one goes on."""
    unchanged: bool = False
    """Nothing has changed since all of it had landed, so it was not looked at."""
