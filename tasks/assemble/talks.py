"""Stage 7: talks and runs, and with them the place of every entry (session-flow specification, section 6).

A run is one prompt cycle of a stream. On the main stream a run that something external triggered starts a talk, and the
others join the talk that is current; a child stream is one talk. An entry is contained by its run, else by the current
talk, else by its epoch.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from .canonical import Delivered
from .entries import Entry, Trigger
from .epochs import Epochs
from .ids import node_id
from .index import Restructured
from .row import Row
from .streams import CHILD, Streams, role

__all__ = ["NO_TALKS", "Run", "Talk", "Talks", "place_talks"]

_SOME, _EXTERNAL = 1, 2


class Talk(Row, frozen=True):
    """seq, row: its anchor, the lowest position placed in it. first, last: the times of the entries that belong to its
    runs, 0 = none.
    """

    stream: str
    epoch: str
    seq: int
    row: int
    runs: int
    first: int
    last: int


class Run(Row, frozen=True):
    """seq, row: its anchor; prompt: the run that the anchor's record itself names; opens: whether it is its talk's
    first.
    """

    node: str
    talk: str
    opens: bool
    seq: int
    row: int
    prompt: str


class Talks(NamedTuple):
    """talks: talk id to talk, in order of appearance. runs: (stream, run) to run. current: stream to its current talk's
    id.

    triggers: (stream, run) to what the entries that name the run themselves were triggered by: 0 nothing, 1 something,
    2 (or 3) something external.
    """

    talks: dict[str, Talk]
    runs: dict[tuple[str, str], Run]
    current: dict[str, str]
    triggers: dict[tuple[str, str], int]


NO_TALKS = Talks({}, {}, {}, {})


def place_talks(
    before: Talks, delivered: Delivered, streams: Streams, epochs: Epochs, homes: list[str], session: str
) -> tuple[Talks, list[str]]:
    """Talks and runs; and for each delivered entry the node id of its container.

    Raises `Restructured` when a trigger arrives that decides otherwise about a run that was placed before.
    """
    talks, runs, current = dict(before.talks), dict(before.runs), dict(before.current)
    triggers = _triggers(before, delivered)
    containers = [session] * len(delivered.entries)
    for stream, places in delivered.streams.items():
        child = role(streams, stream) == CHILD
        talk_id = current.get(stream, "")
        if child and not talk_id:
            start = delivered.entries[places[0]]
            talk_id = node_id("talk", stream)
            talks[talk_id] = Talk(stream, epochs[stream][0].id, start.seq, start.row, 0, 0, 0)
        known: dict[str, Run] = {}
        bounds: dict[str, tuple[int, int]] = {}
        for place in places:
            entry = delivered.entries[place]
            name = entry.run
            if not name:
                containers[place] = talk_id or homes[place]
                continue
            run = known.get(name)
            if run is None:
                run = runs.get((stream, name))
                if run is None:
                    if not talk_id or (not child and _starts_talk(triggers.get((stream, name), 0))):
                        talk_id = node_id("talk", stream, name)
                        if talk_id not in talks:
                            talks[talk_id] = Talk(stream, homes[place], entry.seq, entry.row, 0, 0, 0)
                    talk = talks[talk_id]
                    run = Run(
                        node_id("run", talk_id, name), talk_id, not talk.runs, entry.seq, entry.row, entry.own_run
                    )
                    runs[stream, name] = run
                    talks[talk_id] = msgspec.structs.replace(talk, runs=talk.runs + 1)
                known[name] = run
            containers[place] = run.node
            if entry.ts:
                _widen(bounds, run.talk, entry)
        for widened, (first, last) in bounds.items():
            talk = talks[widened]
            talks[widened] = msgspec.structs.replace(
                talk,
                first=first if not talk.first else min(first, talk.first),
                last=max(last, talk.last),
            )
        if talk_id:
            current[stream] = talk_id
    return Talks(talks, runs, current, triggers), containers


def _widen(bounds: dict[str, tuple[int, int]], talk: str, entry: Entry) -> None:
    ts = entry.ts
    known = bounds.get(talk)
    if known is None:
        bounds[talk] = (ts, max(ts, 0))  # starting from 0: a time before 1970 is nobody's last
    elif ts > known[1]:
        bounds[talk] = (known[0], ts)
    elif ts < known[0]:
        bounds[talk] = (ts, known[1])


def _triggers(before: Talks, delivered: Delivered) -> dict[tuple[str, str], int]:
    triggers = dict(before.triggers)
    for stream, places in delivered.streams.items():
        for place in places:
            entry = delivered.entries[place]
            if entry.trigger and entry.own_run:
                key = (stream, entry.own_run)
                seen = triggers.get(key, 0)
                found = seen | (_EXTERNAL if entry.trigger == Trigger.EXTERNAL else _SOME)
                if found != seen:
                    if key in before.runs and _starts_talk(seen) != _starts_talk(found):
                        raise Restructured
                    triggers[key] = found
    return triggers


def _starts_talk(triggers: int) -> bool:
    return not triggers or bool(triggers & _EXTERNAL)
