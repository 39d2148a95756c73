"""Where what a listing showed belongs, once it is known what has landed before."""

from __future__ import annotations

from dataclasses import replace

from tasks.land.codex.at_hand import ParentsAtHand
from tasks.land.codex.discover import in_order, source_file
from tasks.land.codex.families import Families
from tasks.land.codex.kinds import RolloutName, rollout_name
from tasks.land.source import Discovery, Sighting

__all__ = ["placed_again"]


def placed_again(found: Discovery, families: Families, parents: ParentsAtHand) -> Discovery:
    """The discovery, with each thread in the session that it has landed in, if that is one of its family's, and beside
    a thread that may have copied from another what of that one has landed from elsewhere."""
    sessions: dict[str, list[Sighting]] = {}
    for sightings in found.sessions.values():
        for sighting in sightings:
            name = rollout_name(sighting.file.key)
            placed = sighting if name is None else _placed(sighting, name, families, parents)
            sessions.setdefault(placed.file.session, []).append(placed)
    for sightings in sessions.values():
        sightings.sort(key=in_order)
    return replace(found, sessions={session: sessions[session] for session in sorted(sessions)})


def _placed(sighting: Sighting, name: RolloutName, families: Families, parents: ParentsAtHand) -> Sighting:
    thread, file = name.thread, sighting.file
    if families.is_led(thread):
        led = (session for session in families.lineage(thread)[1:] if session != file.session)
        landed = next((session for session in led if parents.is_in(session, thread)), None)
        if landed is not None:
            sighting = replace(sighting, file=source_file(landed, thread, name.segment, file.key))
    origin = "" if name.segment else families.copied_from(thread)
    word = parents.landed_word(origin) if origin else ""
    return replace(sighting, beside=f"{sighting.beside} {word}") if word else sighting
