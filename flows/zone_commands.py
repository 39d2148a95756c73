"""The commands that work on a zone directly, without Prefect: land, assemble, verify, fold, export.

Each calls the ordinary function of its capability, imported when it is called, and leaves with its exit code.
"""

from __future__ import annotations

from typing import Annotated

import typer

from flows.options import JsonOption, NowOption, RoundBytesOption, SessionOption, ZoneArgument
from schemas.errors import WrongUse

IncludeOption = Annotated[
    list[str] | None,
    typer.Option("--include", metavar="PATTERN", help="Only sessions whose id or place matches; may be repeated."),
]
ExcludeOption = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="PATTERN", help="No sessions whose id or place matches; may be repeated."),
]


def land(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="The archive: a folder, file:// URL or s3://bucket/prefix.")
    ],
    zone: ZoneArgument,
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="What the archive is: claude-code, codex, dsh, relavium, or auto to find out.",
        ),
    ] = "auto",
    now: Annotated[
        str | None,
        typer.Option("--now", metavar="TIME", help="The clock that landed files show, RFC 3339, to the nanosecond."),
    ] = None,
    max_delta_bytes: Annotated[
        int | None,
        typer.Option("--max-delta-bytes", metavar="N", help="Bytes of a source's file that land in one file."),
    ] = None,
    include: IncludeOption = None,
    exclude: ExcludeOption = None,
    json: JsonOption = False,
) -> None:
    """Land what is new in an archive of sessions as Session Data."""
    from flows.landing import land_source
    from tasks.land.selection import Archive

    archive = Archive(url=source, kind=kind, include=tuple(include or ()), exclude=tuple(exclude or ()))
    raise typer.Exit(land_source(archive, zone, now, max_delta_bytes, json=json))


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


def verify(
    zone: ZoneArgument,
    session: SessionOption = None,
    usage: Annotated[
        str | None,
        typer.Option("--usage", metavar="USAGE", help="Also look for what this usage data set counted and is gone."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Check every landed file and every round, and list what is wrong."""
    from flows.direct import verify_zone

    raise typer.Exit(verify_zone(zone, session, usage, json=json))


def fold(
    zone: ZoneArgument,
    conversation: Annotated[str, typer.Argument(metavar="CONVERSATION", help="The conversation's id.")],
    json: JsonOption = False,
) -> None:
    """Show a conversation as its rounds leave it."""
    from flows.direct import fold_conversation

    raise typer.Exit(fold_conversation(zone, conversation, json=json))


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
        bool,
        typer.Option("--keep-secrets", help="Keep what looks like a secret; default: only in Relavium's own sessions."),
    ] = False,
    withhold_secrets: Annotated[
        bool, typer.Option("--withhold-secrets", help="Withhold it in Relavium's own sessions too.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Turn completed sessions into `.relavium.yaml` workflows to review."""
    from flows.exporting import export_zone

    if keep_secrets and withhold_secrets:
        raise WrongUse("--keep-secrets and --withhold-secrets: give one of them, or neither")
    secrets = True if keep_secrets else False if withhold_secrets else None
    raise typer.Exit(export_zone(zone, to, session, as_of, completed_after, keep_secrets=secrets, json=json))
