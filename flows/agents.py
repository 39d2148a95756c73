"""Agents that run unattended: one flow for one run of an agent, and one that begins those whose time has come.

A run is bounded by its specification and by two limits of the Prefect server: of its agent and of its provider. When
it is cancelled it is ended, judged, archived and landed before the flow leaves.
"""

# No postponed annotations here: a served flow is pickled with the globals that its code names, its annotations' not.

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prefect import flow, get_client
from prefect.artifacts import acreate_markdown_artifact
from prefect.client.schemas.objects import State, StateType
from prefect.concurrency.asyncio import concurrency
from prefect.context import FlowRunContext
from prefect.logging import get_run_logger
from prefect.states import Completed, Failed

from flows.agent_limits import limits_of, set_limits
from flows.agent_parameters import AgentParameters, AgentPlace, DueParameters, open_place
from flows.agent_secrets import secrets_of
from flows.agent_summary import DueRun, DueSummary
from flows.settings import Settings, load_settings
from flows.stage import or_refused, refused
from schemas.agent_record import RunEnd
from schemas.agent_run import StopReason
from schemas.agent_spec import AgentSpec
from schemas.errors import ObjectExists, SessionmillError
from schemas.times import file_stamp, format_time
from tasks.agents.attempts import settle_attempts
from tasks.agents.catalogue import read_folder
from tasks.agents.cut_runs import make_up_for
from tasks.agents.due import due_now, is_due_run, is_late, is_superseded, run_name
from tasks.agents.host import this_host
from tasks.agents.prices import listed
from tasks.agents.report import markdown
from tasks.agents.run import RunContext
from tasks.agents.settle import Settled, schedule_of, settle
from tasks.agents.task import agent_session

__all__ = ["run_agent", "run_due_agents"]

LEASE_SECONDS = 60
"""How long a slot stays taken after its run's process was killed."""


@flow(name="run-agent", persist_result=False)
async def run_agent(parameters: AgentParameters) -> State[Any]:
    """Run one agent once. Ends Failed unless the evidence says that the task was carried out, and with one sentence
    where the configuration or the specification cannot be meant: a traceback would say no more."""
    return await or_refused(_run_once(parameters))


async def _run_once(parameters: AgentParameters) -> State[Any]:
    settings = load_settings()
    place = await asyncio.to_thread(open_place, Path(parameters.spec), parameters, settings)
    expected = _expected_start()
    if expected is not None and (skipped := await _wait_or_skip(place.spec, expected)) is not None:
        return Completed(name="Skipped", message=skipped)
    stamp = file_stamp(_nanoseconds(expected or datetime.now(UTC)))
    return await _run(place, settings, parameters.variables, f"{stamp}-{_flow_run_id()[-12:]}", expected)


@flow(name="run-due-agents", persist_result=False)
async def run_due_agents(parameters: DueParameters) -> State[Any]:
    """Begin every agent of the folder that is due and was not begun; ends Failed when one of them does, or is no
    specification. One that another worker begins at the same moment is left to it."""
    try:
        settings = load_settings()
        files = await asyncio.to_thread(read_folder, Path(parameters.agents))
    except SessionmillError as error:
        return refused(error)
    unusable = [str(each.refused) for each in files if each.refused is not None]
    specs = [each.spec for each in files if each.spec is not None]
    ended = await asyncio.gather(*(_run_if_due(spec, parameters, settings) for spec in specs), return_exceptions=True)
    if any(isinstance(each, asyncio.CancelledError) for each in ended):
        raise asyncio.CancelledError
    runs = [_due_run(spec, each) for spec, each in zip(specs, ended, strict=True) if each is not None]
    summary = DueSummary(agents=len(specs), runs=runs, refused=unusable)
    end = Failed if summary.exit_code else Completed
    return end(message=summary.sentence, data=summary)


def _due_run(spec: AgentSpec, ended: State[Any] | BaseException) -> DueRun:
    if isinstance(ended, BaseException):
        # The summary has room for a sentence; where it came from is for whoever has to mend it.
        where = None if isinstance(ended, SessionmillError) else ended
        get_run_logger().error("%s: %s", spec.name, ended, exc_info=where)
        return DueRun(agent=spec.name, said=str(ended), good=False)
    return DueRun(agent=spec.name, said=str(ended.message), good=ended.is_completed())


async def _run_if_due(spec: AgentSpec, parameters: DueParameters, settings: Settings) -> State[Any] | None:
    if spec.schedule is None:
        return None
    place = await asyncio.to_thread(open_place, spec, parameters, settings)
    now = datetime.now(UTC)
    begun = await asyncio.to_thread(place.runs.runs, place.spec.name)
    last = max(filter(is_due_run, begun), default=None)
    due = due_now(place.spec, last, now)
    if due is None or due.late:
        return None
    try:
        return await _run(place, settings, {}, run_name(place.spec.name, due.scheduled_for), due.scheduled_for)
    except ObjectExists as taken:
        if not place.runs.is_start(taken.key):
            raise
        get_run_logger().info("%s: another worker has begun the run of %s", place.spec.name, due.scheduled_for)
        return None


