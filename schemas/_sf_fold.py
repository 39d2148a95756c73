"""Folding a chain's rounds into the conversation as it stands (specification, section 7)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NoReturn

from schemas import lenient_json
from schemas._sf_model import Entity, Round, RoundHeader
from schemas.errors import ChainRejected


@dataclass(slots=True)
class View:
    """A conversation as of round ``round``: for every id the entity that stands.

    ``round`` is 0 and ``header`` None before the first round. Resolved and terminal unresolved entries stay; an entity
    is gone once a tombstone was folded. A round that `apply` refuses leaves the view as it was.
    """

    conversation: str
    round: int = 0
    digest: str = ""
    header: RoundHeader | None = None
    nodes: dict[str, Entity] = field(default_factory=dict)
    relations: dict[str, Entity] = field(default_factory=dict)
    unresolved: dict[str, Entity] = field(default_factory=dict)

    @classmethod
    def empty(cls, conversation: str) -> View:
        """The conversation before its first round."""
        return cls(conversation)

    def apply(self, round: Round, *, file: str) -> None:
        """Fold the next round in. Raises ChainRejected, with ``file`` in it, unless it is the chain's next round.

        Rules, in this order: order, previous, conversation, session, parser, policy.
        """
        self._check_link(round.header, file)
        for standing, entities in (
            (self.nodes, round.nodes),
            (self.relations, round.relations),
            (self.unresolved, round.unresolved),
        ):
            for entity in entities:
                if entity.tombstone:
                    standing.pop(entity.id, None)
                else:
                    standing[entity.id] = entity
        self.round = round.header.round
        self.digest = round.digest
        self.header = round.header

    def _check_link(self, header: RoundHeader, file: str) -> None:
        def reject(rule: str, detail: str) -> NoReturn:
            raise ChainRejected(file, None, rule, detail)

        number = header.round
        if number != self.round + 1:
            reject("order", f"round {number} cannot follow round {self.round}; rounds fold in order")
        if self.round and header.previous != self.digest:
            reject(
                "previous", f"round {number} names previous {header.previous[:12]!r}, the head is {self.digest[:12]!r}"
            )
        if header.conversation != self.conversation:
            reject(
                "conversation", f"round {number} belongs to {header.conversation!r}, the chain to {self.conversation!r}"
            )
        if self.header is None:
            return
        for rule in ("session", "parser", "policy"):
            ours, theirs = getattr(self.header, rule), getattr(header, rule)
            if ours != theirs:
                reject(rule, f"round {number} has {rule} {theirs!r}, the chain {ours!r}")


_HEAD = (
    *("session", "input_digest", "parser", "policy", "through_seq"),
    *("from_time", "through_time", "session_from_time", "session_through_time"),
)


def view_json(view: View) -> dict[str, Any]:
    """The view as plain values: the head's facts and, by id, the whole frame of every entity that stands.

    A time that the newest header does not carry is ``""``. Before the first round there is no session and no other fact
    of a header.
    """
    shown: dict[str, Any] = {"conversation": view.conversation, "round": view.round, "digest": view.digest}
    header = view.header
    if header is not None:
        shown.update((name, getattr(header, name)) for name in _HEAD)
    shown["nodes"] = _frames("node", view.nodes)
    shown["relations"] = _frames("relation", view.relations)
    shown["unresolved"] = _frames("unresolved", view.unresolved)
    return shown


def _frames(type: str, standing: dict[str, Entity]) -> dict[str, Any]:
    return {
        id: {"t": type, "id": id, "revision": entity.revision, **lenient_json.decode_value(entity.facts)}
        for id, entity in sorted(standing.items())
    }
