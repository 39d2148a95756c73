"""What a round has to say: the difference between what was published and what stands now (session-flow specification,
section 8, "Diff").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from schemas.session_flow import UnresolvedFacts, View, encode_facts

from .assembled import NOTHING, Assembled
from .unresolved import Open

__all__ = ["Change", "Delta", "Published", "delta", "published", "settle"]

Change = tuple[str, bytes | None]
"""An id and its facts as they now stand; None removes it."""

_OPEN = b'"state":"open"}'
_RESOLVED = b'"state":"resolved"}'
_OUTLINE = ("session/", "stream/", "epoch/", "talk/", "run/", "segment/", "output/")


class Published(NamedTuple):
    """The chain's head and everything that stands under it, id to canonical facts (unresolved ones of every state).

    outline: the node kinds that `Outline` draws. nodes: all others; None where a checkpoint was resumed, which leaves
    them to the rounds.
    """

    round: int
    digest: str
    input_digest: str
    through: int
    nodes: Mapping[str, bytes] | None
    outline: Mapping[str, bytes]
    relations: Mapping[str, bytes]
    unresolved: Mapping[str, bytes]


class Delta(NamedTuple):
    """Each list is sorted by id."""

    nodes: list[Change]
    relations: list[Change]
    unresolved: list[Change]

    def __bool__(self) -> bool:
        return bool(self.nodes or self.relations or self.unresolved)


def published(view: View, through: int, input_digest: str) -> Published:
    """What a folded chain has published."""
    nodes: dict[str, bytes] = {}
    outline: dict[str, bytes] = {}
    for name, entity in view.nodes.items():
        (outline if name.startswith(_OUTLINE) else nodes)[name] = entity.facts
    return Published(
        view.round,
        view.digest,
        input_digest,
        through,
        nodes,
        outline,
        {name: entity.facts for name, entity in view.relations.items()},
        {name: entity.facts for name, entity in view.unresolved.items()},
    )


def delta(before: Published, base: Assembled, after: Assembled) -> Delta:
    """The changes from `before` to `after`.

    `base` is what `after` was advanced from. Unless it is `NOTHING`, `before` was published from it, so only ids that
    the step wrote can differ.
    """
    if base is NOTHING:
        assert before.nodes is not None  # a whole assembly starts from a folded chain
        nodes = list(_changes(before.nodes, after.written))
    else:
        nodes = [(name, facts) for name, facts in after.written.items() if after.earlier.get(name) != facts]
    nodes += _changes(before.outline, after.outline.nodes)
    relations = list(_changes(before.relations, after.outline.relations))
    unresolved: list[Change] = []
    standing = _unresolved(after)
    unresolved += ((name, facts) for name, facts in standing.items() if before.unresolved.get(name) != facts)
    unresolved += (
        (name, facts[: -len(_OPEN)] + _RESOLVED)
        for name, facts in before.unresolved.items()
        if name not in standing and facts.endswith(_OPEN)
    )
    return Delta(sorted(nodes, key=_by_id), sorted(relations, key=_by_id), sorted(unresolved, key=_by_id))


def settle(
    before: Published, base: Assembled, after: Assembled, changes: Delta, *, digest: str, input_digest: str
) -> Published:
    """What is published once `changes` is a round."""
    unresolved = dict(before.unresolved)
    unresolved.update((name, facts) for name, facts in changes.unresolved if facts is not None)
    nodes: Mapping[str, bytes] | None = after.written
    if base is not NOTHING:
        nodes = None if before.nodes is None else {**before.nodes, **after.written}
    outline = after.outline
    number = before.round + 1
    return Published(number, digest, input_digest, after.through, nodes, outline.nodes, outline.relations, unresolved)


def _by_id(change: Change) -> str:
    return change[0]


def _changes(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Iterator[Change]:
    for name, facts in after.items():
        if before.get(name) != facts:
            yield name, facts
    for name in before.keys() - after.keys():
        yield name, None


def _unresolved(after: Assembled) -> dict[str, bytes]:
    """Open references of every stage; their kinds differ, so no id meets another."""
    found: dict[str, Open] = {**after.open_tools, **after.spawns.unresolved, **after.outline.unresolved}
    return {
        name: encode_facts(UnresolvedFacts(kind=open_.kind, ref=open_.ref, reason=open_.reason, state="open"))
        for name, open_ in found.items()
    }
