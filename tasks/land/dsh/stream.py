"""What a model streamed: the pieces of a call that failed, and how a call ended (DSH version 4, section 6; version 0:
section 4). Of an answer only its message counts, for the stream says the same again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from schemas._dsh_messages import field
from schemas.session_data import Part
from tasks.land.dsh.parts import text_part

__all__ = ["SAID_AGAIN", "Pieces", "finish_of", "pieces_of", "pieces_of_chunks", "without_pieces"]

SAID_AGAIN = frozenset(("stop", "tool-calls"))
"""How a call ends whose stream says nothing that its message does not."""

_PIECES = {"text-chunks": "text", "reasoning-chunks": "reasoning"}
_DELTAS = {"text-delta": "text", "reasoning-delta": "reasoning"}


class Pieces:
    """Streamed words by block."""

    def __init__(self) -> None:
        self._blocks: dict[tuple[str, str], list[str]] = {}

    def add(self, kind: str, index: Any, texts: Any) -> None:
        held = self._blocks.setdefault((kind, str(index)), [])
        held.extend(each for each in texts if isinstance(each, str))

    def settle(self, index: Any, block: Any) -> None:
        """A block that is whole: its text, where none of it came in pieces."""
        kind, text = field(block, "type"), field(block, "text")
        if kind in _DELTAS.values() and (kind, str(index)) not in self._blocks:
            self.add(kind, index, [text])

    def add_delta(self, chunk: Any) -> None:
        """A piece as generation 0 keeps it."""
        kind = _DELTAS.get(str(field(chunk, "type")))
        if kind is not None:
            self.add(kind, field(chunk, "index"), [field(chunk, "text")])

    def parts(self) -> list[Part]:
        """One part for each block that has words, in the order in which they began."""
        joined = ((kind, "".join(texts)) for (kind, _), texts in self._blocks.items())
        return [text_part(text, kind=kind) for kind, text in joined if text]


def pieces_of(stream: Any) -> Pieces:
    """The words in the stream of generations from 2 on."""
    pieces = Pieces()
    for record in _records(stream):
        kind = _PIECES.get(str(field(record, "type")))
        if kind is not None and isinstance(texts := field(record, "texts"), list):
            pieces.add(kind, field(record, "index"), texts)
        chunk = field(record, "chunk")
        if field(chunk, "type") == "block-end":
            pieces.settle(field(chunk, "index"), field(chunk, "block"))
    return pieces


def pieces_of_chunks(chunks: Iterable[Any]) -> tuple[Pieces, Any]:
    """The words in the chunks of one call, of generations before 2, and the usage that they tell."""
    pieces, tokens = Pieces(), None
    for chunk in chunks:
        kind = field(chunk, "type")
        if kind == "usage":
            tokens = field(chunk, "usage")
        elif kind == "block-end":
            pieces.settle(field(chunk, "index"), field(chunk, "block"))
        else:
            pieces.add_delta(chunk)
    return pieces, tokens


def without_pieces(stream: Any) -> list[Any]:
    """The stream without the words that `pieces_of` gives, and without blocks that repeat them."""
    kept = []
    for record in _records(stream):
        chunk = field(record, "chunk")
        block = field(field(chunk, "block"), "type") if field(chunk, "type") == "block-end" else None
        if str(field(record, "type")) not in _PIECES and block not in ("text", "reasoning"):
            kept.append(record)
    return kept


def finish_of(stream: Any) -> Any:
    """The reason with which the last call in a stream ended; None when it does not say."""
    found = None
    for record in _records(stream):
        chunk = field(record, "chunk")
        if field(chunk, "type") == "finish":
            found = field(chunk, "reason")
    return found


def _records(stream: Any) -> Iterable[Any]:
    return stream if isinstance(stream, list) else []
