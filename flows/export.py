"""The export flow: every completed session of a zone becomes a `.relavium.yaml` in the exports folder.

`python -m flows.export` serves the flow to a Prefect server, daily; `sessionmill run export` runs it here and now.
"""

# No postponed annotations here: a served flow is pickled with the globals that its code names, its annotations' not.

import asyncio
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State

from flows.export_summary import ExportParameters, ExportSummary, exportable
from flows.serving import serve_flow
from flows.sessions import matching
from flows.settings import Settings, load_settings, open_exports, open_zone
from flows.stage import end, or_refused, over_zone, sized
from flows.watch import Watcher, watcher
from tasks.export.batch import record_outcomes
from tasks.export.manifest import manifest_warnings
from tasks.export.outcome import ExportOptions, ExportOutcome
from tasks.export.work import ExportWork
from tasks.shards.task import Finished

__all__ = ["SUMMARY_KEY", "export", "export_shards", "serve"]

SUMMARY_KEY = "export-summary"


@flow(name="export", persist_result=False)
async def export(parameters: ExportParameters) -> State[Any]:
    """Export every wanted session that is completed; ends Failed when the data of any is bad, after the others."""
    return await or_refused(_export(parameters))


async def _export(parameters: ExportParameters) -> State[Any]:
    summary = await export_shards(parameters, load_settings(), watcher())
    return await end(summary, SUMMARY_KEY)


async def export_shards(
    parameters: ExportParameters, settings: Settings, watch: Watcher, without: frozenset[str] = frozenset()
) -> ExportSummary:
    """The work of the flow, inside a flow run: shards side by side, then the manifest. Leaves out `without`."""
    sizes, nameless, options, to, warnings = await asyncio.to_thread(_prepare, parameters, settings, without)
    sessions = len(sizes) + len(nameless)
    watch(sessions, None)
    exported: Finished[ExportOutcome] = Finished(lambda outcome: watch(sessions, outcome.conversation))
    for outcome in nameless:
        exported.add(outcome)
    work = ExportWork(zone=parameters.zone, store=settings.store(), to=to, options=options)
    await over_zone("export shard", work, sizes, parameters, exported)
    outcomes = exported.outcomes()
    await asyncio.to_thread(lambda: record_outcomes(open_exports(to, settings), outcomes))
    return ExportSummary.of(parameters.zone, to, options.as_of, outcomes, warnings)


def _prepare(
    parameters: ExportParameters, settings: Settings, without: frozenset[str]
) -> tuple[dict[str, int], list[ExportOutcome], ExportOptions, str, list[str]]:
    """Landed bytes of every wanted session, those whose names are not even text, how to export, where to, and what to
    know of that place."""
    zone = open_zone(parameters.zone, settings)
    exports = open_exports(parameters.to, settings, zone=zone)
    there = matching(zone, exportable(zone), parameters.wanted)
    sizes, nameless = sized(zone, (name for name in there if not without & {name, _shown(name)}))
    reason = "the name of the session's folder is not UTF-8 text; rename it"
    refused = [
        ExportOutcome(conversation=_shown(name), state="rejected", rule="unreadable", reason=reason)
        for name in nameless
    ]
    return sizes, refused, parameters.options(zone), exports.url, manifest_warnings(exports)


def _shown(name: str) -> str:
    """The name with what is not text in it as escapes."""
    return name.encode("utf-8", "backslashreplace").decode()


def serve() -> None:
    """Serve the flow to the Prefect server that `PREFECT_API_URL` names, daily, until stopped."""
    serve_flow(export, "30 3 * * *", "zone", "exports")


if __name__ == "__main__":
    serve()
