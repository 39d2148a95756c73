"""The command that reports on a usage data set: tables on a terminal, JSON, or one HTML page.

It reads what `sessionmill usage` wrote and nothing else, and counts nothing itself: `tasks.report` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from flows.options import JsonOption

if TYPE_CHECKING:
    from tasks.report import Scope, UsageReport

__all__ = ["report", "write_page"]

STANDARD_OUTPUT = "-"


def report(
    usage: Annotated[
        str, typer.Argument(metavar="USAGE", help="The usage data set: a folder, file:// URL or s3://bucket/prefix.")
    ],
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            metavar="TABLE",
            help="Only this table: daily, monthly, models, projects, sessions or agents; may be repeated.",
        ),
    ] = None,
    zone: Annotated[
        str, typer.Option("--zone", metavar="NAME", help="The time zone of every day, as in America/Los_Angeles.")
    ] = "UTC",
    since: Annotated[
        str | None, typer.Option("--since", metavar="DATE", help="The first day, as in 2026-03-08, in that zone.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="DATE", help="The last day, which is included.")
    ] = None,
    project: Annotated[
        list[str] | None,
        typer.Option("--project", metavar="PATTERN", help="Only projects that match; may be repeated."),
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", metavar="PATTERN", help="Only models that match; may be repeated.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=0, help="Lines of a table without order of days; 0 for all.")
    ] = 20,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write an HTML page here instead.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Say what a usage data set amounts to, in tables or as one HTML page."""
    from tasks.report import scope_of

    tables = _tables(table)
    scope = scope_of(zone=zone, since=since, until=until, projects=project or (), models=model or ())
    _print(_read(usage, scope), tables, limit, output, json=json)


def write_page(url: str, output: str) -> None:
    """The whole data set as a page, written to a file."""
    from flows.output_file import write_output
    from tasks.report import scope_of
    from tasks.report.page import page_of

    write_output(output, page_of(_read(url, scope_of())))


def _tables(wanted: Sequence[str] | None) -> tuple[str, ...]:
    from schemas.errors import WrongUse
    from tasks.report import TABLES

    for name in wanted or ():
        if name not in TABLES:
            raise WrongUse(f"--table {name!r} is no table: there are {', '.join(TABLES)}")
    return tuple(dict.fromkeys(wanted or TABLES))


def _read(url: str, scope: Scope) -> UsageReport:
    from flows.console import progress
    from flows.settings import load_settings
    from schemas.errors import WrongUse
    from storage.objects import open_store
    from tasks.report import read_report

    if not url:
        raise WrongUse("USAGE is empty — give a folder or s3://bucket/prefix")
    store = open_store(url, settings=load_settings().store())
    store.check_root()
    with progress("report") as bar:
        found = read_report(store, scope, starts=bar.start, advances=bar.advance)
    if found is None:
        raise WrongUse(f"{url}: no usage data set here — `sessionmill usage` writes one")
    return found


def _print(found: UsageReport, tables: Sequence[str], limit: int, output: str | None, *, json: bool) -> None:
    import sys

    from flows.console import write_json
    from flows.output_file import write_output
    from flows.report_tables import print_tables, sentence
    from schemas.errors import WrongUse
    from tasks.report import json_of

    if json and output == STANDARD_OUTPUT:
        raise WrongUse("--json and -o - would both write to standard output: give -o a file")
    if output is not None:
        from tasks.report.page import page_of

        page = page_of(found)
        if output == STANDARD_OUTPUT:
            sys.stdout.flush()
            sys.stdout.buffer.write(page)
            sys.stdout.buffer.flush()
            return
        write_output(output, page)
    if json:
        write_json({**json_of(found, tables), **({"file": output} if output is not None else {})})
    elif output is not None:
        typer.echo(f"{output}: {sentence(found)}")
    else:
        print_tables(found, tables, limit)
