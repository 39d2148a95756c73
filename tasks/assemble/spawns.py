"""Stage 5: which call started which child stream, by the best evidence that landed (session-flow specification, section
6).
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from .canonical import Delivered
from .entries import Entry, Kind, Trigger
from .row import Row
from .streams import AUXILIARY, MAIN, Streams, role
from .unresolved import Open, open_reference

__all__ = ["NO_SPAWNS", "Announcement", "Edge", "Spawns", "join_spawns"]


class Announcement(Row, frozen=True):
    """An entry that names a child stream. tool: its own tool, else the tool that its first result block answers."""

    seq: int
    row: int
    kind: int
    trigger: int
    tool: str
    batch: str
    started_by: str
    child: str


class Edge(Row, frozen=True):
    """tool, batch, parent: what started the child, as far as known; seq, row: the entry that says so."""

    child: str
    tool: str
    batch: str
    parent: str
    via: str
    quality: str
    seq: int
    row: int


class Spawns(NamedTuple):
    """edges: those kept, sorted by child, tool, batch. agents: tool ids that started a child that is no auxiliary
    stream.

    batch_tools: batch to the tool whose result names it. unresolved: open references, by id.
    """

    announcements: tuple[Announcement, ...]
    batch_tools: dict[str, str]
    edges: tuple[Edge, ...]
    agents: frozenset[str]
    unresolved: dict[str, Open]


NO_SPAWNS = Spawns((), {}, (), frozenset(), {})


def join_spawns(before: Spawns, delivered: Delivered, streams: Streams, tools: Container[str]) -> Spawns:
    """`tools` holds every tool id that a use or a result named."""
    batch_tools = dict(before.batch_tools)
    found: list[Announcement] = []
    for entry in delivered.entries:
        if entry.batch and entry.results and entry.kind != Kind.JOURNAL:
            answered = _first_answered(entry)
            if answered:
                batch_tools.setdefault(entry.batch, answered)
        if entry.child:
            tool = entry.tool or _first_answered(entry)
            found.append(
                Announcement(
                    entry.seq, entry.row, entry.kind, entry.trigger, tool, entry.batch, entry.started_by, entry.child
                )
            )
    announcements = before.announcements + tuple(found)
    unresolved: dict[str, Open] = {}
    kept: list[Edge] = []
    agents: set[str] = set()
    spawned: set[str] = set()
    for edge in _edges(announcements, batch_tools):
        if edge.child not in streams.streams:
            open_reference(unresolved, "child_stream", edge.child, "announced, but no transcript has landed yet")
        elif not edge.tool and edge.parent and edge.parent in streams.streams:
            kept.append(edge)
            spawned.add(edge.child)
        elif not edge.tool:
            open_reference(
                unresolved, "spawn_call", edge.batch, "a batch names children but its launch call was never landed"
            )
        elif edge.tool not in tools:
            open_reference(unresolved, "spawn_call", edge.tool, "a child names a call that was never landed")
        else:
            if role(streams, edge.child) != AUXILIARY:
                agents.add(edge.tool)
            kept.append(edge)
            spawned.add(edge.child)
    for name in sorted(streams.streams):
        if name != MAIN and name not in spawned:
            open_reference(
                unresolved, "spawn_of_child", name, "no landed record names the call that started this stream"
            )
    return Spawns(announcements, batch_tools, tuple(kept), frozenset(agents), unresolved)


def _first_answered(entry: Entry) -> str:
    return next((tool for _, tool in entry.results if tool), "")


def _edges(announcements: tuple[Announcement, ...], batch_tools: dict[str, str]) -> list[Edge]:
    edges: dict[tuple[str, str, str, str], Edge] = {}
    for said in announcements:
        tool, batch, parent = said.tool, "", ""
        via, quality = "parent tool result", "exact_unique"
        if said.kind == Kind.JOURNAL:
            tool, batch = batch_tools.get(said.batch, ""), said.batch
            via, quality = "run journal", "strong_inference"
        elif said.kind == Kind.META:
            parent = said.started_by
            via = "child sidecar"
        elif said.trigger == Trigger.NOTIFICATION:
            via = "completion notification"
        if tool or batch or parent:
            key = (tool, batch, parent, said.child)
            edges.setdefault(key, Edge(said.child, tool, batch, parent, via, quality, said.seq, said.row))
    return sorted(edges.values(), key=lambda edge: (edge.child, edge.tool, edge.batch))
