"""What is asked of the collector, and what came of it; plain values that cross process boundaries as JSON."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveInt, field_validator

__all__ = [
    "MAX_DELTA_BYTES",
    "MAX_LINE_BYTES",
    "NOT_UNDERSTOOD",
    "PROBLEMS_KEPT",
    "LandOptions",
    "LandProblem",
    "SessionLanding",
]

MAX_DELTA_BYTES = 2 << 20
MAX_LINE_BYTES = 32 << 20
NOT_UNDERSTOOD = "not_understood"
"""The rule of a line that landed as it is; the others are about a file that did not land, or not further."""
PROBLEMS_KEPT = 1000
"""A damaged file can be wrong on every line; an outcome names this many and counts the rest."""


class LandOptions(BaseModel):
    """How to land: the clock in nanoseconds, the source bytes of one landed file, and of one line in memory."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    now: int
    max_delta_bytes: PositiveInt = MAX_DELTA_BYTES
    max_line_bytes: PositiveInt = MAX_LINE_BYTES


class LandProblem(BaseModel):
    """One rule that a file of the source breaks; `row` is a line's number from 1, `off` its byte offset and `sha` the
    start of its SHA-256; None and "" for the file as a whole."""

    model_config = ConfigDict(frozen=True)

    file: str
    row: int | None
    rule: str
    detail: str
    off: int | None = None
    sha: str = ""

    @field_validator("file", "detail", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        """A file system's name may not even be text; it is then shown with escapes."""
        return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


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
