"""Two processes that publish different rounds of one number at the same moments."""

from __future__ import annotations

import multiprocessing
from multiprocessing.synchronize import Barrier

from schemas.errors import ChainRejected
from storage.objects import open_store
from storage.zone import Zone
from tests.processes import what_they_said
from tests.small_zone import SESSION, claim_for, round_bytes

__all__ = ["publish_at_once"]


def publish_at_once(url: str, rounds: int) -> list[list[str]]:
    """For each round number, how the two fared: `published`, or the rule that refused."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(2), context.SimpleQueue()
    processes = [context.Process(target=_run, args=(url, n, rounds, barrier, results)) for n in range(2)]
    ends = dict(what_they_said(processes, results))
    return [sorted([ends[0][each], ends[1][each]]) for each in range(rounds)]


def _run(
    url: str, writer: int, rounds: int, barrier: Barrier, results: multiprocessing.SimpleQueue[tuple[int, list[str]]]
) -> None:
    zone = Zone(open_store(url))
    chain = zone.chain(SESSION)
    ends = []
    for number in range(1, rounds + 1):
        barrier.wait(60)
        header, data, digest = round_bytes(zone, number, 1 if number == 1 else number, number, node=f"by-{writer}")
        barrier.wait(60)
        chain.claim(claim_for(header, digest))  # whoever's claim stands, each then tries its own bytes
        try:
            chain.publish(number, data, digest)
        except ChainRejected as error:
            ends.append(error.rule)
        else:
            ends.append("published")
    results.put((writer, ends))