async def _run(
    place: AgentPlace, settings: Settings, given: dict[str, str], run_id: str, expected: datetime | None
) -> State[Any]:
    spec = place.spec
    find = await secrets_of(spec)
    warn = get_run_logger().warning
    # What a killed process left is closed and landed by the next run of its agent.
    await asyncio.to_thread(
        make_up_for, spec, place.work, find, place.to, this_host(), _now(), lambda line: warn("%s", line)
    )
    context = RunContext(
        run_id=run_id,
        runs=place.runs,
        work=place.work,
        find=find,
        price=listed(spec, _now),
        scheduled_for=format_time(_nanoseconds(expected)) if expected is not None else None,
        to=place.to,
        why=_why_cancelled(),
    )
    try:
        async with _slots(spec, settings):
            ends = await agent_session(spec, place.runner, given, context)
    except asyncio.CancelledError:
        # The run is closed by now, and what it left lands before we leave.
        await asyncio.shield(asyncio.to_thread(settle_attempts, spec, run_id, place.to))
        raise
    settled = [await asyncio.to_thread(settle, end, schedule_of(spec), place.to) for end in ends]
    await _show(place, settled[-1])
    return _state(settled)


def _state(settled: list[Settled]) -> State[Any]:
    end = settled[-1].end
    said = end.verdict()
    problems = sum(each.problems for each in settled)
    if problems:
        said += f"; {problems} problems in what landed"
    return Completed(message=said) if end.status == "completed" and not problems else Failed(message=said)


@asynccontextmanager
async def _slots(spec: AgentSpec, settings: Settings) -> AsyncIterator[None]:
    """A place among the runs of this agent and of its provider; both limits are set as configured now."""
    limits = limits_of(spec, settings)
    async with get_client() as client:
        await set_limits(client, limits)
    async with concurrency(list(limits), occupy=1, lease_duration=LEASE_SECONDS, strict=True):
        yield


async def _show(place: AgentPlace, settled: Settled) -> None:
    end = settled.end
    links = {"Archive": f"{place.runs.store.url.rstrip('/')}/{place.runs.folder(end.agent, end.run_id)}"}
    if place.to.zone is not None:
        sessions = ", ".join(each.session for each in settled.sessions) or "none"
        links["Zone"] = f"{place.to.zone.store.url}, sessions: {sessions}"
    await acreate_markdown_artifact(markdown=markdown(end, links), key=f"agent-{end.agent}", description=_said(end))


def _said(end: RunEnd) -> str:
    return f"{end.run_id}: {end.status} ({end.stop})"


async def _wait_or_skip(spec: AgentSpec, expected: datetime) -> str | None:
    """Wait out the jitter of a scheduled run; why it is skipped instead, if it is."""
    now = datetime.now(UTC)
    if is_late(spec, expected, now):
        return f"{spec.name} was due at {expected:%Y-%m-%dT%H:%M:%SZ} and is late: skipped, as its schedule says"
    if is_superseded(spec, expected, now):
        return f"{spec.name} was due at {expected:%Y-%m-%dT%H:%M:%SZ} and later runs too: the last makes up for all"
    if spec.schedule is not None:
        wait = spec.schedule.delay(spec.name, expected) - (now - expected).total_seconds()
        await asyncio.sleep(max(0.0, wait))
    return None


def _expected_start() -> datetime | None:
    """When this flow run was due; None for one that somebody started."""
    context = FlowRunContext.get()
    run = context.flow_run if context is not None else None
    if run is None or not run.auto_scheduled or run.expected_start_time is None:
        return None
    return run.expected_start_time.astimezone(UTC)


def _flow_run_id() -> str:
    context = FlowRunContext.get()
    assert context is not None
    assert context.flow_run is not None
    return context.flow_run.id.hex


def _why_cancelled() -> Any:
    """Asks the server whether somebody cancelled this flow run; if not, its process was told to end."""
    run = FlowRunContext.get()
    assert run is not None
    assert run.flow_run is not None
    flow_run = run.flow_run.id

    async def ask() -> StopReason:
        async with get_client() as client:
            state = (await client.read_flow_run(flow_run)).state
        asked = state is not None and state.type in (StateType.CANCELLING, StateType.CANCELLED)
        return "cancelled" if asked else "interrupted"

    return ask


def _now() -> int:
    return _nanoseconds(datetime.now(UTC))


def _nanoseconds(time: datetime) -> int:
    return int(time.timestamp() * 1_000_000) * 1_000
