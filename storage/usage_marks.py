"""How far each session is counted in a usage data set, and which head of its chain was there then (usage specification,
"Layout"; DESIGN.md, rule 3).

The marks are one state file, JSON lines in a Zstandard frame, sorted by session. They tell a later run where to go on,
and show that a chain has lost its newest rounds since.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

import msgspec
import zstandard

from schemas.errors import UsageRejected

__all__ = ["SessionMark", "read_marks", "write_marks"]

_LEVEL = 3


class SessionMark(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One session. `counted` are the landed sequences that are counted, as ranges (first, last), in order: what is not
    in them was not there yet, or could not be read. Those in `without_calls` are counted by their records, because the
    call facts beside them were missing.

    `round` and `digest` are the chain's head, 0 and empty without one. `first` and `last` are the times of its first
    and last record with usage (microseconds UTC); `untimed` says that some have none, and `day` on which they are
    counted. `parent` is the session it goes on from.
    """

    session: str
    counted: tuple[tuple[int, int], ...] = ()
    round: int = 0
    digest: str = ""
    first: int | None = None
    last: int | None = None
    untimed: bool = False
    day: str = ""
    parent: str = ""
    without_calls: tuple[int, ...] = ()

    @property
    def through_seq(self) -> int:
        """The last landed sequence that is counted, 0 for none."""
        return self.counted[-1][1] if self.counted else 0

    def has(self, seq: int) -> bool:
        """Whether the landed file with that sequence is counted."""
        place = bisect_right(self.counted, seq, key=lambda span: span[0]) - 1
        return place >= 0 and seq <= self.counted[place][1]

    def forgotten(self) -> SessionMark:
        """The mark with nothing counted; the head of the chain that was seen stays."""
        return SessionMark(session=self.session, round=self.round, digest=self.digest)

    def with_counted(self, seqs: Iterable[int]) -> SessionMark:
        """The mark with more of them counted."""
        spans: list[tuple[int, int]] = []
        for first, last in sorted([*self.counted, *((seq, seq) for seq in seqs)]):
            if spans and first <= spans[-1][1] + 1:
                spans[-1] = (spans[-1][0], max(last, spans[-1][1]))
            else:
                spans.append((first, last))
        return msgspec.structs.replace(self, counted=tuple(spans))


def write_marks(marks: Iterable[SessionMark]) -> bytes:
    """The state file."""
    lines = msgspec.json.Encoder().encode_lines(sorted(marks, key=lambda mark: mark.session))
    return zstandard.ZstdCompressor(level=_LEVEL).compress(lines)


def read_marks(data: bytes, *, name: str) -> dict[str, SessionMark]:
    """By session; raises `UsageRejected` (rule ``marks``)."""
    try:
        lines = zstandard.ZstdDecompressor().decompress(data)
        marks = msgspec.json.Decoder(SessionMark).decode_lines(lines)
    except (zstandard.ZstdError, msgspec.DecodeError) as error:
        raise UsageRejected(name, None, "marks", f"it does not read: {error}") from None
    return {mark.session: mark for mark in marks}
