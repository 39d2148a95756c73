"""The ingest flow: every session of a zone is assembled and verified; the bad ones are set aside, and the run says so.
Where asked, completed sessions are then exported.

`python -m flows.ingest` serves the flow to a Prefect server, hourly; `sessionmill run ingest` runs it here and now.
"""

# No postponed annotations here: a served flow is pickled with the globals that its code names, its annotations' not.

import asyncio
from typing import Any

from prefect import flow
from prefect.artifacts import acreate_table_artifact
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from flows.export import export_shards
from flows.export_summary import ExportSummary
from flows.sessions import matching
from flows.settings import Settings, load_settings, open_zone
from flows.summary import IngestParameters, IngestSummary
from flows.watch import watcher
from tasks.ingest import Shard, plan_shards
from tasks.ingest.outcome import SessionOutcome
from tasks.ingest.session import BAD_DATA, quarantine_nameless
from tasks.ingest.task import Finished, ingest_shard

__all__ = ["SUMMARY_KEY", "ingest", "serve"]

SUMMARY_KEY = "ingest-summary"


@flow(name="ingest", persist_result=False)
async def ingest(parameters: IngestParameters) -> State[Any]:
    """Assemble and verify every wanted session; ends Failed when any is bad, after all the others are done."""
    watch = watcher()
    settings = load_settings()
    sizes, nameless = await asyncio.to_thread(list_sessions, parameters, settings)
    sessions = len(sizes) + len(nameless)
    watch(sessions, None)
    finished: Finished[SessionOutcome] = Finished(lambda outcome: watch(sessions, outcome.session))
    for outcome in nameless:
        finished.add(outcome)
    options = parameters.options()
    free = asyncio.Semaphore(parameters.workers)

    async def hold(shard: Shard) -> None:
        # Waiting outside the task: a shard that has no process yet is not shown as running.
        async with free:
            await ingest_shard(parameters.zone, settings.store(), shard, options, finished)

    shards = plan_shards(sizes, parameters.shard_bytes)
    ends = await asyncio.gather(*map(hold, shards), return_exceptions=True)
    for shard, end in zip(shards, ends, strict=True):
        if isinstance(end, Exception):
            for session in finished.missing(shard.sessions):
                finished.add(SessionOutcome(session=session, failure=str(end)))
        elif isinstance(end, BaseException):
            raise end
    outcomes = finished.outcomes()
    summary = IngestSummary.of(parameters.zone, outcomes, await _export(parameters, outcomes))
    await acreate_table_artifact(table=summary.rows(), key=SUMMARY_KEY, description=summary.sentence)
    if summary.exit_code:
        return Failed(message=summary.sentence, data=summary)
    return Completed(message=summary.sentence, data=summary)


async def _export(parameters: IngestParameters, outcomes: list[SessionOutcome]) -> ExportSummary | None:
    """The export that was asked for, of what is good."""
    wanted = parameters.export()
    if wanted is None:
        return None
    bad = frozenset(outcome.session for outcome in outcomes if outcome.problems or outcome.failure is not None)
    return await export_shards(wanted, load_settings(), watcher(), without=bad)


def list_sessions(parameters: IngestParameters, settings: Settings) -> tuple[dict[str, int], list[SessionOutcome]]:
    """Landed bytes of every wanted session, and those that are bad already: their names are not even text.

    A session that cannot be listed counts 0 bytes; its task then says why. Raises `WrongUse` when there are none.
    """
    zone = open_zone(parameters.zone, settings)
    sizes: dict[str, int] = {}
    nameless: list[SessionOutcome] = []
    for session in matching(zone, zone.sessions(), parameters.wanted):
        try:
            session.encode()
            sizes[session] = sum(ref.size for ref in zone.landed_files(session))
        except UnicodeEncodeError:
            nameless.append(quarantine_nameless(zone, session))
        except BAD_DATA:
            sizes[session] = 0
    return sizes, nameless


def serve() -> None:
    """Serve the flow to the Prefect server that `PREFECT_API_URL` names, hourly, until stopped."""
    ingest.serve(name="served", cron="0 * * * *", parameters={"parameters": {}})


if __name__ == "__main__":
    serve()
