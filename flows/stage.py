"""What every flow over a zone does: work on shards side by side, and end with a summary that says how it went.

A shard that fails as a whole fails each of its sessions that has no outcome, and no other.
"""

# No postponed annotations here: a served flow is pickled with the globals that its code names, its annotations' not.

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from prefect.artifacts import acreate_table_artifact
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from schemas.errors import SessionmillError
from storage.zone import Zone
from tasks.ingest.session import BAD_DATA
from tasks.shards import Outcome, Shard, Work, plan_shards
from tasks.shards.task import Finished, work_on_shard

__all__ = ["end", "or_refused", "over_shards", "over_zone", "refused", "sized"]

One = TypeVar("One", bound=Outcome)


class Summary(Protocol):
    """How a run went."""

    @property
    def exit_code(self) -> int: ...

    @property
    def sentence(self) -> str: ...

    def rows(self) -> list[dict[str, object]]: ...


class Sharding(Protocol):
    """The parameters that say how work is divided."""

    @property
    def shard_bytes(self) -> int: ...

    @property
    def workers(self) -> int: ...


def sized(zone: Zone, names: Iterable[str]) -> tuple[dict[str, int], list[str]]:
    """Landed bytes by session, and the names that are not even text. A session that cannot be listed counts 0 bytes;
    its task then says why."""
    sizes: dict[str, int] = {}
    nameless: list[str] = []
    for name in names:
        try:
            name.encode()
            sizes[name] = sum(ref.size for ref in zone.landed_files(name))
        except UnicodeEncodeError:
            nameless.append(name)
        except BAD_DATA:
            sizes[name] = 0
    return sizes, nameless


async def over_zone(
    name: str, work: Work[One], sizes: Mapping[str, int], sharding: Sharding, finished: Finished[One]
) -> None:
    """Do `work` with every session of `sizes`, in shards of similar size."""
    await over_shards(name, [(shard, work, finished) for shard in plan_shards(sizes, sharding.shard_bytes)], sharding)


async def over_shards(name: str, shards: Sequence[tuple[Shard, Work[One], Finished[One]]], sharding: Sharding) -> None:
    """Do each shard's work, as many at once as there are workers. What a retry cannot mend becomes an outcome."""
    task = work_on_shard.with_options(name=name)
    free = asyncio.Semaphore(sharding.workers)

    async def hold(shard: Shard, work: Work[One], finished: Finished[One]) -> None:
        # Waiting outside the task: a shard that has no process yet is not shown as running.
        async with free:
            await task(shard, work, finished)

    ends = await asyncio.gather(*(hold(*each) for each in shards), return_exceptions=True)
    for (shard, work, finished), error in zip(shards, ends, strict=True):
        if isinstance(error, Exception):
            for session in finished.missing(shard.sessions):
                finished.add(work.failed(session, str(error)))
        elif error is not None:
            raise error


def refused(error: SessionmillError) -> State[Any]:
    """The state of a run that could not do its work, for a reason that the error's sentence says in full."""
    return Failed(message=str(error), data=error)


async def or_refused(work: Awaitable[State[Any]]) -> State[Any]:
    """The state that a flow's work ends in; where it cannot be done, `refused`, so that no traceback is logged."""
    try:
        return await work
    except SessionmillError as error:
        return refused(error)


async def end(summary: Summary, key: str) -> State[Any]:
    """Leave the summary as the table `key`; the state that the run ends in."""
    await acreate_table_artifact(table=summary.rows(), key=key, description=summary.sentence)
    if summary.exit_code:
        return Failed(message=summary.sentence, data=summary)
    return Completed(message=summary.sentence, data=summary)
