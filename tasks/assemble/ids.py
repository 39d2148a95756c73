"""Ids of nodes, relations and unresolved references: readable, built from evidence, never from counting (session-flow
specification, section 5).
"""

from __future__ import annotations

__all__ = ["at_position", "block_id", "node_id", "relation_id", "unresolved_id"]


def node_id(kind: str, *parts: str) -> str:
    """`kind/part/part`: empty parts are left out, and a `/` inside a part becomes `_`."""
    joined = kind
    for part in parts:
        if part:
            joined = f"{joined}/{part.replace('/', '_')}"
    return joined


def relation_id(type_: str, from_id: str, to_id: str) -> str:
    return f"rel/{type_}/{from_id.replace('/', '_')}/{to_id.replace('/', '_')}"


def unresolved_id(kind: str, ref: str) -> str:
    return node_id("unres", kind, ref)


def at_position(prefix: str, seq: int, row: int) -> str:
    """The id of what has no name of its own: `prefix/seq/row` of the record."""
    return f"{prefix}/{seq}/{row}"


def block_id(prefix: str, seq: int, row: int, block: int) -> str:
    return f"{prefix}/{seq}/{row}:{block}"
