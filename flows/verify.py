"""The verify flow: every landed file and every round of a zone is read and checked, and the run fails when any is bad.

The ingest flow does not read again what it has found good; this one reads everything, and writes nothing.
`python -m flows.verify` serves the flow to a Prefect server, daily; `sessionmill run verify` runs it here and now.
"""

# No postponed annotations here: a served flow is pickled with the globals that its code names, its annotations' not.

import asyncio
from typing import Any

from prefect import flow
from prefect.artifacts import acreate_table_artifact
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from flows.sessions import matching
from flows.settings import Settings, load_settings, open_zone
from flows.verify_summary import VerifyParameters, VerifySummary
from flows.watch import watcher
from tasks.ingest import Shard, plan_shards
from tasks.ingest.outcome import Reason
from tasks.ingest.session import BAD_DATA
from tasks.ingest.task import Finished
from tasks.verify import verifiable
from tasks.verify.outcome import VerifyOutcome
from tasks.verify.task import verify_shard

__all__ = ["SUMMARY_KEY", "serve", "verify"]

SUMMARY_KEY = "verify-summary"


@flow(name="verify", persist_result=False)
async def verify(parameters: VerifyParameters) -> State[Any]:
    """Verify every wanted session; ends Failed when anything is wrong with any, after all the others are read."""
    watch = watcher()
    settings = load_settings()
    sizes, nameless = await asyncio.to_thread(list_sessions, parameters, settings)
    sessions = len(sizes) + len(nameless)
    watch(sessions, None)
    finished: Finished[VerifyOutcome] = Finished(lambda outcome: watch(sessions, outcome.session))
    for outcome in nameless:
        finished.add(outcome)
    free = asyncio.Semaphore(parameters.workers)

    async def hold(shard: Shard) -> None:
        async with free:
            await verify_shard(parameters.zone, settings.store(), shard, finished)

    shards = plan_shards(sizes, parameters.shard_bytes)
    ends = await asyncio.gather(*map(hold, shards), return_exceptions=True)
    for shard, end in zip(shards, ends, strict=True):
        if isinstance(end, Exception):
            for session in finished.missing(shard.sessions):
                finished.add(VerifyOutcome(session=session, failure=str(end)))
        elif isinstance(end, BaseException):
            raise end
    summary = VerifySummary.of(parameters.zone, finished.outcomes())
    await acreate_table_artifact(table=summary.rows(), key=SUMMARY_KEY, description=summary.sentence)
    if summary.exit_code:
        return Failed(message=summary.sentence, data=summary)
    return Completed(message=summary.sentence, data=summary)


def list_sessions(parameters: VerifyParameters, settings: Settings) -> tuple[dict[str, int], list[VerifyOutcome]]:
    """Landed bytes of every wanted session, 0 where they cannot be listed, and those whose names are not even text.
    Raises `WrongUse` when there are none."""
    zone = open_zone(parameters.zone, settings)
    sizes: dict[str, int] = {}
    nameless: list[VerifyOutcome] = []
    for session in matching(zone, verifiable(zone), parameters.wanted):
        name = session.encode("utf-8", "backslashreplace").decode()
        if name != session:
            detail = "the name of the session's folder is not UTF-8 text; rename it"
            reason = Reason(file=name, row=None, rule="unreadable", detail=detail)
            nameless.append(VerifyOutcome(session=name, problems=1, reasons=[reason]))
            continue
        try:
            sizes[session] = sum(ref.size for ref in zone.landed_files(session))
        except BAD_DATA:
            sizes[session] = 0
    return sizes, nameless


def serve() -> None:
    """Serve the flow to the Prefect server that `PREFECT_API_URL` names, daily, until stopped."""
    verify.serve(name="served", cron="0 2 * * *", parameters={"parameters": {}})


if __name__ == "__main__":
    serve()
