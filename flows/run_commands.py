"""`sessionmill run FLOW`: a capability as a Prefect flow, here, with or without a Prefect server.

Parameters are read, and what they name is looked for, before Prefect starts: wrong use costs no flow run.
"""

from __future__ import annotations

import typer

from flows.options import JsonOption, ParamOption

run_app = typer.Typer(help="Run a Prefect flow, here, with or without a Prefect server.", no_args_is_help=True)


@run_app.command("ingest")
def run_ingest(
    parameters: ParamOption = None,
    json: JsonOption = False,
) -> None:
    """Land sources, then assemble and verify every session of the zone, as one flow run.

    Parameters: zone, sources, sessions (patterns), shard_bytes, workers, max_round_bytes, now, export_to, usage_to.
    """
    from flows.parameters import parameters_from
    from flows.run import print_summary, run_ingest_flow
    from flows.sessions import matching
    from flows.settings import load_settings, open_exports, open_landing_zone, open_zone
    from flows.summary import IngestParameters

    given = parameters_from(IngestParameters, parameters or [])
    if given.sources:
        open_landing_zone(given.zone, load_settings())
    zone = open_zone(given.zone)
    if given.export_to is not None:
        open_exports(given.export_to, zone=zone)
    if given.usage_to is not None:
        open_exports(given.usage_to, zone=zone)
    if not given.sources:  # a zone with nothing to do in it is said before Prefect starts
        matching(zone, zone.sessions(), given.wanted)
    summary = run_ingest_flow(given)
    print_summary(summary, json=json)
    raise typer.Exit(summary.exit_code)


@run_app.command("verify")
def run_verify(
    parameters: ParamOption = None,
    json: JsonOption = False,
) -> None:
    """Read and check every landed file and every round of a zone, as one flow run.

    Parameters: zone, sessions (patterns), shard_bytes, workers.
    """
    from flows.parameters import parameters_from
    from flows.run import print_summary, run_verify_flow
    from flows.sessions import matching
    from flows.settings import open_zone
    from flows.verify_summary import VerifyParameters
    from tasks.verify import verifiable

    given = parameters_from(VerifyParameters, parameters or [])
    zone = open_zone(given.zone)
    matching(zone, verifiable(zone), given.wanted)
    summary = run_verify_flow(given)
    print_summary(summary, json=json)
    raise typer.Exit(summary.exit_code)


@run_app.command("export")
def run_export(
    parameters: ParamOption = None,
    json: JsonOption = False,
) -> None:
    """Export the completed sessions of a zone, as one flow run.

    Parameters: zone, to, sessions (patterns), shard_bytes, workers, as_of, completed_after, keep_secrets, agent_slug.
    """
    from flows.export_summary import ExportParameters, exportable
    from flows.exporting import print_summary
    from flows.parameters import parameters_from
    from flows.run import run_export_flow
    from flows.sessions import matching
    from flows.settings import open_exports, open_zone

    given = parameters_from(ExportParameters, parameters or [])
    zone = open_zone(given.zone)
    matching(zone, exportable(zone), given.wanted)
    open_exports(given.to, zone=zone)
    summary = run_export_flow(given)
    print_summary(summary, json=json)
    raise typer.Exit(summary.exit_code)


@run_app.command("usage")
def run_usage(
    parameters: ParamOption = None,
    json: JsonOption = False,
) -> None:
    """Count every provider call of a zone once into Parquet, as one flow run.

    Parameters: zone, to, sessions (patterns), reprice, prices, now.
    """
    from flows.parameters import parameters_from
    from flows.run import run_usage_flow
    from flows.settings import load_settings, open_exports, open_zone
    from flows.usage_command import print_usage
    from flows.usage_summary import UsageParameters, rate_card

    given = parameters_from(UsageParameters, parameters or [])
    zone = open_zone(given.zone)
    given.options(zone)
    rate_card(given.prices, load_settings())
    open_exports(given.to, zone=zone)
    summary = run_usage_flow(given)
    print_usage(summary, json=json)
    raise typer.Exit(summary.exit_code)


@run_app.command("agents")
def run_agents(
    parameters: ParamOption = None,
    json: JsonOption = False,
) -> None:
    """Run the agents of a folder that are due by their schedules, as one flow run.

    Parameters: agents, zone, archive, usage.
    """
    from flows.agent_parameters import DueParameters
    from flows.console import write_json
    from flows.parameters import parameters_from
    from flows.run import run_due_agents_flow

    summary = run_due_agents_flow(parameters_from(DueParameters, parameters or []))
    if json:
        write_json(summary.model_dump(mode="json"))
    else:
        for line in filter(None, [summary.text(), summary.sentence]):
            typer.echo(line)
    raise typer.Exit(summary.exit_code)
