"""The ingest flow: every session of a zone is assembled and verified; the bad ones are set aside, and the run says so.

`python -m flows.ingest` serves the flow to a Prefect server, hourly; `sessionmill run ingest` runs it here and now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from prefect import flow
from prefect.artifacts import acreate_table_artifact
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from flows.settings import Settings, load_settings, open_zone
from flows.summary import IngestParameters, IngestSummary
from tasks.ingest import Shard, plan_shards
from tasks.ingest.outcome import SessionOutcome
from tasks.ingest.task import Finished, ingest_shard

__all__ = ["SUMMARY_KEY", "WATCHER", "Watcher", "ingest", "serve"]

SUMMARY_KEY = "ingest-summary"

Watcher = Callable[[int, SessionOutcome | None], None]
WATCHER: ContextVar[Watcher] = ContextVar("WATCHER", default=lambda sessions, outcome: None)
"""Told how many sessions there are, with None when they are listed and then with each outcome."""


@flow(name="ingest", persist_result=False)
async def ingest(parameters: IngestParameters) -> State[Any]:
    """Assemble and verify every wanted session; ends Failed when any is bad, after all the others are done."""
    watch = WATCHER.get()
    settings = load_settings()
    sizes = await asyncio.to_thread(landed_sizes, parameters, settings)
    watch(len(sizes), None)
    finished = Finished(lambda outcome: watch(len(sizes), outcome))
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
    summary = IngestSummary.of(parameters.zone, finished.outcomes())
    await acreate_table_artifact(table=summary.rows(), key=SUMMARY_KEY, description=summary.sentence)
    if summary.exit_code:
        return Failed(message=summary.sentence, data=summary)
    return Completed(message=summary.sentence, data=summary)


def landed_sizes(parameters: IngestParameters, settings: Settings) -> dict[str, int]:
    """Landed bytes of every wanted session of the zone."""
    zone = open_zone(parameters.zone, settings)
    wanted = filter(parameters.wanted, zone.sessions())
    return {session: sum(ref.size for ref in zone.landed_files(session)) for session in wanted}


def serve() -> None:
    """Serve the flow to the Prefect server that `PREFECT_API_URL` names, hourly, until stopped."""
    ingest.serve(name="hourly", cron="0 * * * *", parameters={"parameters": {}})


if __name__ == "__main__":
    serve()
