"""The edge to Prefect: a run of an agent as one task. It is async, so that it can be cancelled at any moment."""

from __future__ import annotations

from dataclasses import replace

from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.logging import get_run_logger

from schemas.agent_record import RunEnd
from schemas.agent_spec import AgentSpec
from tasks.agents.attempts import run_with_retries
from tasks.agents.run import RunContext
from tasks.agents.runner import Runner

__all__ = ["agent_session"]


@task(name="agent session", persist_result=False, cache_policy=NO_CACHE, retries=0)
async def agent_session(spec: AgentSpec, runner: Runner, given: dict[str, str], context: RunContext) -> list[RunEnd]:
    """Run `spec`, again where it asks for that; every attempt's end. What the agent does is in the run's log."""
    logger = get_run_logger()
    return await run_with_retries(spec, runner, given, replace(context, log=lambda line: logger.info("%s", line)))
