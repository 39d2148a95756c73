"""What comes of a session while its sources are landed: counted, and named as far as an outcome names it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tasks.land.outcome import PROBLEMS_KEPT, LandProblem, Mark, SessionLanding, Waiting

__all__ = ["Tally"]


@dataclass(slots=True)
class Tally:
    """The fields of `SessionLanding`, as they grow."""

    files: int = 0
    records: int = 0
    source_bytes: int = 0
    problem_count: int = 0
    problems: list[LandProblem] = field(default_factory=list)
    waiting: list[Waiting] = field(default_factory=list)
    marked: list[Mark] = field(default_factory=list)
    more: bool = False

    def landed(self, records: int, source_bytes: int) -> None:
        """One more file."""
        self.files += 1
        self.records += records
        self.source_bytes += source_bytes

    def report(self, problem: LandProblem) -> None:
        self.problem_count += 1
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append(problem)

    def of(self, session: str) -> SessionLanding:
        return SessionLanding(
            session=session,
            files=self.files,
            records=self.records,
            source_bytes=self.source_bytes,
            problem_count=self.problem_count,
            problems=self.problems,
            waiting=self.waiting,
            marked=self.marked,
            more=self.more,
        )
