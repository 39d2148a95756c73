"""The Prefect task: one shard of sessions verified in a child process that ends when the task is cancelled."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.tasks import exponential_backoff

from storage.objects import StoreSettings
from tasks.ingest.shards import Shard
from tasks.ingest.task import RETRIES, Finished, is_transient, work_through
from tasks.ingest.worker import Order
from tasks.verify.outcome import VerifyOutcome

__all__ = ["verify_shard"]


@task(
    name="verify shard",
    task_run_name="shard-{shard.number}",
    retries=RETRIES,
    retry_delay_seconds=exponential_backoff(2),
    retry_jitter_factor=0.5,
    retry_condition_fn=is_transient,
    cache_policy=NO_CACHE,
    persist_result=False,
)
async def verify_shard(zone: str, store: StoreSettings, shard: Shard, finished: Finished[VerifyOutcome]) -> None:
    """Verify every session of `shard` that is not in `finished`; raises what a retry may mend."""
    await work_through(
        shard,
        finished,
        lambda remaining: Order(zone=zone, store=store, sessions=remaining, verify=True),
        lambda answer: answer.verified,
        lambda session, failure: VerifyOutcome(session=session, failure=failure),
    )
