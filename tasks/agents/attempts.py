"""A run that failed for a passing reason is tried again, each time as a run of its own (specification, ``retries``)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from schemas.agent_record import RunEnd
from schemas.agent_spec import AgentSpec
from tasks.agents.resume import prior_of, put_back
from tasks.agents.run import RunContext, run_agent
from tasks.agents.runner import Runner
from tasks.agents.settle import Destinations, schedule_of, settle

__all__ = ["run_with_retries", "settle_attempts"]


async def run_with_retries(
    spec: AgentSpec, runner: Runner, given: Mapping[str, str], context: RunContext
) -> list[RunEnd]:
    """Every attempt's end, in order; the last one counts. The wait doubles from one to the next."""
    ends: list[RunEnd] = []
    for attempt in range(1, spec.retries.max + 1):
        name = _name(context.run_id, attempt)
        if ends and context.continues is not None and ends[-1].transcripts:
            # What the attempt before left is part of the session by now.
            context = put_back(context, spec, prior_of(context.runs, spec, ends[-1].run_id))
        ends.append(await run_agent(spec, runner, given, replace(context, run_id=name, attempt=attempt)))
        if ends[-1].status == "completed" or ends[-1].stop not in spec.retries.on or attempt == spec.retries.max:
            break
        wait = spec.retries.backoff_seconds * 2 ** (attempt - 1)
        context.log(f"attempt {attempt} ended with {ends[-1].stop}; the next one begins in {wait} s")
        await asyncio.sleep(wait)
    return ends


def settle_attempts(spec: AgentSpec, run_id: str, to: Destinations) -> None:
    """Settle every attempt of this run that is closed: it was told to end, so nobody else does."""
    for attempt in range(1, spec.retries.max + 1):
        end = to.runs.end(spec.name, _name(run_id, attempt))
        if end is not None:
            settle(end, schedule_of(spec), to)


def _name(run_id: str, attempt: int) -> str:
    return run_id if attempt == 1 else f"{run_id}-{attempt}"
