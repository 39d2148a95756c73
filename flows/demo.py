"""`sessionmill demo`: the main job on a small invented archive.

The flow runs twice, because that is how it is meant to be used: once on what has landed, and again when one more file
has. The second run adds a round to the one conversation that the file belongs to, and leaves the others alone.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import typer

from flows.console import write_json
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
MARKER = "sessionmill-demo.txt"
"""By this file the demo knows a folder as its own: it adds sessions to no zone of yours."""

_REPEATED = "The demo has run here before: nothing new lands, and there is one run."


def run_demo(where: str, *, json: bool) -> int:
    """Land the archive in a folder in two parts, ingest after each, and show what came of it; the exit code.

    Where the demo has run before there is nothing to land, and one run."""
    folder = _own_folder(where)
    zone = open_zone(str(folder))
    late = later_files()
    repeated = all(zone.store.stat(key) for key, _ in late)
    _land(zone.store, first_files(), folder)
    _say(json, _REPEATED if repeated else "Three invented sessions have landed; one of them waits for a tool's result.")
    runs: list[IngestSummary] = []

    def after_first_run(summary: IngestSummary) -> bool:
        if runs or repeated:
            return False
        runs.append(summary)
        _say(json, f"first run: {summary.sentence}")
        _land(zone.store, late, folder)
        _say(json, f"One more file has landed: {late[0][0]}")
        return True

    summary = run_ingest_flow(parameters_from(IngestParameters, [f"zone={folder}"]), again=after_first_run)
    runs.append(summary)
    if json:
        write_json({"runs": [each.model_dump(mode="json") for each in runs]})
    else:
        typer.echo(f"{'this' if repeated else 'second'} run:")
        print_summary(summary, json=False)
        typer.echo(f"\n{conversation_text(zone.chain(SHOWN).fold())}")
        typer.echo(_WHERE.format(zone=folder, sessionmill=_command()))
    return max(each.exit_code for each in runs)


def _own_folder(where: str) -> Path:
    """The folder, made where it is not there; raises `WrongUse` for one that holds what the demo did not put there."""
    if "://" in where or not where:
        raise WrongUse(f"{where or 'DIR'}: the demo needs a folder on this machine, as in `sessionmill demo somewhere`")
    folder = Path(where)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise WrongUse(f"{folder} is not a folder") from None
    if any(folder.iterdir()) and not (folder / MARKER).exists():
        raise WrongUse(
            f"{folder} is not empty, and not of an earlier demo (it holds no {MARKER}); "
            "give the demo a folder of its own"
        )
    (folder / MARKER).write_text(
        "Invented sessions, made by `sessionmill demo`. Delete this folder whenever you like.\n"
    )
    return folder


def _say(json: bool, sentence: str) -> None:
    if not json:
        typer.echo(sentence)


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
