"""Stage 6: epochs, the stretches of a stream between context resets (session-flow specification, section 6).

A record flagged context_reset belongs to the epoch that it opens. Up to [0.5], a stream that starts with a reset has an
empty epoch of the same id before it, of which only the relation from the epoch to itself remains.
"""

from __future__ import annotations

import msgspec

from .canonical import Delivered
from .entries import flag
from .ids import node_id
from .row import Row

__all__ = ["NO_EPOCHS", "Epoch", "Epochs", "cut_epochs"]

_CONTEXT_RESET = flag("context_reset")


class Epoch(Row, frozen=True):
    """seq, row: its first entry, which is the boundary record when `opened_by_reset`; continues: the record id that the
    boundary names.
    """

    id: str
    seq: int
    row: int
    opened_by_reset: bool
    continues: str
    records: int


Epochs = dict[str, tuple[Epoch, ...]]
NO_EPOCHS: Epochs = {}


def cut_epochs(before: Epochs, delivered: Delivered) -> tuple[Epochs, list[str]]:
    """Epochs per stream, in order; and for each delivered entry the id of its epoch, "" where it has no stream."""
    epochs = dict(before)
    homes = [""] * len(delivered.entries)
    for stream, places in delivered.streams.items():
        rows = list(epochs.get(stream, ()))
        current = rows.pop() if rows else None
        count = current.records if current else 0
        home = current.id if current else ""
        for place in places:
            entry = delivered.entries[place]
            if entry.flags & _CONTEXT_RESET:
                if current is not None:
                    rows.append(msgspec.structs.replace(current, records=count))
                key = entry.record or f"at_{entry.seq}_{entry.row}"
                current = Epoch(node_id("epoch", stream, key), entry.seq, entry.row, True, entry.continues, 0)
                count, home = 0, current.id
            elif current is None:
                current = Epoch(node_id("epoch", stream, "0"), entry.seq, entry.row, False, "", 0)
                home = current.id
            homes[place] = home
            count += 1
        assert current is not None  # a stream is delivered with at least one entry
        rows.append(msgspec.structs.replace(current, records=count))
        epochs[stream] = tuple(rows)
    return epochs, homes
