"""The command that counts a zone's provider calls into a usage data set, here and now, without Prefect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from flows.options import JsonOption, SessionOption, ZoneArgument

if TYPE_CHECKING:
    from flows.usage_summary import UsageSummary

__all__ = ["print_usage", "usage"]


def usage(
    zone: ZoneArgument,
    to: Annotated[str, typer.Option("--to", metavar="USAGE", help="Where the data set is: a folder or s3://….")],
    session: SessionOption = None,
    reprice: Annotated[bool, typer.Option("--reprice", help="Price again what has a price.")] = False,
    prices: Annotated[
        str | None, typer.Option("--prices", metavar="FILE", help="Prices that hold before the others, as YAML.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Count every provider call once into Parquet, priced at its own time."""
    import time

    from flows.console import progress
    from flows.sessions import chosen
    from flows.settings import load_settings, open_exports, open_zone
    from flows.usage_summary import UsageSummary, rate_card
    from tasks.usage import UsageOptions, count_usage

    settings = load_settings()
    found = open_zone(zone, settings)
    wanted = tuple(chosen(found, found.sessions(), session))
    card = rate_card(prices, settings)
    data_set = open_exports(to, settings, zone=found)
    options = UsageOptions(now=time.time_ns(), sessions=None if session is None else wanted, reprice=reprice)
    with progress("usage") as bar:

        def watch(number: int, done: str | None) -> None:
            if done is None:
                bar.start(number)
            else:
                bar.advance(done)

        outcome = count_usage(found, data_set, card, options, watch)
    summary = UsageSummary.of(outcome)
    print_usage(summary, json=json)
    raise typer.Exit(summary.exit_code)


def print_usage(summary: UsageSummary, *, json: bool) -> None:
    """The summary on standard output: JSON, or totals by model where there are any, what is wrong, and one line."""
    from flows.console import columns, write_json

    if json:
        write_json(summary.model_dump(mode="json"))
        return
    if rows := summary.rows():
        typer.echo(columns(list(rows[0]), [list(row.values()) for row in rows]))
    for line in summary.complaints():
        typer.echo(line)
    typer.echo(summary.sentence)
