"""What people and machines read from a command: aligned columns, JSON, progress, and one sentence for each failure.

Standard output carries the answer and nothing else; progress and failures go to standard error. Text that came from the
data is printed with its control characters escaped, so that no id or title can steer a terminal.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import orjson
import typer

from schemas.errors import (
    ClaimUnbuildable,
    KeyRefused,
    ObjectTooLarge,
    RejectedData,
    SessionmillError,
    WrongUse,
)

__all__ = [
    "DONE",
    "INTERRUPTED",
    "PROBLEMS",
    "SYSTEM_FAILED",
    "TERMINATED",
    "WRONG_USE",
    "columns",
    "error_facts",
    "exit_code",
    "printable",
    "progress",
    "show_what_is_waited_for",
    "write_answer",
    "write_json",
]

DONE, PROBLEMS, WRONG_USE, SYSTEM_FAILED = 0, 1, 2, 3
INTERRUPTED, TERMINATED = 130, 143  # what a shell reports for SIGINT and SIGTERM


def exit_code(error: SessionmillError) -> int:
    """Whose turn it is: 2 the caller's, 1 the data's owner's, 3 the system's."""
    if isinstance(error, WrongUse):
        return WRONG_USE
    if isinstance(error, RejectedData | ClaimUnbuildable | KeyRefused | ObjectTooLarge):
        return PROBLEMS
    return SYSTEM_FAILED


def error_facts(error: SessionmillError) -> dict[str, Any]:
    """An error for machines: its kind, its sentence, and its fields."""
    # typer hangs a note of its own on exceptions that pass through it.
    fields = {name: value for name, value in vars(error).items() if not name.startswith("_")}
    return {"error": type(error).__name__, "message": str(error), **fields}


def printable(text: str) -> str:
    """`text` with everything that is not printable shown as an escape; line ends too."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode("ascii") for c in text)


def write_answer(text: str) -> None:
    """`text` and a line end on standard output: as it is, in UTF-8, for a program; on a terminal with all that could
    steer it shown as escapes, lines and tabs kept."""
    if not sys.stdout.isatty():
        # As bytes: text is written without its colour codes where no terminal is.
        typer.echo(text.encode("utf-8", "backslashreplace"))
        return
    lines = text.replace("\r\n", "\n").split("\n")
    typer.echo("\n".join("\t".join(map(printable, line.split("\t"))) for line in lines))


def columns(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with aligned columns: numbers to the right, the rest to the left."""
    table: list[list[object]] = [list(header), *map(list, rows)]
    cells = [[printable(str(cell)) for cell in row] for row in table]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    numeric = [len(table) > 1 and all(isinstance(row[i], int) for row in table[1:]) for i in range(len(header))]
    lines = []
    for row in cells:
        padded = (c.rjust(w) if right else c.ljust(w) for c, w, right in zip(row, widths, numeric, strict=True))
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def write_json(value: Any) -> None:
    """`value` on standard output as indented JSON."""
    try:
        text = orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except TypeError:
        # A file name that is not UTF-8 is a string that only the standard encoder writes, as escapes.
        text = json.dumps(value, indent=2)
    typer.echo(text)


class Bar(Protocol):
    """A progress bar: how many steps there are, then each one, with what it was about."""

    def start(self, total: int) -> None: ...
    def advance(self, label: str) -> None: ...


def _on_a_terminal() -> bool:
    return sys.stderr.isatty()


def show_what_is_waited_for() -> None:
    """On a terminal, say on standard error when a store has to be asked again and again."""
    if not _on_a_terminal():
        return

    class OnStandardError(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            typer.echo(f"sessionmill: {printable(record.getMessage())}", err=True)

    log = logging.getLogger("sessionmill")
    log.setLevel(logging.INFO)
    log.addHandler(OnStandardError())
    log.propagate = False


@contextmanager
def progress(title: str) -> Iterator[Bar]:
    """A progress bar on standard error when that is a terminal; otherwise one that nobody sees."""
    if not _on_a_terminal():
        yield _NoBar()
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(title, total=None)

        class TerminalBar:
            def start(self, total: int) -> None:
                shown.update(task, total=total)

            def advance(self, label: str) -> None:
                shown.update(task, advance=1, description=f"{title} {escape(printable(label))}")

        yield TerminalBar()


class _NoBar:
    def start(self, total: int) -> None:
        """Nobody watches."""

    def advance(self, label: str) -> None:
        """Nobody watches."""
