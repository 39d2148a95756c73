"""Land a whole source: find its sessions, leave out those in which nothing has changed, land the rest.

What is left out is remembered in one derived object for each source and dialect, `_landing/seen-….json`: a digest of
each session's files as they were listed when all of them had landed. Without it every session is looked at once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256

from pydantic import TypeAdapter, ValidationError

from schemas.errors import KeyRefused, WrongUse
from schemas.times import format_time
from storage.caches import read_cache, write_cache
from storage.landings import LANDING
from storage.objects import ObjectStore
from storage.zone import Zone
from tasks.land.outcome import LandOptions, LandProblem, SessionLanding
from tasks.land.quarantine import note_key, update_notes
from tasks.land.session import land_session, root_name
from tasks.land.source import Dialect, Discovery, Sighting

__all__ = ["land_archive"]

_Seen = TypeAdapter(dict[str, str])


def land_archive(
    zone: Zone, source: ObjectStore, dialect: Dialect, found: Discovery, options: LandOptions
) -> Iterator[SessionLanding]:
    """Every session that was found in the source, and those that were of it before, by name, as each is done.

    Raises `WrongUse` when there is and was none.
    """
    key = f"{LANDING}seen-{root_name(source)}-{dialect.name.partition('/')[0]}.json"
    before = _read(zone.store, key)
    if not (found.sessions or found.unreadable or before):
        raise WrongUse(f"{source.url}: no sessions of {dialect.name} lie there; check SOURCE and --kind")
    # A session is only missed where everything could be listed.
    known = set(found.sessions) if found.unreadable else found.sessions.keys() | before.keys()
    seen = {name: before[name] for name in before.keys() - known}
    if found.unreadable:
        yield _unlisted(found)
    for name in sorted(known):
        sightings = found.sessions.get(name, [])
        digest = _digest(dialect, sightings)
        if before.get(name) == digest:
            seen[name] = digest
            yield SessionLanding(session=name, unchanged=True)
            continue
        outcome = _land(zone, source, dialect, name, sightings, options)
        update_notes(zone.store, note_key(name, root_name(source)), outcome.problems, format_time(options.now))
        if not (outcome.more or outcome.problem_count):
            seen[name] = digest
        yield outcome
    if seen != before:
        write_cache(zone.store, key, _Seen.dump_json(dict(sorted(seen.items()))) + b"\n")


def _unlisted(found: Discovery) -> SessionLanding:
    """The places of a source that could not be listed, as an outcome without a session."""
    problems = [LandProblem(file=place, row=None, rule="unlisted", detail=why) for place, why in found.unreadable]
    return SessionLanding(session="", problem_count=len(problems), problems=problems)


def _land(
    zone: Zone, source: ObjectStore, dialect: Dialect, name: str, sightings: list[Sighting], options: LandOptions
) -> SessionLanding:
    try:
        return land_session(zone, source, dialect, name, sightings, options)
    except KeyRefused as error:  # a name that the zone's store cannot hold
        problem = LandProblem(file=error.key, row=None, rule="unusable_name", detail=error.detail)
        return SessionLanding(session=name, problem_count=1, problems=[problem])


def _digest(dialect: Dialect, sightings: Iterable[Sighting]) -> str:
    lines = [dialect.name, *(f"{each.stat.key} {each.stat.size} {each.stat.etag}" for each in sightings)]
    return sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()[:24]


def _read(store: ObjectStore, key: str) -> dict[str, str]:
    try:
        return _Seen.validate_json(read_cache(store, key) or b"{}")
    except ValidationError:
        return {}
