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
    """flags: the record's; container: the node that holds the record; texts, thoughts: block ordinals."""

    seq: int
    row: int
    stream: str
    flags: int
    container: str
    texts: tuple[int, ...]
    thoughts: tuple[int, ...]

    @property
    def place(self) -> tuple[int, int]:
        return self.seq, self.row


class Call(Row, frozen=True):
    """Fragments in (seq, row) order."""

    fragments: tuple[Fragment, ...]

    @property
    def stream(self) -> str:
        return min(fragment.stream for fragment in self.fragments)

    @property
    def synthetic(self) -> bool:
        return any(fragment.flags & SYNTHETIC for fragment in self.fragments)

    @property
    def finished(self) -> bool:
        return any(fragment.flags & FINISHED for fragment in self.fragments)


class Calls(NamedTuple):
    """calls: call id to call. touched: ids whose call is new or grew in this step."""

    calls: dict[str, Call]
    touched: list[str]


NO_CALLS = Calls({}, [])


def gather_calls(before: Calls, delivered: Delivered, containers: list[str]) -> Calls:
    grown: dict[str, list[Fragment]] = {}
    assistant = Kind.ASSISTANT
    for place, entry in enumerate(delivered.entries):
        call = entry.call
        if call and entry.kind == assistant and entry.stream:
            fragment = Fragment(
                entry.seq, entry.row, entry.stream, entry.flags, containers[place], entry.texts, entry.thoughts
            )
            known = grown.get(call)
            if known is None:
                grown[call] = [fragment]
            else:
                known.append(fragment)
    calls = dict(before.calls)
    for call, fragments in grown.items():
        earlier = calls.get(call)
        calls[call] = Call(tuple(fragments) if earlier is None else earlier.fragments + tuple(fragments))
    return Calls(calls, list(grown))
