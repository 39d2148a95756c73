"""The command that lands a source here and now, without Prefect, and its summary."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Self

import typer
from pydantic import BaseModel, ConfigDict, computed_field

from flows.console import DONE, PROBLEMS, columns, printable, progress, write_json
from flows.parameters import counted
from flows.settings import Settings, load_settings
from flows.summary import clock
from schemas.errors import ConfigurationRejected, WrongUse
from storage.objects import ObjectStore, open_store
from storage.zone import Zone
from tasks.land.archive import land_archive
from tasks.land.kinds import recognise
from tasks.land.outcome import LandOptions, SessionLanding
from tasks.land.quarantine import Note, all_notes
from tasks.land.session import root_name

__all__ = ["LandSummary", "land_source"]

PROBLEMS_SHOWN = 3


class LandSummary(BaseModel):
    """A source's sessions, by name, and its totals; the places that could not be listed are under the name "".
    `noted` is what is known to be wrong with the source, from this pass and earlier ones."""

    model_config = ConfigDict(frozen=True)

    source: str
    zone: str
    kind: str
    sessions: list[SessionLanding]
    noted: list[Note]

    @classmethod
    def of(
        cls, source: str, zone: str, kind: str, outcomes: Iterable[SessionLanding], noted: Iterable[Note] = ()
    ) -> Self:
        sessions = sorted(outcomes, key=lambda each: each.session)
        return cls(source=source, zone=zone, kind=kind, sessions=sessions, noted=list(noted))

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
        if self.noted:
            said += f"; {len(self.noted)} noted in _quarantine/landing/ of the zone"
        if more := sum(each.more for each in sessions):
            said += f"; {counted(more, 'session')} with more to land: run it again"
        return said

    def text(self) -> str:
        """The sessions in which something happened, as aligned columns; empty when there is none."""
        rows = [
            [each.session, each.files, each.records, each.source_bytes, each.problem_count]
            for each in self.sessions
            if each.files or each.problem_count
        ]
        return columns(["session", "files", "records", "bytes", "problems"], rows) if rows else ""

    def complaints(self) -> list[str]:
        """One line for each of a session's first problems, and how to see the rest."""
        lines: list[str] = []
        for each in self.sessions:
            for problem in each.problems[:PROBLEMS_SHOWN]:
                place = problem.file if problem.row is None else f"{problem.file} line {problem.row}"
                lines.append(printable(f"{place}: {problem.rule}: {problem.detail}"))
            if each.problem_count > PROBLEMS_SHOWN:
                more = each.problem_count - PROBLEMS_SHOWN
                lines.append(printable(f"{each.session}: {more} more; --json names them"))
        return lines


def land_source(
    source_url: str, zone_url: str, kind: str, now: str | None, max_delta_bytes: int | None, *, json: bool
) -> int:
    """Land what is new in a source; what is wrong with a session is said and the others go on. The exit code."""
    settings = load_settings(max_delta_bytes=max_delta_bytes)
    options = LandOptions(
        now=clock(now), max_delta_bytes=settings.max_delta_bytes, max_line_bytes=settings.max_line_bytes
    )
    source = open_store(source_url, settings=settings.store())
    source.check_root()
    store = _open_landing_zone(zone_url, source, settings)
    with progress("land") as bar:
        dialect, readable, found = recognise(source, kind)
        bar.start(len(found.sessions))
        outcomes = []
        for outcome in land_archive(Zone(store), readable, dialect, found, options):
            outcomes.append(outcome)
            bar.advance(f"{outcome.session} {counted(sum(each.records for each in outcomes), 'record')}")
    noted = all_notes(store, root_name(source))
    summary = LandSummary.of(source.url, store.url, dialect.name, outcomes, noted)
    if json:
        write_json(summary.model_dump(mode="json"))
        return summary.exit_code
    for line in filter(None, [summary.text(), *summary.complaints(), summary.sentence]):
        typer.echo(line)
    return summary.exit_code


def _open_landing_zone(url: str, source: ObjectStore, settings: Settings) -> ObjectStore:
    """The zone's store; a folder is made, a bucket must be there."""
    if not url:
        raise ConfigurationRejected("ZONE is empty — give a folder or s3://bucket/prefix")
    store = open_store(url, settings=settings.store())
    if store.url == source.url:
        raise WrongUse(f"{url}: SOURCE and ZONE are the same place")
    if "://" not in store.url:
        try:
            Path(store.url).mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise ConfigurationRejected(f"{url} is not a folder") from None
    store.check_root()
    return store
