"""The values of Session Flow, `sf/1` (specification, section 7).

Field order is writing order; a field with a default is left out when it holds that default.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import UNSET, Raw, Struct, UnsetType, field

from schemas._formats import Format, Signed, Unsigned

SCHEMA = "sf/1"


class Ref(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False, frozen=True):
    """One landed record (sequence and row, both from 1) or one block of it (from 0)."""

    seq: Unsigned
    row: Unsigned
    block: Signed | None = None


class RoundHeader(Format, kw_only=True, tag_field="t", tag="header"):
    """First frame of a round. The six counts that may be None are absent from older generations: unknown, not zero."""

    schema: str
    conversation: str
    session: str
    round: Unsigned
    previous: str = ""
    from_seq: Unsigned
    through_seq: Unsigned
    input_digest: str
    parser: str
    policy: str
    from_time: str = ""
    through_time: str = ""
    session_from_time: str = ""
    session_through_time: str = ""
    title: str = ""
    talks: Signed
    steps: Signed
    streams: Signed
    segments: Signed
    unresolved: Signed
    changes: Signed | None = None
    lines_added: Signed | None = None
    lines_removed: Signed | None = None
    llm_calls: Signed | None = None
    subagents: Signed | None = None
    bash_runs: Signed | None = None


class Attrs(Format, kw_only=True):
    """Base of what a kind of node says beyond its place (`_sf_attrs`); fields stand in key order."""


class NodeFacts(Format):
    """What a node says. ``attrs`` is of the node's kind, or JSON that is canonical already (`encode_attrs`)."""

    kind: str
    parent: str = ""
    stream: str = ""
    ref: Ref | None = None
    refs: tuple[Ref, ...] = ()
    attrs: Attrs | Raw | UnsetType = UNSET


class RelationFacts(Format, kw_only=True):
    """What a relation says."""

    type: str
    from_: str = field(name="from")
    to: str
    quality: str
    via: str = ""
    evidence: tuple[Ref, ...] = ()


class UnresolvedFacts(Format, kw_only=True):
    """What an unresolved entry says; ``ref`` is the id that could not be resolved, ``state`` open, resolved or
    terminal.
    """

    kind: str
    ref: str = ""
    reason: str = ""
    state: str


class NodeFrame(Format, kw_only=True, tag_field="t", tag="node"):
    """A node's line: envelope and facts."""

    id: str
    revision: Unsigned
    tombstone: bool = False
    kind: str
    parent: str = ""
    stream: str = ""
    ref: Ref | None = None
    refs: tuple[Ref, ...] = ()
    attrs: Raw | UnsetType = UNSET

    @property
    def facts(self) -> NodeFacts:
        """The frame without its envelope."""
        return NodeFacts(
            kind=self.kind, parent=self.parent, stream=self.stream, ref=self.ref, refs=self.refs, attrs=self.attrs
        )


class RelationFrame(Format, kw_only=True, tag_field="t", tag="relation"):
    """A relation's line: envelope and facts."""

    id: str
    revision: Unsigned
    tombstone: bool = False
    type: str
    from_: str = field(name="from")
    to: str
    quality: str
    via: str = ""
    evidence: tuple[Ref, ...] = ()

    @property
    def facts(self) -> RelationFacts:
        """The frame without its envelope."""
        return RelationFacts(
            type=self.type, from_=self.from_, to=self.to, quality=self.quality, via=self.via, evidence=self.evidence
        )


class UnresolvedFrame(Format, kw_only=True, tag_field="t", tag="unresolved"):
    """An unresolved entry's line: envelope and facts."""

    id: str
    revision: Unsigned
    tombstone: bool = False
    kind: str
    ref: str = ""
    reason: str = ""
    state: str

    @property
    def facts(self) -> UnresolvedFacts:
        """The frame without its envelope."""
        return UnresolvedFacts(kind=self.kind, ref=self.ref, reason=self.reason, state=self.state)


Frame = NodeFrame | RelationFrame | UnresolvedFrame


class Counts(Format, kw_only=True):
    """Entities in one round, by type."""

    nodes: Signed
    relations: Signed
    unresolved: Signed


class Commit(Format, kw_only=True, tag_field="t", tag="commit"):
    """Last frame of a round; ``digest`` is over every line before it."""

    digest: str
    counts: Counts


class Entity(Struct, gc=False, frozen=True):
    """One node, relation or unresolved entry as a round carries it.

    ``facts`` is everything after the envelope as canonical JSON (``{"kind":…}``): two entities say the same when their
    facts are equal bytes. A tombstone's facts are those of its own line.
    """

    id: str
    revision: int
    tombstone: bool
    facts: bytes


@dataclass(frozen=True, slots=True)
class Round:
    """A round that passed every check; ``digest`` is the hex value its commit frame carries."""

    header: RoundHeader
    nodes: list[Entity]
    relations: list[Entity]
    unresolved: list[Entity]
    digest: str
