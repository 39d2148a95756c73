"""Provider bodies: which landed request and response belongs to which call (session-flow specification, "Provider
bodies").

A body that names its call joins it when it is the only one to do so. A request that names none joins by what it
follows: the request before it on the stream, and the prompt both belong to.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from .calls import Call, Calls
from .entries import Entry
from .exchange import JoinedBody
from .ids import node_id
from .index import Index
from .manifests import BodyManifest
from .talks import Talks

__all__ = ["Bodies", "join_bodies"]


class Bodies(NamedTuple):
    """joined: call id to its bodies, request first. landed: how many distinct bodies there are."""

    joined: dict[str, tuple[JoinedBody, ...]]
    landed: int


class _Placed(NamedTuple):
    """A call where its first fragment is."""

    stream: str
    place: tuple[int, int]
    node: str
    call_id: str
    call: Call


_Body = tuple[Entry, BodyManifest]
_Key = tuple[str, str]


def join_bodies(index: Index, through: int, calls: Calls, talks: Talks) -> Bodies:
    distinct: dict[str, _Body] = {}
    for seq in sorted(index.bodies):
        if seq <= through:
            for entry, manifest in index.bodies[seq]:
                distinct.setdefault(entry.record, (entry, manifest))
    if not distinct:
        return Bodies({}, 0)
    requests = [body for body in distinct.values() if body[1].role == "request"]
    responses = [body for body in distinct.values() if body[1].role == "response"]
    ordered = _in_order(index, through, calls)
    request_of = _by_name(requests, ordered)
    response_of = _by_name(responses, ordered)
    request_of |= _by_sequence(requests, ordered, request_of, response_of, talks, _streams_with_gaps(index, through))
    joined = {
        placed.call_id: tuple(
            JoinedBody(role, body[0].seq, body[0].row)
            for role, found in (("request", request_of), ("response", response_of))
            if (body := found.get(placed.call_id)) is not None
        )
        for placed in ordered
        if placed.call_id in request_of or placed.call_id in response_of
    }
    return Bodies(joined, len(distinct))


def _in_order(index: Index, through: int, calls: Calls) -> list[_Placed]:
    """Calls that are not synthetic, by the stream and place of their first fragment."""
    stream_at = {
        (entry.seq, entry.row): entry.stream
        for seq, entries in index.canonical.items()
        if seq <= through
        for entry in entries
    }
    placed = [
        _Placed(stream_at[call.fragments[0].place], call.fragments[0].place, node_id("call", name), name, call)
        for name, call in calls.calls.items()
        if not call.synthetic
    ]
    return sorted(placed, key=lambda each: each[:3])


def _by_name(bodies: list[_Body], ordered: list[_Placed]) -> dict[str, _Body]:
    named = Counter(entry.call for entry, _ in bodies if entry.call)
    only = {body[0].call: body for body in bodies if named[body[0].call] == 1}
    return {placed.call_id: only[placed.call_id] for placed in ordered if placed.call_id in only}


def _by_sequence(
    requests: list[_Body],
    ordered: list[_Placed],
    request_of: dict[str, _Body],
    response_of: dict[str, _Body],
    talks: Talks,
    gaps: set[str],
) -> dict[str, _Body]:
    """What a call follows is told by the response of the call before it on its stream, which knows its request's id."""
    free: dict[_Key, list[_Body]] = {}
    for body in requests:
        entry, manifest = body
        if not entry.call and entry.run:
            free.setdefault((manifest.previous, entry.run), []).append(body)
    prompts = {run.node: run.prompt for _, run in sorted(talks.runs.items(), key=lambda item: item[0][0])}
    wanted: dict[_Key, list[str]] = {}
    previous: dict[str, str] = {}
    for placed in ordered:
        before = previous.get(placed.stream)
        previous[placed.stream] = placed.call_id
        if placed.call_id in request_of or placed.stream in gaps:
            continue
        prompt = prompts.get(placed.call.fragments[0].container, "")
        response = None if before is None else response_of.get(before)
        follows = "" if response is None else response[1].request
        if prompt and (before is None or follows):
            wanted.setdefault((follows, prompt), []).append(placed.call_id)
    return {
        call_ids[0]: free[key][0]
        for key, call_ids in wanted.items()
        if len(call_ids) == 1 and len(free.get(key, ())) == 1
    }


def _streams_with_gaps(index: Index, through: int) -> set[str]:
    """Streams whose records skip a line, duplicates included: what a call follows is not known there."""
    highest: dict[str, int] = {}
    gaps: set[str] = set()
    for seq in sorted(index.lines):
        if seq <= through:
            for stream, line in index.lines[seq]:
                if line > highest.get(stream, 0) + 1:
                    gaps.add(stream)
                highest[stream] = max(highest.get(stream, 0), line)
    return gaps
