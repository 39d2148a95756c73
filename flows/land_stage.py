"""The landing stage of the ingest flow: every source lands as a Prefect task of its own, before sessions are listed.

A source that cannot be landed stops no other. What it was about stands in the summary and in two table artifacts.
"""

# No postponed annotations here: a served flow is pickled with the globals that its code names, its annotations' not.

import asyncio

from prefect.artifacts import acreate_table_artifact

from flows.land_summary import LandSummary, quarantine_rows
from flows.parameters import counted
from flows.settings import Settings, open_landing_zone
from flows.stage import over_shards
from flows.summary import IngestParameters
from flows.watch import Watcher
from tasks.land.outcome import SessionLanding
from tasks.land.selection import Archive
from tasks.land.work import LandWork, News, SourceLanding
from tasks.shards import Shard
from tasks.shards.task import Finished

__all__ = ["LAND_KEY", "QUARANTINE_KEY", "land_sources"]

LAND_KEY = "land-summary"
QUARANTINE_KEY = "quarantine"
ROWS_SHOWN = 1000
"""A table of this many rows is as much as a person looks at; the notes in the zone hold all."""


class Progress:
    """Sessions, records and bytes of all sources so far, told to whoever watches. `sessions` counts the steps."""

    def __init__(self, watch: Watcher) -> None:
        self._watch = watch
        self.sessions = self._records = self._bytes = 0

    def found(self, sessions: int) -> None:
        self.sessions += sessions
        self._watch(self.sessions, None)

    def landed(self, landing: SessionLanding) -> None:
        self._records += landing.records
        self._bytes += landing.source_bytes
        self._watch(
            self.sessions,
            f"{landing.session} landed: {counted(self._records, 'record')}, {counted(self._bytes, 'byte')}",
        )


class Landing:
    """What comes of one source while its task runs, and is tried again."""

    def __init__(self, archive: Archive, progress: Progress) -> None:
        self._archive = archive
        self._progress = progress
        self._found = False
        self._sessions: dict[str, SessionLanding] = {}
        self.finished: Finished[SourceLanding] = Finished(lambda outcome: None, self._hear)

    def _hear(self, text: str) -> None:
        news = News.model_validate_json(text)
        if news.sessions is not None and not self._found:
            self._found = True
            self._progress.found(news.sessions)
        if (landing := news.landing) is not None:
            earlier = self._sessions.get(landing.session)
            self._sessions[landing.session] = landing if earlier is None else landing.after(earlier)
            if earlier is None:
                self._progress.landed(landing)

    def summary(self, zone: str) -> LandSummary:
        (outcome,) = self.finished.outcomes()
        return LandSummary.of(
            outcome.url,
            zone,
            outcome.kind,
            self._sessions.values(),
            outcome.noted,
            failure=outcome.failure,
            of_system=outcome.of_system,
        )


async def land_sources(
    parameters: IngestParameters, settings: Settings, watch: Watcher
) -> tuple[list[LandSummary], int]:
    """What came of each source, in the order given, and how many steps were watched. Raises `ConfigurationRejected`
    for a zone that cannot be."""
    if not parameters.sources:
        return [], 0
    await asyncio.to_thread(open_landing_zone, parameters.zone, settings)
    options = settings.landing(parameters.options().now)
    progress = Progress(watch)
    landings = [Landing(archive, progress) for archive in parameters.sources]
    shards = [
        (
            Shard(number=number, sessions=(archive.url,), size=0),
            LandWork(zone=parameters.zone, store=settings.store(), archive=archive, options=options),
            landing.finished,
        )
        for number, (archive, landing) in enumerate(zip(parameters.sources, landings, strict=True), 1)
    ]
    await over_shards("land source", shards, parameters)
    summaries = [landing.summary(parameters.zone) for landing in landings]
    await _show(summaries)
    return summaries, progress.sessions


async def _show(summaries: list[LandSummary]) -> None:
    """Leave two tables: what landed, and what is known to be wrong."""
    records = sum(each.records for each in summaries)
    said = f"{counted(len(summaries), 'source')}, {counted(records, 'record')} landed"
    await acreate_table_artifact(table=[each.row() for each in summaries], key=LAND_KEY, description=said)
    rows = quarantine_rows(summaries)
    said = f"{counted(len(rows), 'problem')} known" + (f", the first {ROWS_SHOWN}" if len(rows) > ROWS_SHOWN else "")
    await acreate_table_artifact(table=rows[:ROWS_SHOWN], key=QUARANTINE_KEY, description=said)
