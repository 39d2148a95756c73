"""The usage flow: every provider call of a zone in Parquet, counted once; what is new is added, and late evidence
corrects earlier days.

`python -m flows.usage` serves the flow to a Prefect server, hourly; `sessionmill run usage` runs it here and now.
"""

# No postponed annotations here: a served flow is pickled with the globals that its code names, its annotations' not.

import asyncio
from typing import Any

from prefect import flow
from prefect.client.schemas.objects import State

from flows.serving import serve_flow
from flows.settings import Settings, load_settings, open_exports, open_zone
from flows.stage import end, or_refused
from flows.usage_summary import UsageParameters, UsageSummary, rate_card
from storage.objects import ObjectStore
from tasks.usage.outcome import UsageOptions
from tasks.usage.rates import RateCard
from tasks.usage.task import count_zone
from tasks.usage.totals import recent_totals

__all__ = ["SUMMARY_KEY", "serve", "usage", "usage_stage"]

SUMMARY_KEY = "usage-summary"


@flow(name="usage", persist_result=False)
async def usage(parameters: UsageParameters) -> State[Any]:
    """Count what is new; ends Failed when anything is wrong with the evidence, after the rest is counted."""
    return await or_refused(_usage(parameters))


async def _usage(parameters: UsageParameters) -> State[Any]:
    return await end(await usage_stage(parameters, load_settings()), SUMMARY_KEY)


async def usage_stage(parameters: UsageParameters, settings: Settings) -> UsageSummary:
    """The work of the flow, inside a flow run."""
    to, card, options = await asyncio.to_thread(_prepare, parameters, settings)
    outcome = await count_zone(parameters.zone, to.url, settings.store(), card, options)
    return UsageSummary.of(outcome, await asyncio.to_thread(recent_totals, to, options.now))


def _prepare(parameters: UsageParameters, settings: Settings) -> tuple[ObjectStore, RateCard, UsageOptions]:
    """Where, at what prices and how; the folder of the data set is made last, when nothing was wrong with these."""
    zone = open_zone(parameters.zone, settings)
    card, options = rate_card(parameters.prices, settings), parameters.options(zone)
    return open_exports(parameters.to, settings, zone=zone), card, options


def serve() -> None:
    """Serve the flow to the Prefect server that `PREFECT_API_URL` names, hourly, until stopped."""
    serve_flow(usage, "20 * * * *", "zone", "usage")


if __name__ == "__main__":
    serve()
