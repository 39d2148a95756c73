"""The Prefect task: one count of a zone into a data set.

It commits once, at its end, so that it can be stopped anywhere and tried again.
"""

import asyncio
import contextlib
import threading

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.tasks import exponential_backoff

from storage.objects import StoreSettings, open_store
from storage.zone import Zone
from tasks.shards.task import is_transient
from tasks.usage.count import count_usage
from tasks.usage.outcome import UsageOptions, UsageOutcome
from tasks.usage.rates import RateCard

__all__ = ["count_zone"]


@task(
    name="count usage",
    retries=3,
    retry_delay_seconds=exponential_backoff(2),
    retry_jitter_factor=0.5,
    retry_condition_fn=is_transient,
    cache_policy=NO_CACHE,
    persist_result=False,
)
async def count_zone(zone: str, to: str, store: StoreSettings, card: RateCard, options: UsageOptions) -> UsageOutcome:
    """Bring the data set at `to` up to what has landed in `zone`; raises what a retry may mend."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[UsageOutcome] = loop.create_future()

    def settle(outcome: UsageOutcome | None, error: BaseException | None) -> None:
        if not done.done() and error is not None:
            done.set_exception(error)
        elif not done.done() and outcome is not None:
            done.set_result(outcome)

    def work() -> None:
        outcome, failure = None, None
        try:
            to_count = Zone(open_store(zone, settings=store))
            outcome = count_usage(to_count, open_store(to, settings=store), card, options)
        except BaseException as error:
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: the run was stopped meanwhile
            loop.call_soon_threadsafe(settle, outcome, failure)

    # A daemon: a run that is stopped leaves at once, and not when everything is counted.
    threading.Thread(target=work, name="count usage", daemon=True).start()
    return await done
