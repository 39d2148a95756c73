"""A session as assembled up to a watermark, and the step to a later one (session-flow specification, section 6).

`advance` runs the eight stages over the entries that a step adds and gives a new value; nothing in the old one changes,
so a step that made a round too large is simply dropped. Starting from `NOTHING` it is the whole assembly. Calls, tools
and single-record steps are rewritten only where the step touches them; the outline is drawn anew. Where new evidence
changes the meaning of old evidence, `Restructured` asks for a whole assembly.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .bodies import Bodies, join_bodies
from .calls import NO_CALLS, Calls, gather_calls
from .canonical import deliver
from .epochs import NO_EPOCHS, Epochs, cut_epochs
from .exchange import NO_MANIFESTS, Manifests, call_nodes, collect_manifests, open_tool, tool_node
from .ids import node_id, unresolved_id
from .index import Index, Restructured
from .outline import Outline, draw_outline, session_id
from .segments import cut_segments
from .spawns import NO_SPAWNS, Spawns, join_spawns
from .steps import NO_STEPS, Steps, take_steps
from .streams import NO_STREAMS, Streams, follow_streams
from .talks import NO_TALKS, Talks, place_talks
from .tools import NO_TOOLS, Tools, join_tools
from .unresolved import Open

__all__ = ["NOTHING", "Assembled", "Subject", "advance"]


class Subject(NamedTuple):
    """What is assembled. gap: the idle gap in nanoseconds that ends an activity window."""

    session: str
    conversation: str
    gap: int


class Assembled(NamedTuple):
    """The value of every stage at `through`, and the graph that they give.

    nodes: calls, messages, thoughts, tools and single-record steps, id to canonical facts; the outline holds the rest.
    written: ids in `nodes` that this step wrote. open_tools: open references of tools. waiting: tool id to the node id
    of its use's call, while that call has not landed. changes: change set's identity to (lines added, removed). whole:
    no step can follow, only a whole assembly.
    """

    through: int
    streams: Streams
    epochs: Epochs
    talks: Talks
    calls: Calls
    tools: Tools
    spawns: Spawns
    manifests: Manifests
    steps: Steps
    nodes: dict[str, bytes]
    outline: Outline
    written: list[str]
    open_tools: dict[str, Open]
    waiting: dict[str, str]
    changes: dict[str, tuple[int, int]]
    whole: bool


NOTHING = Assembled(
    -1,
    NO_STREAMS,
    NO_EPOCHS,
    NO_TALKS,
    NO_CALLS,
    NO_TOOLS,
    NO_SPAWNS,
    NO_MANIFESTS,
    NO_STEPS,
    {},
    Outline({}, {}, {}),
    [],
    {},
    {},
    {},
    False,
)


def advance(before: Assembled, index: Index, through: int, subject: Subject) -> Assembled:
    """The session assembled up to `through`, from what it was before. Raises `Restructured` (never when `before` is
    `NOTHING`).
    """
    delivered = deliver(index, before.through, through)
    session = session_id(subject.session)
    streams = follow_streams(before.streams, delivered)
    epochs, homes = cut_epochs(before.epochs, delivered)
    talks, containers = place_talks(before.talks, delivered, streams, epochs, homes, session)
    calls = gather_calls(before.calls, delivered, containers)
    tools = join_tools(before.tools, delivered, containers)
    spawns = join_spawns(before.spawns, delivered, streams, tools.tools)
    manifests = collect_manifests(before.manifests, delivered)
    steps = take_steps(before.steps, delivered, containers, homes)
    segments = cut_segments(talks, streams, tools, spawns, gap=subject.gap, conversation=subject.conversation)
    bodies = join_bodies(index, through, calls, talks)

    # Ids with a slash can meet after escaping, and a body's join looks at every call: both need every node written,
    # in one order.
    whole = before.whole or bool(bodies.landed) or any("/" in name for name in (*calls.touched, *tools.touched))
    if whole and before is not NOTHING:
        raise Restructured

    nodes = dict(before.nodes)
    written: list[str] = []
    new_calls = _write_calls(nodes, written, calls, bodies, whole)
    waiting = dict(before.waiting)
    affected = dict.fromkeys(tools.touched)
    affected.update(dict.fromkeys(sorted(before.spawns.agents ^ spawns.agents)))
    affected.update(dict.fromkeys(name for name, call in before.waiting.items() if call in new_calls))
    if manifests.touched:
        launched = set(manifests.touched)
        affected.update(
            dict.fromkeys(name for name, tool in tools.tools.items() if tool.result and tool.result.batch in launched)
        )
    open_tools = _write_tools(nodes, written, before, tools, affected, spawns, manifests, whole)
    for name in affected:
        use = tools.tools[name].use
        if use is not None and use.call:
            call = node_id("call", use.call)
            if call in nodes:
                waiting.pop(name, None)
            else:
                waiting[name] = call
    nodes.update(steps.nodes)
    written += steps.nodes
    outline = draw_outline(
        subject.session,
        subject.conversation,
        index,
        streams=streams,
        epochs=epochs,
        talks=talks,
        segments=segments,
        spawns=spawns,
        steps=steps,
        tool_ids=nodes,
        bodies=bodies.landed,
    )
    changes = dict(before.changes)
    for seq in sorted(index.changes):
        if before.through < seq <= through:
            for found in index.changes[seq]:
                changes.setdefault(found.identity, (found.added, found.removed))
    return Assembled(
        through,
        streams,
        epochs,
        talks,
        calls,
        tools,
        spawns,
        manifests,
        steps._replace(nodes={}),
        nodes,
        outline,
        written,
        open_tools,
        waiting,
        changes,
        whole,
    )


def _write_calls(nodes: dict[str, bytes], written: list[str], calls: Calls, bodies: Bodies, whole: bool) -> set[str]:
    """Returns the node ids of the calls that this step brought."""
    touched: Iterable[str] = calls.touched
    if whole:
        touched = sorted(
            touched,
            key=lambda name: (node_id("call", name), calls.calls[name].stream, calls.calls[name].fragments[0].place),
        )
    new: set[str] = set()
    for name in touched:
        key = node_id("call", name)
        if key not in nodes:
            new.add(key)
        for written_id, facts in call_nodes(name, calls.calls[name], bodies.joined.get(name, ())):
            nodes[written_id] = facts
            written.append(written_id)
    return new


def _write_tools(
    nodes: dict[str, bytes],
    written: list[str],
    before: Assembled,
    tools: Tools,
    affected: Iterable[str],
    spawns: Spawns,
    manifests: Manifests,
    whole: bool,
) -> dict[str, Open]:
    if whole:
        affected = sorted(affected, key=lambda name: (node_id("tool", name), tools.tools[name].met))
    open_tools = dict(before.open_tools)
    for name in affected:
        tool = tools.tools[name]
        if name in before.tools.tools:
            open_tools.pop(unresolved_id("tool_use", name), None)
            open_tools.pop(unresolved_id("tool_result", name), None)
        open_tool(open_tools, name, tool)
        if tool.use is not None:
            key = node_id("tool", name)
            nodes[key] = tool_node(tool, agent=name in spawns.agents, call_ids=nodes, manifests=manifests)
            written.append(key)
    return open_tools
