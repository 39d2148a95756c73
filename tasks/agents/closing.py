"""What it takes to close a run while everything around it ends (headless agent runs, "never left open").

Prefect ends a flow's process by an exception out of its event loop, which then cancels every task in it, shielded or
not. A run therefore has a loop of its own, in a thread that the process waits for.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from schemas.agent_run import StopReason
from schemas.errors import SessionmillError

__all__ = ["answer_of", "in_a_loop_of_its_own", "patiently", "whatever_comes"]

T = TypeVar("T")


def in_a_loop_of_its_own(work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
    """Start ``work()`` in a thread with an event loop. Whoever ends our own loop, as Prefect does when its process is
    told to end, cancels every task in it, and a run has to be closed nevertheless. The process waits for the thread."""
    ended: Future[T] = Future()

    def body() -> None:
        try:
            ended.set_result(asyncio.run(work()))
        except BaseException as error:
            ended.set_exception(error)

    threading.Thread(target=body, name="agent run").start()
    return ended


async def answer_of(why: Callable[[], Awaitable[StopReason]], log: Callable[[str], None]) -> StopReason:
    """Why our task was cancelled, as far as whoever knows can be reached; that it could not be is said."""
    try:
        return await asyncio.wait_for(why(), 3)
    except Exception as error:
        # Whom we ask may be what went away, in any manner; the run has to be closed nevertheless.
        log(f"why the run was to end could not be asked ({type(error).__name__}: {error}); it counts as interrupted")
        return "interrupted"


async def patiently(work: Callable[[], T], waits: Iterable[float], log: Callable[[str], None]) -> T:
    """What ``work()`` comes to, in a thread; where a store refuses it, once more after each of these waits, in seconds.

    An archive on a network may be away for a moment, and what a run came to would be with it. Raises the last refusal.
    """
    for wait in waits:
        try:
            return await asyncio.to_thread(work)
        except (SessionmillError, OSError) as error:
            log(f"the archive could not be written, and is tried again: {error}")
            await asyncio.sleep(wait)
    return await asyncio.to_thread(work)


async def whatever_comes(closing: asyncio.Future[T], seconds: float) -> None:
    """Wait for the run's end; being told once more to stop does not end it sooner, but nothing waits for ever."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not closing.done() and loop.time() < deadline:
        with suppress(asyncio.CancelledError):
            await asyncio.wait({closing}, timeout=deadline - loop.time())
