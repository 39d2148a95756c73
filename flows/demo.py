"""`sessionmill demo`: the main job on a small invented archive.

The flow runs twice, because that is how it is meant to be used: once on what has landed, and again when one more file
has. The second run adds a round to the one conversation that the file belongs to, and leaves the others alone.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import typer

from flows.conversation_text import conversation_text
from flows.demo_archive import File, first_files, later_files
from flows.parameters import parameters_from
from flows.run import print_summary, run_ingest_flow
from flows.settings import open_zone
from flows.summary import IngestParameters, IngestSummary
from schemas.errors import ObjectExists, WrongUse
from storage.objects import ObjectStore

__all__ = ["run_demo"]

SHOWN = "bakery-orders"


def run_demo(folder: Path, *, json: bool) -> int:
    """Land the archive in `folder` in two parts, ingest after each, and show what came of it; the exit code."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise WrongUse(f"{folder} is not a folder") from None
    zone = open_zone(str(folder))
    _land(zone.store, first_files(), folder)
    if not json:
        typer.echo("Three invented sessions have landed. Prefect's temporary API starts; this takes some ten seconds.")
    more = iter([later_files()])
    parameters = parameters_from(IngestParameters, [f"zone={folder}"])

    def after_first_run(summary: IngestSummary) -> bool:
        late = next(more, None)
        if late is None:
            return False
        _land(zone.store, late, folder)
        return True

    summary = run_ingest_flow(parameters, again=after_first_run)
    print_summary(summary, json=json)
    if not json:
        typer.echo(f"\n{conversation_text(zone.chain(SHOWN).fold())}")
        typer.echo(_WHERE.format(zone=folder, sessionmill=_command()))
    return summary.exit_code


def _command() -> str:
    """How the reader can call us again: by name, or, from an environment that is not active, as we were called."""
    return "sessionmill" if shutil.which("sessionmill") else sys.argv[0]


def _land(store: ObjectStore, files: list[File], folder: Path) -> None:
    for key, data in files:
        try:
            store.create(key, data)
        except ObjectExists:
            if store.read(key) != data:
                raise WrongUse(
                    f"{folder} holds something else under {key}; give the demo a folder of its own"
                ) from None


_WHERE = """
where things are
  {zone}/SESSION/streams/…/*.sd            the landed evidence, never rewritten
  {zone}/_conversations/SESSION/rounds/    the rounds, an append-only chain
try
  {sessionmill} fold {zone} kite-festival
  {sessionmill} verify {zone}
  {sessionmill} check {zone}/_conversations/*/rounds/*.sf"""
