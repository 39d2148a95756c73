"""Stage 3: provider calls, the records of one response put together (session-flow specification, section 6).

A call's fragments are the assistant records that carry its id, anywhere in the session; its stream is the first by name
that shows it.
"""

from __future__ import annotations

from typing import NamedTuple

from .canonical import Delivered
from .entries import Kind, flag
from .row import Row

__all__ = ["NO_CALLS", "Call", "Calls", "Fragment", "gather_calls"]

SYNTHETIC = flag("synthetic")
FINISHED = flag("finished")


class Fragment(Row, frozen=True):
    """container: the node that holds the record; texts, thoughts: block ordinals."""

    seq: int
    row: int
    container: str
    texts: tuple[int, ...]
    thoughts: tuple[int, ...]

    @property
    def place(self) -> tuple[int, int]:
        return self.seq, self.row


class Call(Row, frozen=True):
    """Fragments in (seq, row) order. stream: the first by name that shows the call. flags: those of any fragment."""

    fragments: tuple[Fragment, ...]
    stream: str
    flags: int

    @property
    def met(self) -> tuple[str, int, int]:
        """(stream, seq, row) where the call is met first, streams by name."""
        return self.stream, self.fragments[0].seq, self.fragments[0].row

    @property
    def synthetic(self) -> bool:
        return bool(self.flags & SYNTHETIC)

    @property
    def finished(self) -> bool:
        return bool(self.flags & FINISHED)


class Calls(NamedTuple):
    """calls: call id to call. touched: ids whose call is new or grew in this step."""

    calls: dict[str, Call]
    touched: list[str]


NO_CALLS = Calls({}, [])


def gather_calls(before: Calls, delivered: Delivered, containers: list[str]) -> Calls:
    grown: dict[str, tuple[list[Fragment], str, int]] = {}
    assistant = Kind.ASSISTANT
    for place, entry in enumerate(delivered.entries):
        name = entry.call
        if name and entry.kind == assistant and entry.stream:
            fragment = Fragment(entry.seq, entry.row, containers[place], entry.texts, entry.thoughts)
            fragments, stream, flags = grown.get(name) or ([], entry.stream, 0)
            fragments.append(fragment)
            grown[name] = (fragments, min(stream, entry.stream), flags | entry.flags)
    calls = dict(before.calls)
    for name, (fragments, stream, flags) in grown.items():
        earlier = calls.get(name)
        if earlier is None:
            calls[name] = Call(tuple(fragments), stream, flags)
        else:
            calls[name] = Call((*earlier.fragments, *fragments), min(earlier.stream, stream), earlier.flags | flags)
    return Calls(calls, list(grown))
