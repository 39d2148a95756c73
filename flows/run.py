"""Run a flow from the command line, so that it also stops when told.

The flow's event loop lives in a thread of its own: in the main thread Prefect replaces the handler for SIGTERM by one
that raises wherever the loop happens to be. Here a signal cancels the flow, which ends its workers, and the process
leaves.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import typer

from flows.agent_parameters import DueParameters
from flows.agent_summary import DueSummary
from flows.console import INTERRUPTED, TERMINATED, progress, write_json
from flows.export_summary import ExportParameters, ExportSummary
from flows.summary import IngestParameters, IngestSummary
from flows.usage_summary import UsageParameters, UsageSummary
from flows.verify_summary import VerifyParameters, VerifySummary
from flows.watch import watched_by
from schemas.errors import ServerUnavailable

__all__ = [
    "print_summary",
    "run_export_flow",
    "run_ingest_flow",
    "run_until_signal",
    "run_usage_flow",
    "run_verify_flow",
    "server_failures",
]

T = TypeVar("T")

LEAVE_WITHIN = 3.0
"""Seconds a cancelled run gets to end its workers and record its state; the temporary API may already be gone by
then."""

AGENTS_LEAVE_WITHIN = 90.0
"""Seconds that cancelled runs of agents get to end, to be judged and to land."""


def run_ingest_flow(
    parameters: IngestParameters, again: Callable[[IngestSummary], bool] = lambda summary: False
) -> IngestSummary:
    """Run the ingest flow, and once more as long as `again` says so of the last summary; the last one. A signal raises
    `SystemExit`, a Prefect server that does not answer `ServerUnavailable`."""
    _quieten_prefect()

    async def run() -> IngestSummary:
        from flows.ingest import ingest

        summary = await _flow_run("ingest", ingest, parameters, IngestSummary)
        while again(summary):
            summary = await _flow_run("ingest", ingest, parameters, IngestSummary)
        return summary

    return run_until_signal(run)


def run_export_flow(parameters: ExportParameters) -> ExportSummary:
    """Run the export flow; its summary. A signal raises `SystemExit`, a Prefect server that does not answer
    `ServerUnavailable`."""
    _quieten_prefect()

    async def run() -> ExportSummary:
        from flows.export import export

        return await _flow_run("export", export, parameters, ExportSummary)

    return run_until_signal(run)


def run_usage_flow(parameters: UsageParameters) -> UsageSummary:
    """Run the usage flow; its summary. A signal raises `SystemExit`, a Prefect server that does not answer
    `ServerUnavailable`."""
    _quieten_prefect()

    async def run() -> UsageSummary:
        from flows.usage import usage

        return await _flow_run("usage", usage, parameters, UsageSummary)

    return run_until_signal(run)


def run_verify_flow(parameters: VerifyParameters) -> VerifySummary:
    """Run the verify flow; its summary. A signal raises `SystemExit`, a Prefect server that does not answer
    `ServerUnavailable`."""
    _quieten_prefect()

    async def run() -> VerifySummary:
        from flows.verify import verify

        return await _flow_run("verify", verify, parameters, VerifySummary)

    return run_until_signal(run)


def run_due_agents_flow(parameters: DueParameters) -> DueSummary:
    """Run the agents that are due; the summary. A signal raises `SystemExit` when their runs are closed, a Prefect
    server that does not answer `ServerUnavailable`."""
    _quieten_prefect()

    async def run() -> DueSummary:
        from flows.agents import run_due_agents

        return await _flow_run("agents", run_due_agents, parameters, DueSummary)

    return run_until_signal(run, AGENTS_LEAVE_WITHIN)


def _quieten_prefect() -> None:
    """Prefect's own words are for its user interface; here they would only repeat the summary. Its service that sends
    events warns of work left at the end of every run that is slow to end."""
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_INTERNAL_LOGGING_LEVEL", "CRITICAL")


async def _flow_run(title: str, flow: Any, parameters: Any, kind: type[T]) -> T:
    """One run of `flow`; its summary, or what it raised."""
    _say_that_the_api_starts()
    with _progress(title), server_failures():
        state = await flow(parameters, return_state=True)
        result: object = await state.aresult(raise_on_failure=False)
        if isinstance(result, BaseException):
            raise result
    assert isinstance(result, kind)
    return result


_SAID: list[str] = []


def _say_that_the_api_starts() -> None:
    """Once, and only where somebody waits: nothing else is to be seen for those seconds."""
    from prefect.settings import PREFECT_API_URL

    if sys.stderr.isatty() and not PREFECT_API_URL.value() and not _SAID:
        _SAID.append("Prefect's temporary API starts; this takes some ten seconds")
        typer.echo(_SAID[0], err=True)


@contextmanager
def server_failures() -> Iterator[None]:
    """What Prefect raises when its server cannot be reached or used, as `ServerUnavailable`.

    Prefect raises a plain RuntimeError for a server that is not there, and httpx's errors for one that goes away.
    """
    import httpx
    from prefect.settings import PREFECT_API_URL

    try:
        yield
    except (httpx.HTTPError, RuntimeError) as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, httpx.HTTPError):
            cause = cause.__cause__
        temporary = "ephemeral Prefect API" in str(error)
        if cause is None and not temporary and "Failed to reach API" not in str(error):
            raise
        address = PREFECT_API_URL.value()
        server = "Prefect's temporary API" if address is None else f"the Prefect server at {_without_secrets(address)}"
        if isinstance(cause, httpx.HTTPStatusError):
            detail = f"it refused with HTTP {cause.response.status_code}"
        else:
            detail = "it does not answer"
        raise ServerUnavailable(server, detail) from error


def _without_secrets(url: str) -> str:
    """Scheme, host, port and path of a URL, without user, password and query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


