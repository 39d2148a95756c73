"""The outline of a session: session, streams, epochs, talks, runs, segments, what children returned, and every
relation.

There are few of these beside calls and steps, and one record can change many of them, so each step of assembly writes
them all anew from the stages' values (session-flow specification, section 6).
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from schemas.session_flow import (
    EpochAttrs,
    OutputAttrs,
    Ref,
    RunAttrs,
    SegmentAttrs,
    SessionAttrs,
    StreamAttrs,
    TalkAttrs,
)
from schemas.times import format_time

from .epochs import Epochs
from .graph import Related, encode_relations, node, relate
from .ids import at_position, node_id
from .index import Index
from .segments import Segment
from .spawns import Spawns
from .steps import Placed, Steps
from .streams import CHILD, Streams, role
from .talks import Talks
from .unresolved import Open, open_reference

__all__ = ["Outline", "draw_outline", "session_id"]


class Outline(NamedTuple):
    """nodes, relations: id to canonical facts. unresolved: open references that resets and notifications leave."""

    nodes: dict[str, bytes]
    relations: dict[str, bytes]
    unresolved: dict[str, Open]


def session_id(session: str) -> str:
    return node_id("session", session)


def draw_outline(
    session: str,
    conversation: str,
    index: Index,
    *,
    streams: Streams,
    epochs: Epochs,
    talks: Talks,
    segments: list[Segment],
    spawns: Spawns,
    steps: Steps,
    tool_ids: Container[str],
    bodies: int,
) -> Outline:
    """`tool_ids` holds the node ids of the tools whose use landed; `bodies` is how many provider bodies landed."""
    nodes: dict[str, bytes] = {}
    relations: dict[str, Related] = {}
    unresolved: dict[str, Open] = {}
    _session(nodes, session, conversation, streams, bodies)
    _streams(nodes, session, streams)
    _epochs(nodes, relations, unresolved, index, epochs)
    _talks(nodes, talks, streams)
    _segments(nodes, relations, session, segments, talks)
    _summaries(relations, index, steps)
    _notices(relations, unresolved, streams, spawns, steps)
    _outputs(nodes, relations, streams, steps)
    for edge in spawns.edges:
        tool = node_id("tool", edge.tool)
        if edge.tool and tool in tool_ids:
            stream = node_id("stream", edge.child)
            relate(relations, "starts", tool, stream, edge.quality, edge.via, [Ref(edge.seq, edge.row)])
    return Outline(nodes, encode_relations(relations), unresolved)


def _session(nodes: dict[str, bytes], session: str, conversation: str, streams: Streams, bodies: int) -> None:
    attrs = SessionAttrs(
        conversation=conversation,
        from_time=format_time(streams.first) if streams.first else "",
        provider_bodies_landed=bodies,
        through_time=format_time(streams.last) if streams.first else "",
        title=streams.title,
        title_from="observed_replayable" if streams.title else "",
    )
    nodes[session_id(session)] = node("session", attrs=attrs)


def _streams(nodes: dict[str, bytes], session: str, streams: Streams) -> None:
    parent = session_id(session)
    for name in sorted(streams.streams):
        stream = streams.streams[name]
        attrs = StreamAttrs(label=streams.labels.get(name, ""), records=stream.records, role=role(streams, name))
        nodes[node_id("stream", name)] = node(
            "stream", parent=parent, stream=name, ref=Ref(stream.seq, stream.row), attrs=attrs
        )


def _epochs(
    nodes: dict[str, bytes], relations: dict[str, Related], unresolved: dict[str, Open], index: Index, epochs: Epochs
) -> None:
    for stream in sorted(epochs):
        parent = node_id("stream", stream)
        previous = ""
        for epoch in epochs[stream]:
            ref = Ref(epoch.seq, epoch.row)
            attrs = EpochAttrs(records=epoch.records, reset="none")
            refs: tuple[Ref, ...] = ()
            if epoch.opened_by_reset:
                attrs.reset = "observed_replayable"
                refs = (ref,)
                if epoch.continues:
                    attrs.continues_from = epoch.continues
                    if epoch.continues not in index.lineage:
                        reason = "a reset names a record that is not in the landed data"
                        open_reference(unresolved, "epoch_continuation", epoch.continues, reason)
                # A stream that starts with a reset follows the empty epoch before it, which has the same id.
                target = previous or epoch.id
                relate(relations, "follows", epoch.id, target, "exact_unique", "explicit context reset", refs)
            nodes[epoch.id] = node("epoch", parent=parent, stream=stream, ref=ref, refs=refs, attrs=attrs)
            previous = epoch.id


def _talks(nodes: dict[str, bytes], talks: Talks, streams: Streams) -> None:
    for name, talk in sorted(talks.talks.items(), key=lambda item: item[1].stream):
        trigger = "unknown" if role(streams, talk.stream) == CHILD else "external"
        attrs = TalkAttrs(loops=talk.runs, runs=talk.runs, trigger=trigger)
        nodes[name] = node("talk", parent=talk.epoch, stream=talk.stream, ref=Ref(talk.seq, talk.row), attrs=attrs)
    for (stream, _), run in sorted(talks.runs.items(), key=lambda item: item[0][0]):
        started_by = RunAttrs(trigger="external" if run.opens else "notification")
        nodes[run.node] = node("run", parent=run.talk, stream=stream, ref=Ref(run.seq, run.row), attrs=started_by)


def _segments(
    nodes: dict[str, bytes], relations: dict[str, Related], session: str, segments: list[Segment], talks: Talks
) -> None:
    for segment in segments:
        attrs = SegmentAttrs(
            committable=not segment.gates_unmet,
            gates_unmet=segment.gates_unmet,
            state="open" if segment.last else "candidate",
            talks=len(segment.main),
        )
        nodes[segment.id] = node("segment", parent=session_id(session), ref=Ref(segment.seq, segment.row), attrs=attrs)
        for names, quality, via in (
            (segment.main, "exact_unique", "activity window"),
            (segment.delegated, "strong_inference", "inside the window of the talk that delegated it"),
        ):
            for name in names:
                talk = talks.talks[name]
                relate(relations, "in_segment", name, segment.id, quality, via, [Ref(talk.seq, talk.row)])


def _summaries(relations: dict[str, Related], index: Index, steps: Steps) -> None:
    for summary in steps.summaries:
        boundary = index.resets.get(summary.parent)
        if boundary is not None:
            this = at_position("summary", summary.seq, summary.row)
            evidence = [Ref(summary.seq, summary.row)]
            target = at_position("boundary", *boundary)
            relate(relations, "summarizes", this, target, "exact_unique", "containment parent", evidence)


def _notices(
    relations: dict[str, Related], unresolved: dict[str, Open], streams: Streams, spawns: Spawns, steps: Steps
) -> None:
    children: dict[str, list[str]] = {}
    for edge in spawns.edges:
        children.setdefault(edge.tool, []).append(edge.child)
    for notice in steps.notices:
        this = at_position("notify", notice.seq, notice.row)
        evidence = [Ref(notice.seq, notice.row)]
        if notice.child:
            if notice.child in streams.streams:
                stream = node_id("stream", notice.child)
                relate(relations, "reports", this, stream, "exact_unique", "task id on the notification", evidence)
            else:
                reason = "a notification names a child whose stream has not landed"
                open_reference(unresolved, "notified_child", notice.child, reason)
        elif notice.tool:
            for child in children.get(notice.tool, ()):
                stream, via = node_id("stream", child), "the call the notification completes"
                relate(relations, "reports", this, stream, "strong_inference", via, evidence)


def _outputs(nodes: dict[str, bytes], relations: dict[str, Related], streams: Streams, steps: Steps) -> None:
    for name in sorted(streams.streams):
        if role(streams, name) != CHILD:
            continue
        found: list[Placed] = []
        if name in steps.responses:
            found.append(steps.responses[name])
        if name in steps.returns:
            found.append(steps.returns[name])
        if not found:
            continue
        refs = tuple(Ref(placed.seq, placed.row) for placed in found)
        this = node_id("output", name)
        attrs = OutputAttrs(returned_value="observed_replayable" if name in steps.returns else "unavailable")
        nodes[this] = node("agent.output", parent=found[0].container, stream=name, refs=refs, attrs=attrs)
        via = "the last response in the child stream, and what it returned"
        relate(relations, "ends_with", node_id("stream", name), this, "exact_unique", via, refs)
