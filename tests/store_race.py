"""Two processes that create the same keys at the same moments."""

from __future__ import annotations

import multiprocessing
from multiprocessing.synchronize import Barrier

from schemas.errors import ObjectExists
from storage.objects import StoreSettings, open_store
from tests.processes import what_they_said

__all__ = ["race"]


def race(url: str, rounds: int, settings: StoreSettings | None = None) -> list[list[int]]:
    """For each round, the numbers of the processes whose create succeeded; each wrote its own number."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(2), context.SimpleQueue()
    processes = [context.Process(target=_run, args=(url, settings, n, rounds, barrier, results)) for n in range(2)]
    won = dict(what_they_said(processes, results))
    return [[number for number in (0, 1) if won[number][each]] for each in range(rounds)]


def _run(
    url: str,
    settings: StoreSettings | None,
    number: int,
    rounds: int,
    barrier: Barrier,
    results: multiprocessing.SimpleQueue[tuple[int, list[bool]]],
) -> None:
    store = open_store(url, settings=settings)
    won = []
    for each in range(rounds):
        barrier.wait(60)
        try:
            store.create(f"race/{each:04d}", str(number).encode() * 1000)
        except ObjectExists:
            won.append(False)
        else:
            won.append(True)
    results.put((number, won))
