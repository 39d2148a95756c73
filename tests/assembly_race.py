"""Two processes that assemble one session at the same moments, with budgets that make them want different rounds."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier

from storage.objects import open_store
from storage.zone import Zone
from tasks.assemble import AssembleOptions, SessionAssembly, assemble_session
from tests.invented import SESSION
from tests.processes import what_they_said

__all__ = ["assemble_at_once"]

BUDGETS = (5_000, 9_000)


def assemble_at_once(urls: Sequence[str]) -> list[tuple[SessionAssembly, SessionAssembly]]:
    """What each of the two said for each zone."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(2), context.SimpleQueue()
    processes = [context.Process(target=_run, args=(list(urls), n, barrier, results)) for n in range(2)]
    said = dict(what_they_said(processes, results))
    return list(zip(said[0], said[1], strict=True))


def _run(
    urls: list[str],
    number: int,
    barrier: Barrier,
    results: multiprocessing.SimpleQueue[tuple[int, list[SessionAssembly]]],
) -> None:
    said = []
    for url in urls:
        zone = Zone(open_store(url))
        barrier.wait(120)
        options = AssembleOptions(now=1, max_round_bytes=BUDGETS[number])
        said.append(assemble_session(zone, SESSION, options))
    results.put((number, said))
