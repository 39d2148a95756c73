"""Divide sessions into shards of similar size: the units that Prefect sees.

A Prefect server records some 75 task runs a second and drops events when a flow run makes thousands of tasks, so there
are at most `MOST_SHARDS`, however many sessions there are.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

__all__ = ["MOST_SHARDS", "Shard", "plan_shards"]

MOST_SHARDS = 200


class Shard(BaseModel):
    """Sessions that one task works on, by name, and their landed bytes."""

    model_config = ConfigDict(frozen=True)

    number: int
    sessions: tuple[str, ...]
    size: int


def plan_shards(sizes: Mapping[str, int], shard_bytes: int) -> list[Shard]:
    """As many shards as `shard_bytes` calls for, 1 to `MOST_SHARDS`, filled largest session first into the lightest.

    `sizes` is landed bytes by session. The same sizes give the same shards, whatever the order they come in.
    """
    if not sizes:
        return []
    wanted = -(-sum(sizes.values()) // shard_bytes)
    count = max(1, min(wanted, MOST_SHARDS, len(sizes)))
    lightest = [(0, number) for number in range(count)]
    members: list[list[str]] = [[] for _ in range(count)]
    for session in sorted(sizes, key=lambda name: (-sizes[name], name)):
        size, number = heapq.heappop(lightest)
        members[number].append(session)
        heapq.heappush(lightest, (size + sizes[session], number))
    totals = {number: size for size, number in lightest}
    return [
        Shard(number=number + 1, sessions=tuple(sorted(names)), size=totals[number])
        for number, names in enumerate(members)
    ]
