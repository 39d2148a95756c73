"""`sessionmill agent …`: run one agent here and now, list a folder of them, deploy those with a schedule."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.options import JsonOption

agent_app = typer.Typer(help="Headless agents: run one, list them, deploy their schedules.", no_args_is_help=True)

ArchiveOption = Annotated[
    str | None, typer.Option("--archive", metavar="ARCHIVE", help="Where the run and its transcripts are kept.")
]
ZoneOption = Annotated[str | None, typer.Option("--zone", metavar="ZONE", help="The zone its transcripts land in.")]
UsageOption = Annotated[str | None, typer.Option("--usage", metavar="USAGE", help="The usage data set for its row.")]


@agent_app.command("run")
def run(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help="The agent's specification, a YAML file.")],
    variables: Annotated[
        list[str] | None,
        typer.Option("--var", metavar="NAME=VALUE", help="A variable of the task; may be repeated."),
    ] = None,
    archive: ArchiveOption = None,
    zone: ZoneOption = None,
    usage: UsageOption = None,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="RUN", help="Go on with the session of this earlier run.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Run one headless agent session, without Prefect: judge it, archive it, land it."""
    from flows.agent_direct import run_here

    raise typer.Exit(run_here(spec, variables or [], archive, zone, usage, resume, json=json))


@agent_app.command("list")
def list_agents(
    folder: Annotated[
        str | None, typer.Argument(metavar="AGENTS", help="The folder of specifications; default: as configured.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the agents of a folder: runner and its version, schedule, what is wrong, what is missing here."""
    from flows.agent_direct import list_folder

    raise typer.Exit(list_folder(folder, json=json))


@agent_app.command("deploy")
def deploy(
    specs: Annotated[
        list[str] | None,
        typer.Argument(metavar="SPEC…", help="Specifications; default: all of the folder that have a schedule."),
    ] = None,
    pool: Annotated[
        str, typer.Option("--pool", metavar="NAME", help="The work pool, of type process.")
    ] = "sessionmill",
    archive: ArchiveOption = None,
    json: JsonOption = False,
) -> None:
    """Deploy agents to the Prefect server, each with its schedule and its limits."""
    from flows.agent_deploy import deploy_agents

    raise typer.Exit(deploy_agents(specs or [], pool, archive, json=json))
