"""The index kept between runs: what one more landed file needs to know of all that came before (derived, disposable).

A checkpoint holds the index and the assembly at the chain's head. It is used only when it fits the chain and the landed
files exactly; anything else (another head, a file behind its reach, another policy, damage) makes the session be
assembled from the beginning, to the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import zstandard

from .assembled import Assembled
from .delta import Published
from .index import FileFacts, Index

__all__ = ["Checkpoint", "read_checkpoint", "write_checkpoint"]

_LAYOUT = 3


class Checkpoint(NamedTuple):
    """landed: every file of the index as (key, bytes), in sequence order. rounds: every round, likewise. beyond: landed
    files that no round covers yet. unresolved: the chain's entries of every state, id to facts.
    """

    layout: int
    parser: str
    policy: str
    session: str
    conversation: str
    landed: tuple[tuple[str, int], ...]
    rounds: tuple[tuple[str, int], ...]
    round: int
    digest: str
    input_digest: str
    lineage: dict[str, tuple[str, int]]
    awaited: frozenset[str]
    resets: dict[str, tuple[int, int]]
    beyond: list[FileFacts]
    reach: int
    unresolved: dict[str, bytes]
    assembled: Assembled

    def resumed_index(self) -> Index:
        """The index as it was, without the entries of the files it covers."""
        return Index(
            self.lineage,
            self.awaited,
            self.resets,
            self.beyond,
            {},
            {},
            {},
            {},
            self.assembled.through,
            self.reach,
            frozenset(),
            False,
            False,
        )

    def published(self) -> Published:
        outline = self.assembled.outline
        return Published(
            self.round,
            self.digest,
            self.input_digest,
            self.assembled.through,
            None,
            outline.nodes,
            outline.relations,
            self.unresolved,
        )


def write_checkpoint(
    parser: str,
    policy: str,
    session: str,
    conversation: str,
    landed: Sequence[tuple[str, int]],
    rounds: Sequence[tuple[str, int]],
    index: Index,
    published: Published,
    assembled: Assembled,
) -> bytes:
    """The checkpoint of a session whose chain has taken in everything that landed."""
    value = Checkpoint(
        _LAYOUT,
        parser,
        policy,
        session,
        conversation,
        tuple(landed),
        tuple(rounds),
        published.round,
        published.digest,
        published.input_digest,
        index.lineage,
        index.awaited,
        index.resets,
        [file for file in index.files if file.seq > assembled.through],
        index.reach,
        dict(published.unresolved),
        assembled._replace(written={}, earlier={}),
    )
    return zstandard.ZstdCompressor(level=1, write_checksum=True).compress(_encode(value))


def read_checkpoint(data: bytes, largest: int) -> Checkpoint | None:
    """None for anything that is not a whole checkpoint of this layout, or would unpack to more than `largest` bytes."""
    try:
        size = zstandard.frame_content_size(data)
        if not 0 <= size <= largest:
            return None
        value = _decode(zstandard.ZstdDecompressor().decompress(data))
    except (zstandard.ZstdError, msgspec.DecodeError, RecursionError):
        return None
    return value if value.layout == _LAYOUT else None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Checkpoint).decode
