"""The Prefect task: one shard, held in a child process that ends when the task is cancelled."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import Task, exponential_backoff

from schemas.errors import TransientError
from storage.objects import StoreSettings
from tasks.ingest.outcome import IngestOptions, SessionOutcome
from tasks.ingest.shards import Shard
from tasks.ingest.worker import Answer, Order

__all__ = ["RETRIES", "Finished", "ingest_shard", "is_transient", "work_through", "worker"]

RETRIES = 3
LONGEST_ANSWER = 64 * 1024 * 1024
_CODE = Path(__file__).resolve().parents[2]


class Outcome(Protocol):
    """What came of one session."""

    @property
    def session(self) -> str: ...


One = TypeVar("One", bound=Outcome)


class Finished(Generic[One]):
    """The outcomes so far, kept across a shard's retries so that no session is done, or counted, twice."""

    def __init__(self, watch: Callable[[One], None]) -> None:
        self._watch = watch
        self._by_session: dict[str, One] = {}

    def add(self, outcome: One) -> None:
        self._by_session[outcome.session] = outcome
        self._watch(outcome)

    def missing(self, sessions: Iterable[str]) -> tuple[str, ...]:
        return tuple(session for session in sessions if session not in self._by_session)

    def outcomes(self) -> list[One]:
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
    zone: str, store: StoreSettings, shard: Shard, options: IngestOptions, finished: Finished[SessionOutcome]
) -> None:
    """Assemble and verify every session of `shard` that is not in `finished`; raises what a retry may mend."""
    await work_through(
        shard,
        finished,
        lambda remaining: Order(zone=zone, store=store, sessions=remaining, options=options),
        lambda answer: answer.outcome,
        lambda session, failure: SessionOutcome(session=session, failure=failure),
    )


async def work_through(
    shard: Shard,
    finished: Finished[One],
    order: Callable[[tuple[str, ...]], Order],
    outcome_in: Callable[[Answer], One | None],
    failed: Callable[[str, str], One],
) -> None:
    """Have a worker do what `order` asks of the shard's sessions that are not in `finished`, and put the outcomes
    there."""
    while remaining := finished.missing(shard.sessions):
        async with worker(order(remaining)) as process:
            assert process.stdout is not None
            async for line in process.stdout:
                answer = Answer.model_validate_json(line)
                if (outcome := outcome_in(answer)) is not None:
                    finished.add(outcome)
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
            finished.add(failed(unanswered[0], f"the process that worked on it was killed by signal {-code}"))


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
