"""The next round of a chain: how much evidence it takes in, and its exact bytes (session-flow specification, section
8).

A round takes in everything that landed, unless it would be larger than the budget; then half of it, and half again. A
round that covers one landed file is kept whatever its size.
"""

from __future__ import annotations

from typing import NamedTuple

from schemas.input_digest import input_digest
from schemas.session_flow import RoundHeader, build_round
from schemas.times import format_time

from .assembled import NOTHING, Assembled, Subject, advance
from .changes import wrapped
from .delta import Published, delta, settle
from .floor import first_beyond
from .ids import node_id
from .index import Index, Restructured
from .policy import PARSER, policy
from .streams import CHILD, role

__all__ = ["DEFAULT_BUDGET", "PlannedRound", "plan_round", "round_at"]

DEFAULT_BUDGET = 2_097_152
"""Bytes that a round may have, its commit line included."""


class PlannedRound(NamedTuple):
    """A round ready to be published, and what stands once it is. data: the file's bytes."""

    header: RoundHeader
    data: bytes
    digest: str
    assembled: Assembled
    published: Published


def plan_round(
    before: Published, base: Assembled, index: Index, subject: Subject, budget: int
) -> PlannedRound | Assembled:
    """The round that follows `before`; where there is nothing to publish, the assembly that shows it.

    `base` is the assembly that `before` was published from, or `NOTHING`. Raises `Restructured` when only a whole
    assembly helps and the index does not go back far enough.
    """
    through = index.watermark
    first = before.through + 1
    budget = budget if budget > 0 else DEFAULT_BUDGET
    beyond = first_beyond(index, before.through, before.nodes or {}, base.calls.calls, base.tools.tools, budget)
    while True:
        if beyond is None or through < beyond or through <= first:
            found = round_at(before, base, index, through, subject)
            if not isinstance(found, PlannedRound) or len(found.data) <= budget or through <= first:
                return found
        through = first + (through - first) // 2


def round_at(
    before: Published, base: Assembled, index: Index, through: int, subject: Subject
) -> PlannedRound | Assembled:
    """The round that takes in the evidence up to `through`, whatever its size."""
    try:
        after = advance(base, index, through, subject)
    except Restructured:
        if not index.whole:
            raise
        base = NOTHING
        after = advance(base, index, through, subject)
    changes = delta(before, base, after)
    if not changes and through <= before.through:
        return after
    header = _header(before, after, index, subject)
    data, digest = build_round(header, changes.nodes, changes.relations, changes.unresolved)
    return PlannedRound(
        header,
        data,
        digest,
        after,
        settle(before, base, after, changes, digest=digest, input_digest=header.input_digest),
    )


def _header(before: Published, after: Assembled, index: Index, subject: Subject) -> RoundHeader:
    covered = [file for file in index.files if before.through < file.seq <= after.through]
    first = min((file.first for file in covered if file.first), default=0)
    last = max((file.last for file in covered if file.last), default=0)
    streams = after.streams
    outline = after.outline.nodes
    kinds = [name.partition("/")[0] for name in outline]
    return RoundHeader(
        schema="sf/1",
        conversation=subject.conversation,
        session=subject.session,
        round=before.round + 1,
        previous=before.digest,
        from_seq=before.through + 1,
        through_seq=after.through,
        input_digest=input_digest(before.input_digest, (file.digest for file in covered)),
        parser=PARSER,
        policy=policy(subject.gap),
        from_time=format_time(first) if first else "",
        through_time=format_time(last) if last else "",
        session_from_time=format_time(streams.first) if streams.first else "",
        session_through_time=format_time(streams.last) if streams.first else "",
        title=streams.title,
        talks=kinds.count("talk"),
        steps=after.node_count + kinds.count("output"),
        streams=kinds.count("stream"),
        segments=kinds.count("segment"),
        unresolved=len(after.open_tools) + len(after.spawns.unresolved) + len(after.outline.unresolved),
        changes=len(after.changes),
        lines_added=wrapped(sum(added for added, _ in after.changes.values())),
        lines_removed=wrapped(sum(removed for _, removed in after.changes.values())),
        llm_calls=len({node_id("call", name) for name in after.calls.calls}) if after.whole else len(after.calls.calls),
        subagents=sum(role(streams, name) == CHILD for name in streams.streams),
        bash_runs=_bash_runs(after),
    )


def _bash_runs(after: Assembled) -> int:
    names = {name: tool.use.name for name, tool in after.tools.tools.items() if tool.use is not None}
    if after.whole:  # two ids can meet in one node, which the later one writes
        names = {
            node_id("tool", name): names[name]
            for name in sorted(names, key=lambda name: (node_id("tool", name), after.tools.tools[name].met))
        }
    return sum(name == "Bash" for name in names.values())
