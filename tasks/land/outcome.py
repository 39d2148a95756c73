"""What is asked of the collector, and what came of it; plain values that cross process boundaries as JSON."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveInt, field_validator

from tasks.land.workplaces import Workplace

__all__ = [
    "MAX_DELTA_BYTES",
    "MAX_LINE_BYTES",
    "NOT_UNDERSTOOD",
    "PARENT_WAIT",
    "PROBLEMS_KEPT",
    "LandOptions",
    "LandProblem",
    "Mark",
    "SessionLanding",
    "Waiting",
]

MAX_DELTA_BYTES = 2 << 20
MAX_LINE_BYTES = 32 << 20
PARENT_WAIT = 24 * 3600
NOT_UNDERSTOOD = "not_understood"
"""The rule of a line that landed as it is; the others are about a file that did not land, or not further."""
PROBLEMS_KEPT = 1000
"""A damaged file can be wrong on every line; an outcome names this many and counts the rest."""


class LandOptions(BaseModel):
    """How to land: the clock in nanoseconds, the source bytes of one landed file, and of one line in memory; places of
    work that are known by another name; and how long (seconds from when it was made) a thread whose beginning only its
    parent explains waits for that."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    now: int
    max_delta_bytes: PositiveInt = MAX_DELTA_BYTES
    max_line_bytes: PositiveInt = MAX_LINE_BYTES
    workplaces: tuple[Workplace, ...] = ()
    parent_wait: NonNegativeInt = PARENT_WAIT


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


class Waiting(BaseModel):
    """A file whose end cannot be read yet: what stands before it has landed. One that is `held` is whole, and nothing
    more of it lands until something else is there, or a time has passed."""

    model_config = ConfigDict(frozen=True)

    file: str
    detail: str
    held: bool = False


class Mark(BaseModel):
    """A file that landed by a guess, which is looked at again in every pass until it is known to be right."""

    model_config = ConfigDict(frozen=True)

    file: str
    mark: str


class SessionLanding(BaseModel):
    """One session after its turn: landed files, their records, and the bytes of the source they are made from."""

    model_config = ConfigDict(frozen=True)

    session: str
    files: NonNegativeInt = 0
    records: NonNegativeInt = 0
    source_bytes: NonNegativeInt = 0
    problem_count: NonNegativeInt = 0
    problems: list[LandProblem] = []
    waiting: list[Waiting] = []
    marked: list[Mark] = []
    more: bool = False
    """There is more to land than one pass takes; the next one goes on."""
    unchanged: bool = False
    """Nothing has changed since all of it had landed, so it was not looked at."""

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do until the source changes."""
        held = any(each.held for each in self.waiting)
        return not (self.more or self.problem_count or self.marked or held)

    def after(self, earlier: SessionLanding) -> SessionLanding:
        """Both as one, when a pass was tried again: `self` is how it stands, but what `earlier` landed counts."""
        return self.model_copy(
            update={
                "files": self.files + earlier.files,
                "records": self.records + earlier.records,
                "source_bytes": self.source_bytes + earlier.source_bytes,
                "unchanged": self.unchanged and not earlier.files,
            }
        )
