"""Change sets: the `changes/1` documents that records carry in data parts, counted once each (session-flow
specification, section 4).
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import msgspec

from schemas.lenient_json import UndecodableJSON, decode
from schemas.session_data import Part

__all__ = ["ChangeSet", "change_set", "document_of", "wrapped"]

Document = TypeVar("Document", bound=msgspec.Struct)

_SCHEMA = "changes/1"


class ChangeSet(NamedTuple):
    """added, removed: lines, summed over the files of the set."""

    identity: str
    added: int
    removed: int


class _State(msgspec.Struct):
    present: bool = False
    bytes: int = 0


class _File(msgspec.Struct):
    path: str = ""
    operation: str = ""
    before: _State | None = None
    after: _State | None = None
    diff: str = ""
    additions: int = 0
    deletions: int = 0


class _Document(msgspec.Struct):
    schema: str = ""
    id: str = ""
    captured_by: str = ""
    session: str = ""
    stream: str = ""
    tool: str = ""
    time: str = ""
    basis: str = ""
    changed_files: int = 0
    changes: list[_File] = msgspec.field(default_factory=list)


def change_set(part: Part) -> ChangeSet | None:
    """The change set that a data part holds, None when it holds something else."""
    document = document_of(part, _Document, _SCHEMA)
    if document is None or document.schema != _SCHEMA:
        return None
    return ChangeSet(
        f"{document.captured_by}|{document.id}",
        wrapped(sum(file.additions for file in document.changes)),
        wrapped(sum(file.deletions for file in document.changes)),
    )


def document_of(part: Part, kind: type[Document], schema: str) -> Document | None:
    """A data part as a document of ours, None when it cannot be one. Most data parts hold something else and are not
    decoded.
    """
    if not isinstance(part.data, msgspec.Raw):
        return None
    data = bytes(part.data)
    if schema.encode() not in data and b"\\" not in data:
        return None
    try:
        return decode(data, kind)
    except UndecodableJSON:
        return None


def wrapped(value: int) -> int:
    """A sum in 64 bits, as the original counts."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
