"""Deployments of agents: one for each, with its schedule, on a work pool of type process.

A deployment runs `run_agent` with the specification's path; the worker reads the file when the run begins, so that a
changed task needs no new deployment, and a changed schedule does.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import typer

from flows.agent_limits import limits_of, set_limits
from flows.console import DONE, columns, write_json
from flows.run import server_failures
from flows.settings import CONFIG_VARIABLE, DEFAULT_FILE, load_settings
from schemas.agent_spec import AgentSpec
from schemas.errors import WrongUse
from tasks.agents.catalogue import read_folder, read_spec

__all__ = ["deploy_agents"]

ENTRYPOINT = "flows/agents.py:run_agent"
ROOT = Path(__file__).parents[1]


def deploy_agents(paths: list[str], pool: str, archive: str | None, *, json: bool) -> int:
    """Deploy these agents, or all of the folder that have a schedule. The exit code. Raises `WrongUse`, also where an
    agent would have no archive: each of its runs would fail, with nobody there to see it."""
    wanted = _wanted(paths)
    archive = _whole(archive or load_settings().agents_archive)
    homeless = [spec.name for _, spec in wanted if spec.archive is None and archive is None]
    if homeless:
        raise WrongUse(
            f"no archive for runs of {', '.join(homeless)} — give --archive, set agents_archive, or name one in the "
            "specification"
        )
    from prefect.settings import PREFECT_API_URL

    if not PREFECT_API_URL.value():
        raise WrongUse("deployments need a Prefect server — set PREFECT_API_URL")
    with server_failures():
        rows = asyncio.run(_deploy(wanted, pool, archive))
    if json:
        write_json({"deployments": rows})
    else:
        header = ["deployment", "schedule", "limit", "file"]
        typer.echo(columns(header, [[row[name] or "-" for name in header] for row in rows]))
    return DONE


def _wanted(paths: list[str]) -> list[tuple[Path, AgentSpec]]:
    if paths:
        return [(Path(path).resolve(), read_spec(Path(path))) for path in paths]
    folder = Path(load_settings().agents)
    files = read_folder(folder)
    refused = [each.refused for each in files if each.refused is not None]
    if refused:
        raise refused[0]
    found = [(each.path.resolve(), each.spec) for each in files if each.spec is not None and each.spec.schedule]
    if not found:
        raise WrongUse(f"{folder}: no agent with a schedule is there")
    return found


def _whole(place: str | None) -> str | None:
    """A place as another process finds it, whatever folder it works in."""
    return place if place is None or "://" in place else str(Path(place).resolve())


async def _deploy(wanted: list[tuple[Path, AgentSpec]], pool: str, archive: str | None) -> list[dict[str, Any]]:
    from prefect import Flow
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.schedules import CronSchedule
    from prefect.exceptions import ObjectNotFound

    settings = load_settings()
    rows = []
    async with get_client() as client:
        try:
            found = await client.read_work_pool(pool)
        except ObjectNotFound:
            raise WrongUse(
                f"--pool: there is no work pool {pool}; make one: prefect work-pool create {pool} -t process"
            ) from None
        if found.type != "process":
            raise WrongUse(f"--pool: {pool} is of type {found.type}; agents need a folder and programs: type process")
        for path, spec in wanted:
            await set_limits(client, limits_of(spec, settings))
            flow: Any = await Flow.afrom_source(source=ROOT, entrypoint=ENTRYPOINT)
            schedule = spec.schedule
            await flow.adeploy(
                name=spec.name,
                work_pool_name=pool,
                description=spec.description or f"The agent {spec.name}.",
                parameters={"parameters": {"spec": str(path)} | ({} if archive is None else {"archive": archive})},
                schedules=[CronSchedule(cron=schedule.cron, timezone=schedule.timezone)] if schedule else [],
                tags=["sessionmill-agent"],
                job_variables={"env": _environment()},
                build=False,
                push=False,
                print_next_steps=False,
                ignore_warnings=True,
            )
            said = f"{schedule.cron} {schedule.timezone}" if schedule else None
            rows.append(
                {
                    "deployment": f"run-agent/{spec.name}",
                    "schedule": said,
                    "limit": str(spec.concurrency),
                    "file": str(path),
                }
            )
    return rows


def _environment() -> dict[str, str]:
    """What the process of a run finds beside the worker's own environment. It works at the root of this project, and
    so has to be told which configuration holds here."""
    environment = {"DO_NOT_TRACK": "1", "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    configuration = Path(os.environ.get(CONFIG_VARIABLE) or DEFAULT_FILE)
    if configuration.is_file():
        environment[CONFIG_VARIABLE] = str(configuration.resolve())
    return environment
