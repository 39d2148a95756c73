"""`sessionmill demo`: the whole job on small invented archives.

The ingest flow runs twice, because that is how it is meant to be used: once on what the archives hold, and again when
one of their files has grown. The second run lands the new lines, adds a round to the one conversation that they belong
to, exports it, counts its calls, and leaves the others alone.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import typer

from flows.console import write_json
from flows.conversation_text import conversation_text
from flows.demo_archive import ARCHIVES, BAKERY, KITES, kites_have_grown, make_archives, more_of_the_kites
from flows.report_command import write_page
from flows.run import print_summary, run_ingest_flow
from flows.settings import open_zone
from flows.summary import IngestParameters, IngestSummary
from schemas.errors import WrongUse

__all__ = ["command_again", "run_demo"]

MARKER = "sessionmill-demo.txt"
"""By this file the demo knows a folder as its own: it puts nothing among files of yours."""

_REPEATED = "The demo has run here before: nothing new lands, and there is one run."
_MADE = "Archives of Claude Code, Codex and DeepSeek Harness are made up; one session waits for a tool's result."


def run_demo(where: str, *, json: bool) -> int:
    """Make archives in a folder, ingest them, let a file grow, ingest again, and show what came of it; the exit code.

    Where the demo has run before there is nothing to make, and one run."""
    folder = _own_folder(where)
    archives, zone = folder / "archives", folder / "zone"
    make_archives(archives)
    zone.mkdir(exist_ok=True)
    repeated = kites_have_grown(archives)
    _say(json, _REPEATED if repeated else _MADE)
    runs: list[IngestSummary] = []

    def after_first_run(summary: IngestSummary) -> bool:
        if runs or repeated:
            return False
        runs.append(summary)
        _say(json, f"first run: {summary.sentence}")
        _say(json, f"A file has grown: {more_of_the_kites(archives)}")
        return True

    summary = run_ingest_flow(_parameters(folder), again=after_first_run)
    runs.append(summary)
    write_page(str(folder / "usage"), str(folder / "report.html"))
    if json:
        write_json({"runs": [each.model_dump(mode="json") for each in runs]})
    else:
        typer.echo(f"{'this' if repeated else 'second'} run:")
        print_summary(summary, json=False)
        typer.echo(f"\n{conversation_text(open_zone(str(zone)).chain(BAKERY).fold())}")
        typer.echo(_WHERE.format(folder=folder, kites=KITES, sessionmill=command_again()))
    return max(each.exit_code for each in runs)


def _parameters(folder: Path) -> IngestParameters:
    return IngestParameters.model_validate(
        {
            "zone": str(folder / "zone"),
            "sources": [{"url": str(folder / "archives" / kind), "kind": kind} for kind in ARCHIVES],
            "export_to": str(folder / "exports"),
            "usage_to": str(folder / "usage"),
        }
    )


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


def command_again() -> str:
    """How the reader can call us again: by name, or, from an environment that is not active, as we were called."""
    if shutil.which("sessionmill"):
        return "sessionmill"
    called = Path(sys.argv[0])
    return f"{sys.executable} -m {called.parent.name}" if called.name == "__main__.py" else str(called)


_WHERE = """
where things are
  {folder}/archives/                    what the agents' programs kept
  {folder}/zone/SESSION/streams/…/*.sd  the landed evidence, never rewritten
  {folder}/zone/_conversations/SESSION/rounds/  the rounds, an append-only chain
  {folder}/exports/*.relavium.yaml      completed sessions as workflows to review
  {folder}/usage/                       every provider call once, as Parquet
  {folder}/report.html                  what they used and cost: open it in a browser
try
  {sessionmill} fold {folder}/zone {kites}
  {sessionmill} verify {folder}/zone
  {sessionmill} report {folder}/usage"""
