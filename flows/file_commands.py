"""The commands that work on single files and need no zone: check, scaffold.

Each calls the ordinary function of its capability, imported when it is called, and leaves with its exit code.
"""

from __future__ import annotations

from typing import Annotated

import typer

from flows.options import JsonOption


def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Files ending in .sd, .sf or .relavium.yaml.")],
    json: JsonOption = False,
) -> None:
    """Accept or reject single files, naming the rule that one breaks."""
    from flows.direct import check_files

    raise typer.Exit(check_files(files, json=json))


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
