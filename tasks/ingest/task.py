"""The Prefect task: one shard, held in a child process that ends when the task is cancelled."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import Task, exponential_backoff

from schemas.errors import TransientError
from storage.objects import StoreSettings
from tasks.ingest.outcome import IngestOptions, SessionOutcome
from tasks.ingest.shards import Shard
from tasks.ingest.worker import Answer, Order

__all__ = ["RETRIES", "Finished", "ingest_shard", "is_transient", "worker"]

RETRIES = 3
LONGEST_ANSWER = 64 * 1024 * 1024
_CODE = Path(__file__).resolve().parents[2]


class Finished:
    """The outcomes so far, kept across a shard's retries so that no session is done, or counted, twice."""

    def __init__(self, watch: Callable[[SessionOutcome], None]) -> None:
        self._watch = watch
        self._by_session: dict[str, SessionOutcome] = {}

    def add(self, outcome: SessionOutcome) -> None:
        self._by_session[outcome.session] = outcome
        self._watch(outcome)

    def missing(self, sessions: Iterable[str]) -> tuple[str, ...]:
        return tuple(session for session in sessions if session not in self._by_session)

    def outcomes(self) -> list[SessionOutcome]:
        """By session name."""
        return [outcome for _, outcome in sorted(self._by_session.items())]


def is_transient(task: Task[..., Any], task_run: TaskRun, state: State[Any]) -> bool:
    """Whether a retry may mend what failed the task."""
    return isinstance(state.data, TransientError)


@task(
    name="ingest shard",
    task_run_name="shard-{shard.number}",
    retries=RETRIES,
    retry_delay_seconds=exponential_backoff(2),
    retry_jitter_factor=0.5,
    retry_condition_fn=is_transient,
    cache_policy=NO_CACHE,
    persist_result=False,
)
async def ingest_shard(
    zone: str, store: StoreSettings, shard: Shard, options: IngestOptions, finished: Finished
) -> None:
    """Assemble and verify every session of `shard` that is not in `finished`; raises what a retry may mend."""
    while remaining := finished.missing(shard.sessions):
        async with worker(Order(zone=zone, store=store, sessions=remaining, options=options)) as process:
            assert process.stdout is not None
            async for line in process.stdout:
                answer = Answer.model_validate_json(line)
                if answer.outcome is not None:
                    finished.add(answer.outcome)
                elif (error := answer.error()) is not None:
                    raise error
            code = await process.wait()
        unanswered = finished.missing(remaining)
        if unanswered and code >= 0:
            raise RuntimeError(
                f"the worker of shard {shard.number} ended early with exit status {code}; its log says why"
            )
        if unanswered:
            # Killed, for want of memory as a rule, in the first session it did not answer for. The others go on.
            failure = f"the process that worked on it was killed by signal {-code}"
            finished.add(SessionOutcome(session=unanswered[0], failure=failure))


@asynccontextmanager
async def worker(order: Order) -> AsyncIterator[asyncio.subprocess.Process]:
    """A worker that has its order; killed on the way out if it has not ended by itself."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # the folder we stand in may hold a package named like ours
        "-m",
        "tasks.ingest.worker",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=LONGEST_ANSWER,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(_CODE), os.environ.get("PYTHONPATH")]))},
        start_new_session=True,  # Ctrl-C at the terminal reaches us; we end the worker
    )
    try:
        assert process.stdin is not None
        process.stdin.write(order.model_dump_json().encode() + b"\n")
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
