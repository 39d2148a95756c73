"""The primitives that assembly writes with: nodes by id, and relations that gather evidence (session-flow
specification, section 6).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from schemas.session_flow import Attrs, NodeFacts, Ref, RelationFacts, encode_facts

from .ids import relation_id

__all__ = ["Related", "encode_relations", "node", "relate"]

_RANK = {"exact_unique": 5, "exact_ambiguous": 4, "strong_inference": 3, "weak_inference": 2}


def node(
    kind: str,
    *,
    parent: str = "",
    stream: str = "",
    ref: Ref | None = None,
    refs: tuple[Ref, ...] = (),
    attrs: Attrs | UnsetType = UNSET,
) -> bytes:
    """The canonical bytes of a node's facts. Without `ref`, the first of `refs` is the node's own place."""
    if ref is None and refs:
        ref = refs[0]
    return encode_facts(NodeFacts(kind, parent, stream, ref, refs, attrs))


class Related(NamedTuple):
    type: str
    from_id: str
    to_id: str
    quality: str
    via: str
    evidence: list[Ref]
    """Grows as more of it is found; it is nobody else's list."""


def relate(
    relations: dict[str, Related], type_: str, from_id: str, to_id: str, quality: str, via: str, evidence: Iterable[Ref]
) -> None:
    """Add a relation, or evidence to one that stands: the better quality wins, a conflict stays one."""
    refs = [ref for ref in evidence if ref.seq]
    key = relation_id(type_, from_id, to_id)
    known = relations.get(key)
    if known is None:
        relations[key] = Related(type_, from_id, to_id, quality, via, refs)
        return
    if "conflict" in (known.quality, quality):
        quality, via = "conflict", f"{known.via}; {via}"
    elif _RANK.get(quality, 0) <= _RANK.get(known.quality, 0):
        quality, via = known.quality, known.via
    known.evidence.extend(refs)
    relations[key] = known._replace(quality=quality, via=via)


def encode_relations(relations: dict[str, Related]) -> dict[str, bytes]:
    return {
        key: encode_facts(
            RelationFacts(
                type=found.type,
                from_=found.from_id,
                to=found.to_id,
                quality=found.quality,
                via=found.via,
                evidence=tuple(found.evidence),
            )
        )
        for key, found in relations.items()
    }
