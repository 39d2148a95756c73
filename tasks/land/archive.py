"""Land a whole source: find its sessions, leave out those in which nothing has changed, land the rest.

What is left out is remembered in one derived object for each source and dialect, `_landing/seen-….json`: a digest of
each session's files as they were listed when all of them had landed. Without it every session is looked at once more.
Sessions of a dialect that keeps nothing in mind from line to line are landed several at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from hashlib import sha256

from pydantic import TypeAdapter, ValidationError

from schemas.errors import KeyRefused, WrongUse
from schemas.times import format_time
from storage.caches import read_cache, write_cache
from storage.landings import LANDING
from storage.objects import ObjectStore
from storage.zone import Zone
from tasks.land.cursors import root_name
from tasks.land.outcome import LandOptions, LandProblem, SessionLanding
from tasks.land.overlap import AT_ONCE, in_order
from tasks.land.quarantine import add_notes, note_key, places_key, update_notes
from tasks.land.selection import KIND_OPTION
from tasks.land.session import land_session
from tasks.land.source import Dialect, Discovery, Sighting

__all__ = ["check_apart", "land_archive", "remembers"]

_Seen = TypeAdapter(dict[str, str])


def land_archive(
    zone: Zone,
    source: ObjectStore,
    dialect: Dialect,
    found: Discovery,
    options: LandOptions,
    wanted: Callable[[str, list[Sighting]], bool] = lambda session, sightings: True,
    kind_is_given: str = KIND_OPTION,
) -> Iterator[SessionLanding]:
    """Every `wanted` session that was found in the source, and those that were of it before, by name, as each is done.

    Raises `WrongUse` when there is and was none, and when none is wanted: a mistyped pattern must not end green.
    `kind_is_given` is what the kind of the source is called where it was given.
    """
    found = dialect.placed(found, zone)
    key = _memory_key(source, dialect)
    before = _read(zone.store, key)
    if not (found.sessions or found.unreadable or before):
        raise WrongUse(
            f"{source.url}: no sessions of {dialect.kind} lie there; it should be, or hold, {dialect.place}: "
            f"check the place and {kind_is_given}"
        )
    # A session is only missed where everything could be listed.
    known = set(found.sessions) if found.unreadable else found.sessions.keys() | before.keys()
    known = {name for name in known if wanted(name, found.sessions.get(name, []))}
    if found.sessions and not known:
        raise WrongUse(f"{source.url}: the patterns let none of its {len(found.sessions)} sessions through")
    seen = {name: before[name] for name in before.keys() - known}
    places = _of_no_session(found)
    update_notes(zone.store, places_key(dialect.name, root_name(source)), places.problems, format_time(options.now))
    if places.problems:
        yield places
    at = format_time(options.now)

    def landed(name: str) -> SessionLanding:
        outcome = _land(zone, source, dialect, name, found.sessions.get(name, []), options)
        update_notes(zone.store, note_key(name, root_name(source)), outcome.problems, at)
        return outcome

    digests = {name: _digest(dialect, found.sessions.get(name, [])) for name in sorted(known)}
    changed = [name for name, digest in digests.items() if before.get(name) != digest]
    at_once = AT_ONCE if dialect.is_stateless else 1
    with closing(in_order(changed, partial(_bytes, found), landed, at_once)) as outcomes:
        for name, digest in digests.items():
            if before.get(name) == digest:
                seen[name] = digest
                yield SessionLanding(session=name, unchanged=True)
                continue
            outcome = next(outcomes)
            # Without a digest it is looked at again, and known to be of this source when it is gone.
            seen[name] = digest if outcome.is_done else ""
            yield outcome
    if seen != before:
        write_cache(zone.store, key, _Seen.dump_json(dict(sorted(seen.items()))) + b"\n")


def remembers(zone: Zone, source: ObjectStore, dialect: Dialect) -> bool:
    """Whether sessions of that dialect have landed from the source before."""
    return zone.store.stat(_memory_key(source, dialect)) is not None


def _memory_key(source: ObjectStore, dialect: Dialect) -> str:
    return f"{LANDING}seen-{root_name(source)}-{dialect.name.partition('/')[0]}.json"


def check_apart(source: ObjectStore, zone: Zone) -> None:
    """Raises `WrongUse` when a source is the zone that it is to land in."""
    if source.url == zone.store.url:
        raise WrongUse(f"{source.url}: the source and the zone are the same place")


def _of_no_session(found: Discovery) -> SessionLanding:
    """Folders of a source that could not be listed, files of which it could not be told whose they are, and those that
    are damaged, as an outcome without a session."""
    unreadable = [
        LandProblem(
            file=place, row=None, rule="unlisted" if place.endswith("/") or not place else "unreadable", detail=why
        )
        for place, why in found.unreadable
    ]
    damaged = [LandProblem(file=key, row=None, rule="damaged", detail=why) for key, why in found.damaged]
    problems = unreadable + damaged
    return SessionLanding(session="", problem_count=len(problems), problems=problems)


def _land(
    zone: Zone, source: ObjectStore, dialect: Dialect, name: str, sightings: list[Sighting], options: LandOptions
) -> SessionLanding:
    def note(problems: list[LandProblem]) -> None:
        if problems:
            add_notes(zone.store, note_key(name, root_name(source)), problems, format_time(options.now))

    try:
        return land_session(zone, source, dialect, name, sightings, options, note)
    except KeyRefused as error:  # a name that the zone's store cannot hold
        problem = LandProblem(file=error.key, row=None, rule="unusable_name", detail=error.detail)
        return SessionLanding(session=name, problem_count=1, problems=[problem])


def _bytes(found: Discovery, name: str) -> int:
    return sum(each.stat.size for each in found.sessions.get(name, []))


def _digest(dialect: Dialect, sightings: Iterable[Sighting]) -> str:
    lines = [dialect.name, *(f"{_listed(each)}{each.beside}" for each in sightings)]
    return sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()[:24]


def _listed(sighting: Sighting) -> str:
    stat = sighting.stat
    return f"{stat.key} {stat.size} {stat.etag}"


def _read(store: ObjectStore, key: str) -> dict[str, str]:
    try:
        return _Seen.validate_json(read_cache(store, key) or b"{}")
    except ValidationError:
        return {}
