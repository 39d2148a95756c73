"""Arguments and options that several commands take, each said once.

A command names one of these as a parameter's type; what an option is called and what its help says is the same
wherever it is taken.
"""

from __future__ import annotations

from typing import Annotated

import typer

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
