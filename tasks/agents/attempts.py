"""A run that failed for a passing reason is tried again, each time as a run of its own (specification, ``retries``)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from schemas.agent_record import RunEnd
from schemas.agent_spec import AgentSpec
from tasks.agents.run import RunContext, run_agent
from tasks.agents.runner import Runner

__all__ = ["run_with_retries"]


async def run_with_retries(
    spec: AgentSpec, runner: Runner, given: Mapping[str, str], context: RunContext
) -> list[RunEnd]:
    """Every attempt's end, in order; the last one counts. The wait doubles from one to the next."""
    ends: list[RunEnd] = []
    for attempt in range(1, spec.retries.max + 1):
        name = context.run_id if attempt == 1 else f"{context.run_id}-{attempt}"
        ends.append(await run_agent(spec, runner, given, replace(context, run_id=name, attempt=attempt)))
        if ends[-1].status == "completed" or ends[-1].stop not in spec.retries.on or attempt == spec.retries.max:
            break
        wait = spec.retries.backoff_seconds * 2 ** (attempt - 1)
        context.log(f"attempt {attempt} ended with {ends[-1].stop}; the next one begins in {wait} s")
        await asyncio.sleep(wait)
    return ends
