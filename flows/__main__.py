"""The command line: `sessionmill COMMAND …`, also `python -m flows`.

Commands live in modules by capability and are put together here. Everything slow to import (Prefect, s3fs,
pydantic-settings) is imported inside the command that needs it, so that `--help` stays instant.
"""

from __future__ import annotations

import gc
import signal
import sys
import traceback
from typing import Annotated, Any, NoReturn

import typer

from flows.agent_commands import agent_app
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
from flows.file_commands import check, scaffold
from flows.log_command import log
from flows.options import JsonOption
from flows.report_command import report
from flows.run_commands import run_app
from flows.usage_command import usage
from flows.zone_commands import assemble, export, fold, land, verify
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

# typer has its own copy of click, or click itself, depending on its version; this is the same class in both.
_USAGE_ERROR: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


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


# Commands are listed in the order in which a zone meets them.
app.add_typer(run_app, name="run")
app.add_typer(agent_app, name="agent")
for command in (land, assemble, verify, fold, check, scaffold, export, usage, report, log):
    app.command()(command)


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
        said = f"{error.filename}: the system refused it: {error.strerror}" if error.filename else str(error)
        if json:
            write_json({"error": type(error).__name__, "message": said})
        typer.echo(f"sessionmill: {printable(said)}", err=True)
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
