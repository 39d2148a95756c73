"""A folded conversation as text: its head, what it holds, what is open, and the containment tree (specification,
section 10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from flows.console import printable
from flows.parameters import counted
from schemas.session_flow import Ref, View

__all__ = ["conversation_text"]

OPEN_SHOWN = 12
CHILDREN_SHOWN = 6
DEPTH_SHOWN = 6
RANK = {"stream": 0, "epoch": 1, "talk": 2, "run": 3, "llm.call": 4, "segment": 9}
OTHER_RANK = 5


class _Node(msgspec.Struct):
    """What the tree needs of a node's facts."""

    kind: str = ""
    parent: str = ""
    ref: Ref | None = None


class _Relation(msgspec.Struct):
    type: str = ""
    quality: str = ""


class _Unresolved(msgspec.Struct):
    kind: str = ""
    reason: str = ""
    state: str = ""


def conversation_text(view: View) -> str:
    """The readable form of `view`; no newline at the end."""
    through_seq = 0 if view.header is None else view.header.through_seq
    nodes = {id: msgspec.json.decode(entity.facts, type=_Node) for id, entity in view.nodes.items()}
    relations = [msgspec.json.decode(entity.facts, type=_Relation) for entity in view.relations.values()]
    entries = [msgspec.json.decode(entity.facts, type=_Unresolved) for _, entity in sorted(view.unresolved.items())]
    still_open = [entry for entry in entries if entry.state == "open"]
    lines = [
        f"conversation  {printable(view.conversation)}",
        f"rounds        {view.round}, head {view.digest[:12]}…",
        f"landed        through sequence {through_seq}",
        f"entities      {counted(len(nodes), 'node')}, {counted(len(relations), 'relation')}, "
        f"{len(entries)} unresolved ({len(still_open)} open)",
        "",
        "nodes",
    ]
    kinds = Counter(node.kind for node in nodes.values())
    lines += [f"  {n:6d}  {printable(kind)}" for kind, n in sorted(kinds.items(), key=lambda item: (-item[1], item[0]))]
    if relations:
        lines += ["", "relations"]
        kept = Counter((relation.type, relation.quality) for relation in relations)
        lines += [f"  {n:6d}  {printable(kind)} ({printable(quality)})" for (kind, quality), n in sorted(kept.items())]
    if still_open:
        lines += ["", "open"]
        lines += [f"  {printable(entry.kind)}: {printable(entry.reason)}" for entry in still_open[:OPEN_SHOWN]]
        if len(still_open) > OPEN_SHOWN:
            lines.append(f"  … and {len(still_open) - OPEN_SHOWN} more")
    lines += ["", "tree", *_tree(nodes)]
    return "\n".join(lines)


def _tree(nodes: dict[str, _Node]) -> Iterator[str]:
    children: dict[str, list[str]] = {}
    for id, node in nodes.items():
        # A parent that does not stand in the view leaves its children at the top, visible, rather than nowhere.
        children.setdefault(node.parent if node.parent in nodes else "", []).append(id)
    for siblings in children.values():
        siblings.sort(key=lambda id: _order(id, nodes[id]))
    yield from _branch("", children, nodes, depth=0)


def _branch(parent: str, children: dict[str, list[str]], nodes: dict[str, _Node], depth: int) -> Iterator[str]:
    siblings = children.get(parent, [])
    indent = "  " * (depth + 1)
    if depth == DEPTH_SHOWN:
        if siblings:
            yield f"{indent}… {len(siblings)} below"
        return
    for id in siblings[:CHILDREN_SHOWN]:
        yield f"{indent}{printable(id)}  {printable(nodes[id].kind)}"
        yield from _branch(id, children, nodes, depth + 1)
    if len(siblings) > CHILDREN_SHOWN:
        yield f"{indent}… and {len(siblings) - CHILDREN_SHOWN} more"


def _order(id: str, node: _Node) -> tuple[int, int, int, int, int, str]:
    """Streams first and segments last; within a rank by position, then id; what has no position follows what has
    one."""
    rank = RANK.get(node.kind, OTHER_RANK)
    if node.ref is None:
        return rank, 1, 0, 0, 0, id
    block = -1 if node.ref.block is None else node.ref.block
    return rank, 0, node.ref.seq, node.ref.row, block, id
