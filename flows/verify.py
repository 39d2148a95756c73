"""The verify flow: every landed file and every round of a zone is read and checked, and the run fails when any is bad.

The ingest flow does not read again what it has found good; this one reads everything, and writes nothing.
`python -m flows.verify` serves the flow to a Prefect server, daily; `sessionmill run verify` runs it here and now.
"""

# No postponed annotations here: a served flow is pickled with the globals that its code names, its annotations' not.

import asyncio
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State

from flows.serving import serve_flow
from flows.sessions import matching
from flows.settings import Settings, load_settings, open_zone
from flows.stage import end, or_refused, over_zone, sized
from flows.verify_summary import VerifyParameters, VerifySummary
from flows.watch import watcher
from tasks.ingest.outcome import Reason
from tasks.shards.task import Finished
from tasks.verify import verifiable
from tasks.verify.outcome import VerifyOutcome
from tasks.verify.work import VerifyWork

__all__ = ["SUMMARY_KEY", "serve", "verify"]

SUMMARY_KEY = "verify-summary"


@flow(name="verify", persist_result=False)
async def verify(parameters: VerifyParameters) -> State[Any]:
    """Verify every wanted session; ends Failed when anything is wrong with any, after all the others are read."""
    return await or_refused(_verify(parameters))


async def _verify(parameters: VerifyParameters) -> State[Any]:
    watch = watcher()
    settings = load_settings()
    sizes, nameless = await asyncio.to_thread(list_sessions, parameters, settings)
    sessions = len(sizes) + len(nameless)
    watch(sessions, None)
    finished: Finished[VerifyOutcome] = Finished(lambda outcome: watch(sessions, outcome.session))
    for outcome in nameless:
        finished.add(outcome)
    work = VerifyWork(zone=parameters.zone, store=settings.store())
    await over_zone("verify shard", work, sizes, parameters, finished)
    return await end(VerifySummary.of(parameters.zone, finished.outcomes()), SUMMARY_KEY)


def list_sessions(parameters: VerifyParameters, settings: Settings) -> tuple[dict[str, int], list[VerifyOutcome]]:
    """Landed bytes of every wanted session, 0 where they cannot be listed, and those whose names are not even text.
    Raises `WrongUse` when there are none."""
    zone = open_zone(parameters.zone, settings)
    sizes, nameless = sized(zone, matching(zone, verifiable(zone), parameters.wanted))
    return sizes, [_refused(session) for session in nameless]


def _refused(session: str) -> VerifyOutcome:
    name = session.encode("utf-8", "backslashreplace").decode()
    detail = "the name of the session's folder is not UTF-8 text; rename it"
    return VerifyOutcome(
        session=name, problems=1, reasons=[Reason(file=name, row=None, rule="unreadable", detail=detail)]
    )


def serve() -> None:
    """Serve the flow to the Prefect server that `PREFECT_API_URL` names, daily, until stopped."""
    serve_flow(verify, "0 2 * * *", "zone")


if __name__ == "__main__":
    serve()
