"""Stage 1: the entries that count, up to the watermark (session-flow specification, section 6).

Canonical are the first entries of each record id, in index order, without change sets and provider bodies.
"""

from __future__ import annotations

from typing import NamedTuple

from .entries import Entry
from .index import Index

__all__ = ["Delivered", "deliver"]


class Delivered(NamedTuple):
    """Canonical entries that a step adds; streams: the stream's name to places in `entries`, streams sorted by name."""

    entries: list[Entry]
    streams: dict[str, list[int]]


def deliver(index: Index, after: int, through: int) -> Delivered:
    """The canonical entries of the landed files with `after` < sequence <= `through`."""
    entries: list[Entry] = []
    for seq in sorted(index.canonical):
        if after < seq <= through:
            entries += index.canonical[seq]
    streams: dict[str, list[int]] = {}
    for place, entry in enumerate(entries):
        name = entry.stream
        if name:
            places = streams.get(name)
            if places is None:
                streams[name] = [place]
            else:
                places.append(place)
    return Delivered(entries, {name: streams[name] for name in sorted(streams)})
