"""The commands that export here and now, without Prefect: scaffold for one Relavium session, export for a zone."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from flows.console import printable, progress, write_json
from flows.export_summary import ExportSummary, export_options, exportable
from flows.output_file import write_output
from flows.sessions import chosen
from flows.settings import load_settings, open_exports, open_zone
from schemas.errors import ObjectTooLarge, WrongUse
from schemas.relavium_json import read_messages, read_record
from tasks.export import scaffold
from tasks.export.batch import export_sessions
from tasks.export.manifest import manifest_warnings

__all__ = ["export_zone", "print_summary", "scaffold_session"]

STANDARD_OUTPUT = "-"


def scaffold_session(record: str, messages: str, output: str | None, *, json: bool) -> int:
    """One Relavium session to its scaffold, on standard output or in a file; the exit code. Nothing is written for an
    invalid one."""
    limit = load_settings().max_object_bytes
    session = read_record(_read(record, limit), name=record)
    made = scaffold(session, read_messages(_read(messages, limit), name=messages))
    if output == STANDARD_OUTPUT:
        output = None
    if output is not None:
        write_output(output, made.data)
    for warning in made.warnings:
        typer.echo(f"sessionmill: {printable(warning)}", err=True)
    if json:
        facts = {"session": session.id, "workflow": made.workflow_id, "turns": made.turns, "warnings": made.warnings}
        write_json({**facts, "file": output} if output is not None else {**facts, "text": made.data.decode()})
    elif output is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(made.data)
        sys.stdout.buffer.flush()
    return 0


def export_zone(
    url: str,
    to: str,
    session: str | None,
    as_of: str | None,
    completed_after: str | None,
    *,
    keep_secrets: bool | None,
    json: bool,
) -> int:
    """Export one session or all that are completed; a bad one is reported and the others go on. The exit code."""
    settings = load_settings(completed_after=completed_after)
    zone = open_zone(url, settings)
    exports = open_exports(to, settings, zone=zone)
    options = export_options(zone, as_of=as_of, completed_after=completed_after, keep_secrets=keep_secrets)
    warnings = manifest_warnings(exports)
    with progress("export") as bar:
        names = chosen(zone, exportable(zone), session)
        bar.start(len(names))
        outcomes = export_sessions(zone, exports, names, options, lambda outcome: bar.advance(outcome.conversation))
    summary = ExportSummary.of(zone.store.url, exports.url, options.as_of, outcomes, warnings)
    print_summary(summary, json=json)
    return summary.exit_code


def print_summary(summary: ExportSummary, *, json: bool) -> None:
    """The summary on standard output: JSON, or the table, remarks, and one closing line."""
    if json:
        write_json(summary.model_dump(mode="json"))
        return
    if summary.sessions:
        typer.echo(summary.text())
    for line in summary.remarks():
        typer.echo(line)
    typer.echo(summary.sentence)


def _read(file: str, limit: int) -> bytes:
    try:
        size = Path(file).stat().st_size
        if size > limit:
            raise ObjectTooLarge(file, size, limit)
        return Path(file).read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise WrongUse(f"{file}: no such file") from None
