"""The ingest flow: sources land, then every session of the zone is assembled and verified; the bad ones are set aside,
and the run says so. Where asked, completed sessions are then exported, and usage is counted.

`python -m flows.ingest` serves the flow to a Prefect server, hourly; `sessionmill run ingest` runs it here and now.
"""

# No postponed annotations here: a served flow is pickled with the globals that its code names, its annotations' not.

import asyncio
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State

from flows.export import export_shards
from flows.export_summary import ExportSummary
from flows.land_stage import land_sources
from flows.serving import serve_flow
from flows.sessions import matching
from flows.settings import Settings, load_settings, open_zone
from flows.stage import end, or_refused, over_zone, sized
from flows.summary import IngestParameters, IngestSummary
from flows.usage import usage_stage
from flows.watch import watcher
from tasks.ingest.outcome import SessionOutcome
from tasks.ingest.session import quarantine_nameless
from tasks.ingest.work import IngestWork
from tasks.shards.task import Finished

__all__ = ["SUMMARY_KEY", "ingest", "serve"]

SUMMARY_KEY = "ingest-summary"


@flow(name="ingest", persist_result=False)
async def ingest(parameters: IngestParameters) -> State[Any]:
    """Land the sources, then assemble and verify every wanted session; ends Failed when anything is wrong with any,
    after all the others are done."""
    return await or_refused(_ingest(parameters))


async def _ingest(parameters: IngestParameters) -> State[Any]:
    watch = watcher()
    settings = load_settings()
    landings, steps = await land_sources(parameters, settings, watch)
    sizes, nameless = await asyncio.to_thread(list_sessions, parameters, settings)
    steps += len(sizes) + len(nameless)
    watch(steps, None)
    finished: Finished[SessionOutcome] = Finished(lambda outcome: watch(steps, outcome.session))
    for outcome in nameless:
        finished.add(outcome)
    work = IngestWork(zone=parameters.zone, store=settings.store(), options=parameters.options())
    await over_zone("ingest shard", work, sizes, parameters, finished)
    outcomes = finished.outcomes()
    exports = await _export(parameters, outcomes)
    wanted = parameters.usage()
    counted = None if wanted is None or not outcomes else await usage_stage(wanted, settings)
    return await end(IngestSummary.of(parameters.zone, outcomes, exports, landings, counted), SUMMARY_KEY)


async def _export(parameters: IngestParameters, outcomes: list[SessionOutcome]) -> ExportSummary | None:
    """The export that was asked for, of what is good."""
    wanted = parameters.export()
    if wanted is None or not outcomes:
        return None
    bad = frozenset(outcome.session for outcome in outcomes if outcome.problems or outcome.failure is not None)
    return await export_shards(wanted, load_settings(), watcher(), without=bad)


def list_sessions(parameters: IngestParameters, settings: Settings) -> tuple[dict[str, int], list[SessionOutcome]]:
    """Landed bytes of every wanted session, and those that are bad already: their names are not even text.

    Raises `WrongUse` when there are none, unless sources were landed of which none came: that has to be said.
    """
    zone = open_zone(parameters.zone, settings)
    there = zone.sessions()
    wanted = matching(zone, there, parameters.wanted) if there or not parameters.sources else []
    sizes, nameless = sized(zone, wanted)
    return sizes, [quarantine_nameless(zone, session) for session in nameless]


def serve() -> None:
    """Serve the flow to the Prefect server that `PREFECT_API_URL` names, hourly, until stopped."""
    serve_flow(ingest, "0 * * * *", "zone")


if __name__ == "__main__":
    serve()
