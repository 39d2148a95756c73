"""How far a source file is read: a text of ``key value`` lines beside what it landed (Claude Code specification,
section 2, which has the original's keys).

A cursor is a convenience. Where it is behind what has landed, the claim of the last landed file says how it should be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Self

from storage.objects import ObjectStore

__all__ = ["ACTIVE", "CONFLICT", "GONE", "SourceCursor", "cursor_key", "root_name"]

ACTIVE, CONFLICT, GONE = "active", "conflict", "source_gone"

_WIDTH = 13


@dataclass(frozen=True, slots=True)
class SourceCursor:
    """One source file's cursor. `kind` is append or snapshot; `root` tells one source's files from another's.

    append: `offset` and `ord` are the bytes and lines landed, `tail_sha256` is the digest of up to 1 MiB before
    `offset`. snapshot: `content_sha256` is the digest of what was landed last. `size`, `mtime` (seconds) and `etag` are
    the object's as it was then. `reason` says what a conflict is about. `memo` and `mark` are the dialect's: how it
    reads the file, and why it has to be looked at again though nothing has changed.
    """

    kind: str
    source: str
    root: str
    offset: int = 0
    ord: int = 0
    tail_sha256: str = ""
    content_sha256: str = ""
    size: int = 0
    mtime: int = 0
    etag: str = ""
    last_seq: int = 0
    updated_at: str = ""
    state: str = ACTIVE
    reason: str = ""
    memo: str = ""
    mark: str = ""

    def values(self) -> dict[str, str]:
        """The lines of the file, in order. Device and inode are always 0: the etag says more, on every store."""
        if self.kind == "append":
            place = {"dev": "0", "ino": "0", "offset": str(self.offset), "ord": str(self.ord)}
            digest = {"tail_sha256": self.tail_sha256}
        else:
            place = {}
            digest = {"content_sha256": self.content_sha256}
        listed = {
            "schema": "1",
            "kind": self.kind,
            "source": self.source,
            **place,
            **digest,
            "size": str(self.size),
            "mtime": str(self.mtime),
            "last_seq": str(self.last_seq),
            "updated_at": self.updated_at,
            "state": self.state,
            "root": self.root,
            "etag": self.etag,
            "reason": self.reason,
            "memo": self.memo,
            "mark": self.mark,
        }
        return {key: value for key, value in listed.items() if value}

    def to_bytes(self) -> bytes:
        return "".join(f"{key:<{_WIDTH}} {value}\n" for key, value in self.values().items()).encode()

    @classmethod
    def read(cls, values: Mapping[str, str]) -> Self | None:
        """The cursor in these lines, None when they are none of this kind."""
        try:
            return cls(
                kind={"append": "append", "snapshot": "snapshot"}[values["kind"]],
                source=values["source"],
                root=values.get("root", ""),
                offset=int(values.get("offset", 0)),
                ord=int(values.get("ord", 0)),
                tail_sha256=values.get("tail_sha256", ""),
                content_sha256=values.get("content_sha256", ""),
                size=int(values.get("size", 0)),
                mtime=int(values.get("mtime", 0)),
                etag=values.get("etag", ""),
                last_seq=int(values.get("last_seq", 0)),
                updated_at=values.get("updated_at", ""),
                state=values.get("state", ACTIVE),
                reason=values.get("reason", ""),
                memo=values.get("memo", ""),
                mark=values.get("mark", ""),
            )
        except (KeyError, ValueError):
            return None

    def with_state(self, state: str, updated_at: str, reason: str = "") -> Self:
        return replace(self, state=state, updated_at=updated_at, reason=reason)


def cursor_key(target: str) -> str:
    """Where the cursor of a `SourceFile.target` lies."""
    return f"{target}.cursor"


def root_name(source: ObjectStore) -> str:
    """What cursors call this source, so that another one's files are never taken for gone."""
    return sha256(source.url.encode("utf-8", "surrogateescape")).hexdigest()[:12]