@contextmanager
def _progress(title: str) -> Iterator[None]:
    with progress(title) as bar:

        def watch(sessions: int, done: str | None) -> None:
            if done is None:
                bar.start(sessions)
            else:
                bar.advance(done)

        with watched_by(watch):
            yield


def print_summary(summary: IngestSummary | VerifySummary, *, json: bool) -> None:
    """The summary on standard output: JSON, or the table, what is wrong, and one closing line."""
    if json:
        write_json(summary.model_dump(mode="json"))
        return
    if summary.sessions:
        typer.echo(summary.text())
    for line in summary.complaints():
        typer.echo(line)
    if isinstance(summary, IngestSummary) and summary.exports is not None and summary.exports.sessions:
        typer.echo(f"\n{summary.exports.text()}")
        for line in summary.exports.remarks():
            typer.echo(line)
    if isinstance(summary, IngestSummary) and summary.usage is not None:
        for line in summary.usage.complaints():
            typer.echo(line)
    typer.echo(summary.sentence)


def run_until_signal(run: Callable[[], Coroutine[Any, Any, T]], leave_within: float = LEAVE_WITHIN) -> T:
    """What `run()` returns or raises. SIGINT or SIGTERM cancels it and raises `SystemExit` with the shell's code for
    it, at the latest `leave_within` seconds later."""
    ended: list[T | BaseException] = []
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []
    received: list[int] = []

    async def body() -> T:
        task = asyncio.current_task()
        assert task is not None
        running.append((asyncio.get_running_loop(), task))
        return await run()

    def work() -> None:
        try:
            ended.append(asyncio.run(body()))
        except BaseException as error:
            ended.append(error)

    def stop(number: int, frame: FrameType | None) -> None:
        received.append(number)
        for loop, task in running:
            loop.call_soon_threadsafe(task.cancel)

    # A daemon, so that a run stuck in a call that cannot be cancelled does not keep the process.
    thread = threading.Thread(target=work, name="flow", daemon=True)
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        thread.start()
        while thread.is_alive() and not received:
            thread.join(0.1)
        thread.join(leave_within)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if received:
        print("sessionmill: stopped; what was published stays, the rest is done by the next run", file=sys.stderr)
        raise SystemExit(INTERRUPTED if received[0] == signal.SIGINT else TERMINATED)
    result = ended[0]
    if isinstance(result, BaseException):
        raise result
    return result
