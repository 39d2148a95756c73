"""The command line: `sessionmill COMMAND …`, also `python -m flows`.

Each command calls the ordinary function of its capability and prints what came of it. Everything slow to import
(Prefect, s3fs, pydantic-settings) is imported inside the command that needs it, so that `--help` stays instant.
"""

from __future__ import annotations

import gc
import signal
import sys
import traceback
from typing import Annotated, Any, NoReturn

import typer

from flows.console import (
    DONE,
    INTERRUPTED,
    SYSTEM_FAILED,
    TERMINATED,
    error_facts,
    exit_code,
    printable,
    show_what_is_waited_for,
    write_json,
)
from schemas.errors import SessionmillError, WrongUse

app = typer.Typer(
    name="sessionmill",
    help="Landed session records in, verified Session Flow conversation chains out.\n\n"
    "ZONE is a folder, a file:// URL or s3://bucket/prefix. "
    "Exit codes: 0 done, 1 problems in the data, 2 wrong use, 3 the system failed.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
run_app = typer.Typer(help="Run a Prefect flow, here, with or without a Prefect server.", no_args_is_help=True)
app.add_typer(run_app, name="run")

# typer has its own copy of click, or click itself, depending on its version; this is the same class in both.
_USAGE_ERROR: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

ZoneArgument = Annotated[
    str, typer.Argument(metavar="ZONE", help="The storage root: a folder, file:// URL or s3://bucket/prefix.")
]
SessionOption = Annotated[str | None, typer.Option("--session", metavar="ID", help="Only this session.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
ParamOption = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter of the flow; may be repeated."),
]
NowOption = Annotated[
    str | None,
    typer.Option(
        "--now",
        metavar="TIME",
        help="The clock, RFC 3339 with up to nine digits of a second; only conversation.state shows it.",
    ),
]
RoundBytesOption = Annotated[
    int | None,
    typer.Option("--max-round-bytes", metavar="N", help="A round's byte budget; 0 or less means the default, 2 MiB."),
]


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"sessionmill {version('sessionmill')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Options before any command."""


@run_app.command("ingest")
def run_ingest(
    parameters: ParamOption = None,
    json: JsonOption = False,
) -> None:
    """Assemble and verify every session of a zone, as one flow run.

    Parameters: zone, sessions (patterns), shard_bytes, workers, max_round_bytes, now, export_to.
    """
    from flows.parameters import parameters_from
    from flows.run import print_summary, run_ingest_flow
    from flows.sessions import matching
    from flows.settings import open_exports, open_zone
    from flows.summary import IngestParameters

    given = parameters_from(IngestParameters, parameters or [])
    zone = open_zone(given.zone)
    if given.export_to is not None:
        open_exports(given.export_to, zone=zone)
    matching(zone, zone.sessions(), given.wanted)  # a zone with nothing to do in it is said before Prefect starts
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


@app.command()
def land(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="The archive: a folder, file:// URL or s3://bucket/prefix.")
    ],
    zone: ZoneArgument,
    kind: Annotated[
        str,
        typer.Option("--kind", metavar="KIND", help="What the archive is: claude-code, codex, or auto to find out."),
    ] = "auto",
    now: Annotated[
        str | None,
        typer.Option("--now", metavar="TIME", help="The clock that landed files show, RFC 3339, to the nanosecond."),
    ] = None,
    max_delta_bytes: Annotated[
        int | None,
        typer.Option("--max-delta-bytes", metavar="N", help="Bytes of a source's file that land in one file."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Land what is new in an archive of sessions as Session Data."""
    from flows.landing import land_source

    raise typer.Exit(land_source(source, zone, kind, now, max_delta_bytes, json=json))


@app.command()
def assemble(
    zone: ZoneArgument,
    session: SessionOption = None,
    max_round_bytes: RoundBytesOption = None,
    now: NowOption = None,
    json: JsonOption = False,
) -> None:
    """Write the rounds that the landed evidence calls for."""
    from flows.direct import assemble_zone

    raise typer.Exit(assemble_zone(zone, session, max_round_bytes, now, json=json))


@app.command()
def verify(zone: ZoneArgument, session: SessionOption = None, json: JsonOption = False) -> None:
    """Check every landed file and every round, and list what is wrong."""
    from flows.direct import verify_zone

    raise typer.Exit(verify_zone(zone, session, json=json))


@app.command()
def fold(
    zone: ZoneArgument,
    conversation: Annotated[str, typer.Argument(metavar="CONVERSATION", help="The conversation's id.")],
    json: JsonOption = False,
) -> None:
    """Show a conversation as its rounds leave it."""
    from flows.direct import fold_conversation

    raise typer.Exit(fold_conversation(zone, conversation, json=json))


@app.command()
def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Files ending in .sd, .sf or .relavium.yaml.")],
    json: JsonOption = False,
) -> None:
    """Accept or reject single files, naming the rule that one breaks."""
    from flows.direct import check_files

    raise typer.Exit(check_files(files, json=json))


@app.command()
def scaffold(
    record: Annotated[str, typer.Argument(metavar="RECORD.json", help="A Relavium session's record.")],
    messages: Annotated[str, typer.Argument(metavar="MESSAGES.json", help="Its messages, a list.")],
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write here, not to standard output.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Turn one Relavium session into the workflow that Relavium's own exporter writes."""
    from flows.exporting import scaffold_session

    raise typer.Exit(scaffold_session(record, messages, output, json=json))


@app.command()
def export(
    zone: ZoneArgument,
    to: Annotated[str, typer.Option("--to", metavar="EXPORTS", help="Where the files go: a folder or s3://….")],
    session: SessionOption = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of", metavar="TIME", help="Measure quiet to this moment, or to `now`; default: the newest record's."
        ),
    ] = None,
    completed_after: Annotated[
        str | None,
        typer.Option("--completed-after", metavar="DURATION", help="How long a completed session is quiet, as in 1h."),
    ] = None,
    keep_secrets: Annotated[
        bool | None,
        typer.Option(
            "--keep-secrets/--withhold-secrets",
            help="Keep or withhold what looks like a secret; default: withhold, but in Relavium's own sessions.",
            show_default=False,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Turn completed sessions into `.relavium.yaml` workflows to review."""
    from flows.exporting import export_zone

    raise typer.Exit(export_zone(zone, to, session, as_of, completed_after, keep_secrets=keep_secrets, json=json))


@app.command()
def demo(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Where the demo zone goes.")] = "sessionmill-demo",
    json: JsonOption = False,
) -> None:
    """Make a small invented zone and run the flow on it; no server is needed."""
    from flows.demo import run_demo

    raise typer.Exit(run_demo(folder, json=json))


def main() -> NoReturn:
    """The console script: run a command, and turn every failure into one sentence and an exit code."""
    signal.signal(signal.SIGTERM, _terminate)
    # Sessions are hundreds of thousands of small values without cycles: the collector would walk them for nothing.
    gc.set_threshold(50_000)
    json = "--json" in sys.argv
    show_what_is_waited_for()
    try:
        code = _invoke(json)
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else SYSTEM_FAILED
    except KeyboardInterrupt:
        code = INTERRUPTED
    except SessionmillError as error:
        code = exit_code(error)
        if json:
            write_json(error_facts(error))
        typer.echo(f"sessionmill: {printable(str(error))}", err=True)
    except OSError as error:
        code = SYSTEM_FAILED
        if json:
            write_json({"error": type(error).__name__, "message": str(error)})
        typer.echo(f"sessionmill: {printable(str(error))}", err=True)
    except Exception:
        # Not a failure we know: the traceback is the report.
        code = SYSTEM_FAILED
        traceback.print_exc()
    sys.exit(code)


def _invoke(json: bool) -> int:
    """Run the command. What is wrong with its options typer says by itself, except where JSON is asked for."""
    if not json:
        app()
        return DONE
    try:
        code = app(standalone_mode=False)
    except _USAGE_ERROR as error:
        refused: Any = error
        raise WrongUse(refused.format_message()) from None
    return code if isinstance(code, int) else DONE


def _terminate(number: int, frame: object) -> NoReturn:
    raise SystemExit(TERMINATED)


if __name__ == "__main__":
    main()
