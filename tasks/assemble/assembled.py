"""A session as assembled up to a watermark, and the step to a later one (session-flow specification, section 6).

`advance` runs the eight stages over the entries that a step adds and gives a new value; nothing in the old one changes,
so a step that made a round too large is simply dropped. Starting from `NOTHING` it is the whole assembly. Calls, tools
and single-record steps are rewritten only where the step touches them; the outline is drawn anew. Where new evidence
changes the meaning of old evidence, `Restructured` asks for a whole assembly.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import NamedTuple

from .bodies import join_bodies
from .calls import NO_CALLS, Calls, gather_calls
from .canonical import Delivered, deliver
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
    """The value of every stage at `through`, and what the last step wrote.

    written: calls, messages, thoughts, tools and single-record steps that the step wrote, id to canonical facts;
    earlier: what those said before it, where they were there. node_count: how many such nodes stand; the outline holds
    the others. open_tools: open references of tools. waiting: tool id to the call id of its use, while that call has
    not landed. changes: change set's identity to (lines added, removed). whole: no step can follow, only a whole
    assembly.
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
    written: dict[str, bytes]
    earlier: dict[str, bytes]
    node_count: int
    outline: Outline
    open_tools: dict[str, Open]
    waiting: dict[str, str]
    changes: dict[str, tuple[int, int]]
    whole: bool


NOTHING = Assembled(
    through=-1,
    streams=NO_STREAMS,
    epochs=NO_EPOCHS,
    talks=NO_TALKS,
    calls=NO_CALLS,
    tools=NO_TOOLS,
    spawns=NO_SPAWNS,
    manifests=NO_MANIFESTS,
    steps=NO_STEPS,
    written={},
    earlier={},
    node_count=0,
    outline=Outline({}, {}, {}),
    open_tools={},
    waiting={},
    changes={},
    whole=False,
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
    if index.shared:
        homes, containers = _by_place(delivered, homes, ""), _by_place(delivered, containers, session)
    calls = gather_calls(before.calls, delivered, containers)
    tools = join_tools(before.tools, delivered, containers)
    spawns = join_spawns(before.spawns, delivered, streams, tools.tools)
    manifests = collect_manifests(before.manifests, delivered)
    steps = take_steps(before.steps, delivered, containers, homes)
    segments = cut_segments(talks, streams, tools, spawns, gap=subject.gap, conversation=subject.conversation)
    uses = [tool.use for name in tools.touched if (tool := tools.tools[name]).use is not None]
    names = (*calls.touched, *tools.touched, *(use.call for use in uses))
    # Ids with a slash can meet after escaping, records of two files with one sequence meet at their place, and a body's
    # join looks at every call: each needs every node written, in one order.
    whole = before.whole or index.shared or any(seq <= through for seq in index.bodies) or any("/" in n for n in names)
    if whole and before is not NOTHING:
        raise Restructured
    bodies = join_bodies(index, through, calls, talks)

    written: dict[str, bytes] = {}
    earlier: dict[str, bytes] = {}
    for name in _in_node_order("call", calls.touched, calls) if whole else calls.touched:
        if name in before.calls.calls:
            earlier.update(call_nodes(name, before.calls.calls[name]))
        written.update(call_nodes(name, calls.calls[name], bodies.joined.get(name, ())))
    affected = _affected(before, calls, tools, spawns, manifests)
    open_tools, waiting = dict(before.open_tools), dict(before.waiting)
    for name in _in_node_order("tool", affected, tools) if whole else affected:
        tool = tools.tools[name]
        key = node_id("tool", name)
        if name in before.tools.tools:
            open_tools.pop(unresolved_id("tool_use", name), None)
            open_tools.pop(unresolved_id("tool_result", name), None)
            if before.tools.tools[name].use is not None:
                earlier[key] = _tool_node(name, before.tools, before.calls, before.spawns, before.manifests)
        open_tool(open_tools, name, tool)
        if tool.use is not None:
            written[key] = _tool_node(name, tools, calls, spawns, manifests, written if whole else None)
            if tool.use.call and tool.use.call not in calls.calls:
                waiting[name] = tool.use.call
            else:
                waiting.pop(name, None)
    written.update(steps.nodes)
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
        tool_ids=written if whole else {node_id("tool", edge.tool) for edge in spawns.edges if _used(edge.tool, tools)},
        bodies=bodies.landed,
    )
    changes = dict(before.changes)
    for seq in sorted(index.changes):
        if before.through < seq <= through:
            for found in index.changes[seq]:
                changes.setdefault(found.identity, (found.added, found.removed))
    return Assembled(
        through=through,
        streams=streams,
        epochs=epochs,
        talks=talks,
        calls=calls,
        tools=tools,
        spawns=spawns,
        manifests=manifests,
        steps=steps._replace(nodes={}),
        written=written,
        earlier=earlier,
        node_count=before.node_count + len(written) - len(earlier),
        outline=outline,
        open_tools=open_tools,
        waiting=waiting,
        changes=changes,
        whole=whole,
    )


def _by_place(delivered: Delivered, found: list[str], nowhere: str) -> list[str]:
    """What is found at each entry's sequence and row, where several entries can be: the last one placed decides."""
    at = {
        (delivered.entries[place].seq, delivered.entries[place].row): found[place]
        for places in delivered.streams.values()
        for place in places
    }
    return [at.get((entry.seq, entry.row), nowhere) for entry in delivered.entries]


def _affected(before: Assembled, calls: Calls, tools: Tools, spawns: Spawns, manifests: Manifests) -> dict[str, None]:
    """Tools whose node the step can change: named by a use or result, started an agent, got their call or manifest."""
    affected = dict.fromkeys(tools.touched)
    affected.update(dict.fromkeys(sorted(before.spawns.agents ^ spawns.agents)))
    if before.waiting:
        affected.update(dict.fromkeys(name for name, call in before.waiting.items() if call in calls.calls))
    if manifests.touched:
        launched = set(manifests.touched)
        affected.update(
            dict.fromkeys(name for name, tool in tools.tools.items() if tool.result and tool.result.batch in launched)
        )
    return affected


def _tool_node(
    name: str, tools: Tools, calls: Calls, spawns: Spawns, manifests: Manifests, nodes: Container[str] | None = None
) -> bytes:
    """`nodes` decides whether the use's call has a node, where ids can meet after escaping; else the call's id does."""
    tool = tools.tools[name]
    assert tool.use is not None  # callers leave out tools without one
    call = tool.use.call
    under_call = call in calls.calls if nodes is None else node_id("call", call) in nodes
    return tool_node(tool, tool.use, agent=name in spawns.agents, under_call=under_call, manifests=manifests)


def _used(name: str, tools: Tools) -> bool:
    tool = tools.tools.get(name)
    return tool is not None and tool.use is not None


def _in_node_order(kind: str, names: Iterable[str], values: Calls | Tools) -> list[str]:
    """By node id, and where two ids meet in one node, by where each was met first: the later one stands."""
    place = values.calls if isinstance(values, Calls) else values.tools
    return sorted(names, key=lambda name: (node_id(kind, name), place[name].met))
