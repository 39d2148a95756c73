"""What landing a source says at its end. No Prefect here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from pydantic import BaseModel, ConfigDict, computed_field

from flows.console import DONE, PROBLEMS, SYSTEM_FAILED, columns, printable
from flows.parameters import counted
from tasks.land.outcome import SessionLanding
from tasks.land.quarantine import Note

__all__ = ["LandSummary", "landed", "quarantine_rows"]

PROBLEMS_SHOWN = 3


class LandSummary(BaseModel):
    """A source's sessions, by name, and its totals; the places that could not be listed are under the name "".
    `noted` is what is known to be wrong with the source, from this pass and earlier ones. `failure` says why the source
    was not landed, or not to its end, and `of_system` whether the system is to blame for that."""

    model_config = ConfigDict(frozen=True)

    source: str
    zone: str
    kind: str
    sessions: list[SessionLanding]
    noted: list[Note]
    failure: str | None = None
    of_system: bool = False

    @classmethod
    def of(
        cls,
        source: str,
        zone: str,
        kind: str,
        outcomes: Iterable[SessionLanding],
        noted: Iterable[Note] = (),
        *,
        failure: str | None = None,
        of_system: bool = False,
    ) -> Self:
        sessions = sorted(outcomes, key=lambda each: each.session)
        return cls(
            source=source,
            zone=zone,
            kind=kind,
            sessions=sessions,
            noted=list(noted),
            failure=failure,
            of_system=of_system,
        )

    @computed_field  # type: ignore[prop-decorator]
    @property
    def files(self) -> int:
        return sum(each.files for each in self.sessions)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def records(self) -> int:
        return sum(each.records for each in self.sessions)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def source_bytes(self) -> int:
        return sum(each.source_bytes for each in self.sessions)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def problems(self) -> int:
        return sum(each.problem_count for each in self.sessions)

    @property
    def exit_code(self) -> int:
        if self.failure is not None:
            return SYSTEM_FAILED if self.of_system else PROBLEMS
        return PROBLEMS if self.problems else DONE

    @property
    def sentence(self) -> str:
        """How it went, for the last line on a terminal."""
        sessions = [each for each in self.sessions if each.session]
        said = (
            f"{counted(len(sessions), 'session')}, {counted(self.files, 'file')} landed with "
            f"{counted(self.records, 'record')} from {counted(self.source_bytes, 'byte')}, "
            f"{counted(self.problems, 'problem') if self.problems else 'no problems'}"
        )
        if unchanged := sum(each.unchanged for each in sessions):
            said += f" ({unchanged} unchanged since all had landed, not looked at)"
        if guessed := sum(len(each.marked) for each in sessions):
            said += f"; {counted(guessed, 'file')} landed by a guess (--json names them)"
        if self.noted:
            said += f"; {len(self.noted)} noted in _quarantine/landing/ of the zone"
        if more := sum(each.more for each in sessions):
            said += f"; {counted(more, 'session')} with more to land: run it again"
        return said

    def row(self) -> dict[str, object]:
        """The source in a table of several."""
        return {
            "source": printable(self.source),
            "kind": self.kind,
            "sessions": sum(1 for each in self.sessions if each.session),
            "files": self.files,
            "records": self.records,
            "bytes": self.source_bytes,
            "problems": self.problems if self.failure is None else f"failed: {printable(self.failure)}",
            "noted": len(self.noted),
        }

    def text(self) -> str:
        """The sessions in which something happened, as aligned columns; empty when there is none."""
        rows = [
            [each.session, each.files, each.records, each.source_bytes, each.problem_count]
            for each in self.sessions
            if each.files or each.problem_count
        ]
        return columns(["session", "files", "records", "bytes", "problems"], rows) if rows else ""

    def _failed(self, why: str) -> str:
        """The failure with the source's name, which most failures begin with."""
        return why if why.startswith(f"{self.source}: ") else f"{self.source}: {why}"

    def complaints(self) -> list[str]:
        """One line for each file that waits or whose end does and each of a session's first problems, and how to see
        the rest."""
        lines = [] if self.failure is None else [printable(self._failed(self.failure))]
        for each in self.sessions:
            for tail in each.waiting:
                lines.append(printable(f"{tail.file}: {'waits' if tail.held else 'its end waits'}: {tail.detail}"))
            for problem in each.problems[:PROBLEMS_SHOWN]:
                place = problem.file if problem.row is None else f"{problem.file} line {problem.row}"
                lines.append(printable(f"{place}: {problem.rule}: {problem.detail}"))
            if each.problem_count > PROBLEMS_SHOWN:
                more = each.problem_count - PROBLEMS_SHOWN
                lines.append(printable(f"{each.session}: {more} more; --json names them"))
        return lines


def landed(landings: Sequence[LandSummary]) -> str:
    """How landing several sources went, in a few words."""
    records, size = sum(each.records for each in landings), sum(each.source_bytes for each in landings)
    said = f"{counted(records, 'record')} landed from {counted(size, 'byte')} of {counted(len(landings), 'source')}"
    if problems := sum(each.problems for each in landings):
        said += f", {counted(problems, 'problem')}"
    if failed := sum(each.failure is not None for each in landings):
        said += f", {failed} failed"
    return said


def quarantine_rows(landings: Iterable[LandSummary]) -> list[dict[str, object]]:
    """The table of what is known to be wrong with sources, one row a problem."""
    return [
        {
            "source": printable(landing.source),
            "file": printable(note.problem.file),
            "line": note.problem.row,
            "offset": note.problem.off,
            "rule": note.problem.rule,
            "digest": note.problem.sha,
            "first seen": note.first_seen,
            "detail": printable(note.problem.detail),
        }
        for landing in landings
        for note in landing.noted
    ]
