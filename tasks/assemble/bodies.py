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
    ordered = sorted(
        ((call_id, call) for call_id, call in calls.calls.items() if not call.synthetic),
        key=lambda item: (item[1].stream, item[1].fragments[0].place, node_id("call", item[0])),
    )
    request_of = _by_name(requests, ordered)
    response_of = _by_name(responses, ordered)
    request_ids = {call_id: body[1].request for found in (response_of, request_of) for call_id, body in found.items()}
    _by_sequence(requests, ordered, request_of, request_ids, _prompts(talks), _streams_with_gaps(index, through))
    joined = {
        call_id: tuple(
            JoinedBody(role, body[0].seq, body[0].row)
            for role, found in (("request", request_of), ("response", response_of))
            if (body := found.get(call_id)) is not None
        )
        for call_id, _ in ordered
        if call_id in request_of or call_id in response_of
    }
    return Bodies(joined, len(distinct))


def _by_name(bodies: list[_Body], ordered: list[tuple[str, Call]]) -> dict[str, _Body]:
    named = Counter(entry.call for entry, _ in bodies if entry.call)
    only = {body[0].call: body for body in bodies if named[body[0].call] == 1}
    return {call_id: only[call_id] for call_id, _ in ordered if call_id in only}


def _by_sequence(
    requests: list[_Body],
    ordered: list[tuple[str, Call]],
    request_of: dict[str, _Body],
    request_ids: dict[str, str],
    prompts: dict[str, str],
    gaps: set[str],
) -> None:
    """Joins into `request_of` and `request_ids`, again and again: a call that gets its request tells the next one what
    it follows.
    """
    free: dict[_Key, list[_Body]] = {}
    for body in requests:
        entry, manifest = body
        if not entry.call and entry.run:
            free.setdefault((manifest.previous, entry.run), []).append(body)
    taken: set[str] = set()
    while True:
        wanted: dict[_Key, list[str]] = {}
        previous: dict[str, str] = {}
        for call_id, call in ordered:
            before = previous.get(call.stream)
            previous[call.stream] = call_id
            if call_id in request_of or call.stream in gaps:
                continue
            prompt = prompts.get(call.fragments[0].container, "")
            follows = "" if before is None else request_ids.get(before, "")
            if prompt and (before is None or follows):
                wanted.setdefault((follows, prompt), []).append(call_id)
        news = False
        for key, call_ids in wanted.items():
            candidates = free.get(key, [])
            if len(call_ids) == 1 and len(candidates) == 1 and candidates[0][0].record not in taken:
                request_of[call_ids[0]] = candidates[0]
                request_ids.setdefault(call_ids[0], candidates[0][1].request)
                taken.add(candidates[0][0].record)
                news = True
        if not news:
            return


def _prompts(talks: Talks) -> dict[str, str]:
    """Run node to the run that the record at its place names itself."""
    return {run.node: run.prompt for _, run in sorted(talks.runs.items(), key=lambda item: item[0][0])}


def _streams_with_gaps(index: Index, through: int) -> set[str]:
    """Streams whose transcript skips a line, duplicates included: what a call follows is not known there."""
    highest: dict[str, int] = {}
    gaps: set[str] = set()
    for seq in sorted(index.lines):
        if seq <= through:
            for stream, line in index.lines[seq]:
                if line > highest.get(stream, 0) + 1:
                    gaps.add(stream)
                highest[stream] = max(highest.get(stream, 0), line)
    return gaps
