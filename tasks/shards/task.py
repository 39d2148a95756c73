"""The Prefect task: one shard, held in a child process that ends when the task is cancelled."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import Task, exponential_backoff

from schemas.errors import TransientError
from tasks.shards.plan import Shard
from tasks.shards.work import Outcome, Work
from tasks.shards.worker import Answer, Order

__all__ = ["Finished", "work_on_shard"]

RETRIES = 3
LONGEST_ANSWER = 64 * 1024 * 1024
_CODE = Path(__file__).resolve().parents[2]

One = TypeVar("One", bound=Outcome)


class Finished(Generic[One]):
    """The outcomes so far, kept across a shard's retries so that nothing is done, or counted, twice. `watch` is told
    each outcome, and `news` each JSON text that work tells before."""

    def __init__(self, watch: Callable[[One], None], news: Callable[[str], None] = lambda text: None) -> None:
        self._watch = watch
        self.news = news
        self._by_name: dict[str, One] = {}

    def add(self, outcome: One) -> None:
        self._by_name[outcome.session] = outcome
        self._watch(outcome)

    def missing(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in names if name not in self._by_name)

    def outcomes(self) -> list[One]:
        """By name."""
        return [outcome for _, outcome in sorted(self._by_name.items())]


def is_transient(task: Task[..., Any], task_run: TaskRun, state: State[Any]) -> bool:
    """Whether a retry may mend what failed the task."""
    return isinstance(state.data, TransientError)


@task(
    task_run_name="shard-{shard.number}",
    retries=RETRIES,
    retry_delay_seconds=exponential_backoff(2),
    retry_jitter_factor=0.5,
    retry_condition_fn=is_transient,
    cache_policy=NO_CACHE,
    persist_result=False,
)
async def work_on_shard(shard: Shard, work: Work[One], finished: Finished[One]) -> None:
    """Have a worker do `work` with the shard's names that are not in `finished`, and put the outcomes there; raises
    what a retry may mend."""
    while remaining := finished.missing(shard.sessions):
        async with _worker(Order.of(work, remaining)) as process:
            assert process.stdout is not None
            async for line in process.stdout:
                answer = Answer.model_validate_json(line)
                if answer.outcome is not None:
                    finished.add(work.outcome(answer.outcome))
                elif answer.news is not None:
                    finished.news(answer.news)
                elif (error := answer.error()) is not None:
                    raise error
            code = await process.wait()
        unanswered = finished.missing(remaining)
        if unanswered and code >= 0:
            raise RuntimeError(
                f"the worker of shard {shard.number} ended early with exit status {code}; its log says why"
            )
        if unanswered:
            # Killed, for want of memory as a rule, in the first one it did not answer for. The others go on.
            finished.add(work.failed(unanswered[0], f"the process that worked on it was killed by signal {-code}"))


@asynccontextmanager
async def _worker(order: Order) -> AsyncIterator[asyncio.subprocess.Process]:
    """A worker that has its order; killed on the way out if it has not ended by itself."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # the folder we stand in may hold a package named like ours
        "-m",
        "tasks.shards.worker",
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
