"""After a run: its transcripts land like any source, the sessions are assembled and verified, and its row is written.

Every step may be done again, and comes to the same: a run whose process was killed between two of them is settled by
whoever finds it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from schemas.agent_record import RunEnd, Settlement
from schemas.errors import ObjectExists
from schemas.times import format_time
from schemas.usage_run import RunRow
from storage.agent_runs import AgentRuns
from storage.objects import ObjectStore, StoreSettings, open_store
from storage.usage_dataset import write_run
from storage.zone import Zone
from tasks.agents.report import run_row
from tasks.ingest.outcome import IngestOptions, SessionOutcome
from tasks.ingest.session import ingest_session
from tasks.land.kinds import recognise
from tasks.land.outcome import LandOptions, SessionLanding
from tasks.land.session import land_session
from tasks.land.workplaces import Workplace

if TYPE_CHECKING:
    from schemas.agent_spec import AgentSpec
    from tasks.usage.outcome import UsageProblem
    from tasks.usage.rates import RateCard

__all__ = ["Destinations", "Settled", "schedule_of", "settle"]


@dataclass(frozen=True)
class Destinations:
    """Where what comes of a run goes; None leaves the step out."""

    runs: AgentRuns
    store: StoreSettings
    zone: Zone | None
    usage: ObjectStore | None
    card: RateCard | None
    """Prices for the rows of calls; None: no such rows are written."""
    land: LandOptions
    ingest: IngestOptions


@dataclass(frozen=True)
class Settled:
    """A run, what landed of it, and what became of those sessions."""

    end: RunEnd
    landings: tuple[SessionLanding, ...]
    sessions: tuple[SessionOutcome, ...]
    row: str | None
    uncounted: tuple[UsageProblem, ...] = ()
    """What is wrong with the evidence of calls; the first of it."""
    uncounted_count: int = 0

    @property
    def problems(self) -> int:
        """What is wrong with what landed, or was counted."""
        landed = sum(each.problem_count for each in self.landings) + sum(each.problems for each in self.sessions)
        return landed + self.uncounted_count

    def named_problems(self) -> list[dict[str, Any]]:
        """The first problems of each session, and of the count of its calls: file, row, rule and detail."""
        names = {"file", "row", "rule", "detail"}
        found: list[dict[str, Any]] = []
        for landing in self.landings:
            found += [{"session": landing.session} | each.model_dump(include=names) for each in landing.problems]
        for outcome in self.sessions:
            found += [{"session": outcome.session} | each.model_dump(include=names) for each in outcome.reasons]
        return [*found, *(each.model_dump() for each in self.uncounted)]


def settle(end: RunEnd, schedule: str | None, to: Destinations) -> Settled:
    """Land, assemble and verify the sessions of a run, write its row and those of its calls, and then that it is
    settled."""
    landings = _land(end, to)
    zone = to.zone
    sessions = () if zone is None else tuple(ingest_session(zone, each.session, to.ingest) for each in landings)
    row = None
    if to.usage is not None:
        try:
            row = write_run(to.usage, _row(end, schedule, [each.session for each in landings], to))
        except ObjectExists as written:
            # It was settled in part before, when the agent had another schedule: a run has one row.
            row = written.key
    landed = tuple(each.session for each in landings)
    settled = Settled(end, landings, sessions, row, *_count(landed, to))
    to.runs.settle(end.agent, end.run_id, Settlement(at=format_time(time.time_ns()), sessions=landed))
    return settled


def schedule_of(spec: AgentSpec) -> str | None:
    """An agent's schedule as rows have it."""
    return None if spec.schedule is None else f"{spec.schedule.cron} {spec.schedule.timezone}"


def _row(end: RunEnd, schedule: str | None, sessions: list[str], to: Destinations) -> RunRow:
    """The run's row; of a run whose process was killed it has the figures of what landed."""
    folder = to.runs.folder(end.agent, end.run_id)
    if end.calls is None and sessions and to.zone is not None:
        # polars, which counts, takes a third of a second to import.
        from tasks.agents.landed_calls import with_landed_figures

        counted = with_landed_figures(end, to.zone, sessions)
        if counted is not None:
            return run_row(counted, schedule, folder, counted_by="landed")
    return run_row(end, schedule, folder)


def _count(sessions: tuple[str, ...], to: Destinations) -> tuple[tuple[UsageProblem, ...], int]:
    """Count the calls of these sessions into the usage data set; what is wrong with them, and how many things are."""
    if to.zone is None or to.usage is None or to.card is None or not sessions:
        return (), 0
    # polars, which counts, takes a third of a second to import.
    from tasks.usage import UsageOptions, count_usage

    options = UsageOptions(now=to.land.now, sessions=sessions)
    counted = count_usage(to.zone, to.usage, to.card, options)
    return tuple(counted.problems), counted.problem_count


def _land(end: RunEnd, to: Destinations) -> tuple[SessionLanding, ...]:
    """Each session that the run's transcripts hold, landed."""
    if to.zone is None or end.transcript_kind is None or not end.transcripts:
        return ()
    folder = f"{to.runs.folder(end.agent, end.run_id)}transcripts/{end.transcript_kind}"
    source = open_store(f"{to.runs.store.url.rstrip('/')}/{folder}", settings=to.store)
    dialect, readable, found = recognise(source, end.transcript_kind)
    options = to.land.model_copy(update={"workplaces": _workplaces(end, to.runs)})
    return tuple(
        land_session(to.zone, readable, dialect, name, sightings, options) for name, sightings in found.sessions.items()
    )


def _workplaces(end: RunEnd, runs: AgentRuns) -> tuple[Workplace, ...]:
    """What the run's workspace was made from, where that is gone: its transcripts name a folder that nobody knows."""
    start = runs.start(end.agent, end.run_id)
    if start is None or start.workspace is None or start.project is None:
        return ()
    return (Workplace(folder=start.workspace, project=start.project),)
