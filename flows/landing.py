"""The command that lands a source here and now, without Prefect."""

from __future__ import annotations

from functools import partial

import typer

from flows.clock import clock
from flows.console import progress, write_json
from flows.land_summary import LandSummary
from flows.parameters import counted
from flows.settings import landing_zone_to_be, load_settings, open_landing_zone
from storage.objects import open_store
from storage.zone import Zone
from tasks.land.archive import check_apart, land_archive, remembers
from tasks.land.cursors import root_name
from tasks.land.kinds import recognise
from tasks.land.quarantine import all_notes
from tasks.land.selection import Archive

__all__ = ["land_source"]


def land_source(archive: Archive, zone_url: str, now: str | None, max_delta_bytes: int | None, *, json: bool) -> int:
    """Land what is new in a source; what is wrong with a session is said and the others go on. The exit code."""
    settings = load_settings(max_delta_bytes=max_delta_bytes)
    options = settings.landing(clock(now))
    source = open_store(archive.url, settings=settings.store())
    source.check_root()
    known = Zone(landing_zone_to_be(zone_url, settings))
    check_apart(source, known)
    with progress("land") as bar:
        # A source that is none leaves no zone behind.
        dialect, readable, found = recognise(source, archive.kind, partial(remembers, known))
        store = open_landing_zone(zone_url, settings)
        bar.start(len(found.sessions))
        outcomes = []
        records = size = 0
        for outcome in land_archive(Zone(store), readable, dialect, found, options, archive.wants):
            outcomes.append(outcome)
            records, size = records + outcome.records, size + outcome.source_bytes
            bar.advance(f"{outcome.session} {counted(records, 'record')}, {counted(size, 'byte')}")
    noted = all_notes(store, root_name(source))
    summary = LandSummary.of(source.url, store.url, dialect.name, outcomes, noted)
    if json:
        write_json(summary.model_dump(mode="json"))
        return summary.exit_code
    for line in filter(None, [summary.text(), *summary.complaints(), summary.sentence]):
        typer.echo(line)
    return summary.exit_code
