"""The Prefect task: one shard of conversations exported in a child process that ends when the task is cancelled."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.tasks import exponential_backoff

from storage.objects import StoreSettings
from tasks.export.outcome import ExportOrder, ExportOutcome
from tasks.ingest.shards import Shard
from tasks.ingest.task import RETRIES, is_transient, worker
from tasks.ingest.worker import Answer, Order

__all__ = ["Exported", "export_shard"]


class Exported:
    """The outcomes so far, kept across a shard's retries."""

    def __init__(self, watch: Callable[[ExportOutcome], None]) -> None:
        self._watch = watch
        self._by_conversation: dict[str, ExportOutcome] = {}

    def add(self, outcome: ExportOutcome) -> None:
        self._by_conversation[outcome.conversation] = outcome
        self._watch(outcome)

    def missing(self, conversations: Iterable[str]) -> tuple[str, ...]:
        return tuple(each for each in conversations if each not in self._by_conversation)

    def outcomes(self) -> list[ExportOutcome]:
        """By conversation."""
        return [outcome for _, outcome in sorted(self._by_conversation.items())]


@task(
    name="export shard",
    task_run_name="shard-{shard.number}",
    retries=RETRIES,
    retry_delay_seconds=exponential_backoff(2),
    retry_jitter_factor=0.5,
    retry_condition_fn=is_transient,
    cache_policy=NO_CACHE,
    persist_result=False,
)
async def export_shard(zone: str, store: StoreSettings, shard: Shard, order: ExportOrder, exported: Exported) -> None:
    """Export every conversation of `shard` that is not in `exported`; raises what a retry may mend."""
    while remaining := exported.missing(shard.sessions):
        async with worker(Order(zone=zone, store=store, sessions=remaining, export=order)) as process:
            assert process.stdout is not None
            async for line in process.stdout:
                answer = Answer.model_validate_json(line)
                if answer.exported is not None:
                    exported.add(answer.exported)
                elif (error := answer.error()) is not None:
                    raise error
            code = await process.wait()
        unanswered = exported.missing(remaining)
        if unanswered and code >= 0:
            raise RuntimeError(
                f"the worker of shard {shard.number} ended early with exit status {code}; its log says why"
            )
        if unanswered:
            # Killed, for want of memory as a rule, in the first conversation it did not answer for.
            reason = f"the process that worked on it was killed by signal {-code}"
            exported.add(ExportOutcome(conversation=unanswered[0], state="failed", reason=reason))
