"""The export flow: every completed session of a zone becomes a `.relavium.yaml` in the exports folder.

`python -m flows.export` serves the flow to a Prefect server, daily; `sessionmill run export` runs it here and now.
"""

# No postponed annotations here: a served flow is pickled with the globals that its code names, its annotations' not.

import asyncio
from typing import Any

from prefect import flow
from prefect.artifacts import acreate_table_artifact
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from flows.export_summary import ExportParameters, ExportSummary, exportable
from flows.sessions import matching
from flows.settings import Settings, load_settings, open_exports, open_zone
from flows.watch import Watcher, watcher
from storage.zone import Zone
from tasks.export.batch import record_outcomes
from tasks.export.outcome import ExportOptions, ExportOrder, ExportOutcome
from tasks.export.task import Exported, export_shard
from tasks.ingest import Shard, plan_shards
from tasks.ingest.session import BAD_DATA

__all__ = ["SUMMARY_KEY", "export", "export_shards", "serve"]

SUMMARY_KEY = "export-summary"


@flow(name="export", persist_result=False)
async def export(parameters: ExportParameters) -> State[Any]:
    """Export every wanted session that is completed; ends Failed when the data of any is bad, after the others."""
    settings = load_settings()
    summary = await export_shards(parameters, settings, watcher())
    await acreate_table_artifact(table=summary.rows(), key=SUMMARY_KEY, description=summary.sentence)
    if summary.exit_code:
        return Failed(message=summary.sentence, data=summary)
    return Completed(message=summary.sentence, data=summary)


async def export_shards(
    parameters: ExportParameters, settings: Settings, watch: Watcher, without: frozenset[str] = frozenset()
) -> ExportSummary:
    """The work of the flow, inside a flow run: shards side by side, then the manifest. Leaves out `without`."""
    sizes, nameless, options, to = await asyncio.to_thread(_prepare, parameters, settings, without)
    sessions = len(sizes) + len(nameless)
    watch(sessions, None)
    exported = Exported(lambda outcome: watch(sessions, outcome.conversation))
    for outcome in nameless:
        exported.add(outcome)
    order = ExportOrder(to=to, options=options)
    free = asyncio.Semaphore(parameters.workers)

    async def hold(shard: Shard) -> None:
        async with free:
            await export_shard(parameters.zone, settings.store(), shard, order, exported)

    shards = plan_shards(sizes, parameters.shard_bytes)
    ends = await asyncio.gather(*map(hold, shards), return_exceptions=True)
    for shard, end in zip(shards, ends, strict=True):
        if isinstance(end, Exception):
            for conversation in exported.missing(shard.sessions):
                exported.add(ExportOutcome(conversation=conversation, state="failed", reason=str(end)))
        elif isinstance(end, BaseException):
            raise end
    outcomes = exported.outcomes()
    await asyncio.to_thread(lambda: record_outcomes(open_exports(to, settings), outcomes))
    return ExportSummary.of(parameters.zone, to, options.as_of, outcomes)


def _prepare(
    parameters: ExportParameters, settings: Settings, without: frozenset[str]
) -> tuple[dict[str, int], list[ExportOutcome], ExportOptions, str]:
    """Landed bytes of every wanted session, those whose names are not even text, how to export, and where to."""
    zone = open_zone(parameters.zone, settings)
    exports = open_exports(parameters.to, settings, zone=zone)
    sizes: dict[str, int] = {}
    nameless: list[ExportOutcome] = []
    for name in matching(zone, exportable(zone), parameters.wanted):
        shown = name.encode("utf-8", "backslashreplace").decode()
        if name in without or shown in without:
            continue
        if shown != name:
            reason = "the name of the session's folder is not UTF-8 text; rename it"
            nameless.append(ExportOutcome(conversation=shown, state="rejected", rule="unreadable", reason=reason))
        else:
            sizes[name] = _landed_bytes(zone, name)
    return sizes, nameless, parameters.options(zone), exports.url


def _landed_bytes(zone: Zone, session: str) -> int:
    """0 for a session that cannot be listed; its task then says why."""
    try:
        return sum(ref.size for ref in zone.landed_files(session))
    except BAD_DATA:
        return 0


def serve() -> None:
    """Serve the flow to the Prefect server that `PREFECT_API_URL` names, daily, until stopped."""
    export.serve(name="served", cron="30 3 * * *", parameters={"parameters": {}})


if __name__ == "__main__":
    serve()
