"""Where what a listing showed belongs, once it is known what has landed before."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from tasks.land.codex.at_hand import ParentsAtHand
from tasks.land.codex.discover import in_order, source_file
from tasks.land.codex.families import Families
from tasks.land.codex.kinds import rollout_name
from tasks.land.source import Discovery, Sighting

__all__ = ["placed_again"]


def placed_again(found: Discovery, families: Families, parents: ParentsAtHand, at_once: int) -> Discovery:
    """The discovery, with each thread in the session that it has landed in, if that is one of its family's, and beside
    a thread that may have copied from another what of that one has landed from elsewhere. So many threads are looked up
    at once."""
    origins = {thread: families.copied_from(thread) for thread in _threads(found)}
    words = _words(parents, set(origins.values()) - {""}, at_once)
    sessions: dict[str, list[Sighting]] = {}
    for sightings in found.sessions.values():
        for sighting in sightings:
            name = rollout_name(sighting.file.key)
            if name is not None:
                sighting = _where_it_landed(sighting, name.thread, name.segment, families, parents)
                word = "" if name.segment else words.get(origins[name.thread], "")
                sighting = replace(sighting, beside=f"{sighting.beside} {word}") if word else sighting
            sessions.setdefault(sighting.file.session, []).append(sighting)
    for sightings in sessions.values():
        sightings.sort(key=in_order)
    return replace(found, sessions={session: sessions[session] for session in sorted(sessions)})


def _threads(found: Discovery) -> Iterable[str]:
    names = (rollout_name(each.file.key) for sightings in found.sessions.values() for each in sightings)
    return {name.thread for name in names if name is not None}


def _words(parents: ParentsAtHand, threads: Iterable[str], at_once: int) -> dict[str, str]:
    wanted = sorted(threads)
    with ThreadPoolExecutor(max(at_once, 1), thread_name_prefix="look-up-parents") as pool:
        return dict(zip(wanted, pool.map(parents.landed_word, wanted), strict=True))


def _where_it_landed(
    sighting: Sighting, thread: str, segment: str, families: Families, parents: ParentsAtHand
) -> Sighting:
    file = sighting.file
    led = families.lineage(thread)[1:] if families.is_led(thread) else ()
    others = (session for session in led if session != file.session)
    landed = next((session for session in others if parents.is_in(session, thread)), None)
    return sighting if landed is None else replace(sighting, file=source_file(landed, thread, segment, file.key))
