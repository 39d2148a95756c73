"""DeepSeek Harness session logs of generations 0 to 4: bytes in, events out, and back.

`read_log` gives what is stored and whole; `logical_events` closes a turn that a crash left open, in memory; `repair`
says which bytes make the same true of the file. Where logs lie is for `schemas.dsh_root`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from schemas._dsh_checked import EventJudge
from schemas._dsh_chunks import pack
from schemas._dsh_closers import NOT_STARTED_TEXT, OUTCOME_UNKNOWN_TEXT, closing_events
from schemas._dsh_frames import compress, first_frame, open_frames
from schemas._dsh_header import GENERATIONS, LogHeader, checked_header, listed_header, write_header
from schemas._dsh_json import is_safe, write_value
from schemas._dsh_messages import message_fault
from schemas._dsh_reader import MAX_LOG_BYTES, Event, StoredLog, read_log, read_log_and_text
from schemas._dsh_scan import Line
from schemas._dsh_snapshot import NotLossless, snapshot
from schemas.dsh_root import log_key
from schemas.errors import LogEventRejected, LogRejected

__all__ = [
    "GENERATIONS",
    "MAX_LOG_BYTES",
    "NATIVE_PRESET",
    "NOT_STARTED_TEXT",
    "OUTCOME_UNKNOWN_TEXT",
    "WRITTEN_GENERATION",
    "Event",
    "EventJudge",
    "Line",
    "LogHeader",
    "NotLossless",
    "Repair",
    "StoredLog",
    "checked_header",
    "closing_events",
    "closing_of",
    "header_in",
    "logical_events",
    "read_log",
    "read_log_and_text",
    "repair",
    "snapshot",
    "write_batch",
    "write_event",
    "write_first_batch",
    "write_header",
    "write_value",
]


WRITTEN_GENERATION: Final = 0
"""The generation in which new sessions are begun, which is that of the design document."""

NATIVE_PRESET: Final = "sessionmill-native"
"""The preset by which the headers of our own agents' logs tell whose they are; nothing else in a log does."""

LARGEST_HEADER: Final = 1 << 24
"""A first line of more bytes is no header that any program wrote."""


@dataclass(frozen=True)
class Repair:
    """How to mend a file: keep its first ``keep`` bytes, then append ``tail``. ``closing`` are the events that end the
    interrupted turn; none when only a torn tail is taken away.
    """

    keep: int
    tail: bytes
    closing: list[Event]


def logical_events(log: StoredLog) -> list[Event]:
    """The events of the session as it stands: those stored, and those that close an interrupted turn."""
    return log.events + closing_events(log.events, log.header.version)


def repair(log: StoredLog) -> Repair | None:
    """What makes the file whole; None when it is. What a repaired file holds are the logical events of this one.

    Raises LogEventRejected (``unrepairable``) where the events that end the turn could not be read again.
    """
    closing = closing_of(log.events, log.header.version, log.file, written=True)
    keep, first_line = _sound_part(log)
    recovered = log.events[log.lines[first_line].first_seq :] if first_line < len(log.lines) else []
    if keep == log.file_bytes and not closing:
        return None
    # Generation 4 writes what it recovered in a frame of its own, generation 0 together with what it adds.
    batches = [recovered, closing] if log.header.version >= 2 else [recovered + closing]
    tail = b"".join(
        write_batch(batch, compressed=log.compressed, packed=log.header.version < 2) for batch in batches if batch
    )
    return Repair(keep, tail, closing)


def header_in(start: bytes, *, compressed: bool, name: str) -> tuple[bool, LogHeader | None]:
    """The header of the log that begins with ``start``, and whether more of the log has to be read to know it.

    No header is given where a listing shows none: the first line is no header, of no version that this reader knows.
    Raises LogRejected (``frame``, ``too_large``) for a whole first frame that is damaged or holds something else.
    """
    if compressed:
        frame = first_frame(start, name) if start else None
        if frame is None:
            return _bounded(start, name), None
        line = open_frames(start, [frame], name, LARGEST_HEADER)[0]
        if line.find(b"\n") + 1 != len(line) or not line:
            raise LogRejected(name, None, "frame", "the first frame is not exactly the header line")
        return False, listed_header(line[:-1], name)
    end = start.find(b"\n")
    return (_bounded(start, name), None) if end < 0 else (False, listed_header(start[:end], name))


def _bounded(start: bytes, name: str) -> bool:
    if len(start) > LARGEST_HEADER:
        raise LogRejected(name, 1, "too_large", f"a header of more than {LARGEST_HEADER} bytes")
    return True


def closing_of(events: Sequence[Event], generation: int, name: str, *, written: bool = False) -> list[Event]:
    """The events that close the turn which ``events`` leave open, to be looked at or, as ``written``, to be stored.

    Raises LogEventRejected (``unrepairable``) where they break a rule, or could not be read again.
    """
    closing = closing_events(events, generation)
    for event in closing:
        if fault := _fault(event, generation, written):
            raise LogEventRejected(name, None, "unrepairable", fault)
    return closing


def write_event(event: Event) -> bytes:
    """One event as its line, line feed included."""
    return write_value(event) + b"\n"


def write_batch(batch: Sequence[Event], *, compressed: bool = True, packed: bool = True) -> bytes:
    """The bytes that one append adds to a log: a frame of its own, or plain lines; nothing for no events. ``packed``
    joins runs of chunks.
    """
    text = b"".join(map(write_event, pack(batch) if packed else batch))
    return compress(text) if compressed and text else text


def write_first_batch(
    header: LogHeader, batch: Sequence[Event], *, compressed: bool = True, packed: bool = True
) -> bytes:
    """The bytes of a new log: its header, alone in its frame, and the first batch."""
    line = write_header(checked_header(header, log_key(header, compressed=compressed)))
    return (compress(line) if compressed else line) + write_batch(batch, compressed=compressed, packed=packed)


def _fault(event: Event, generation: int, written: bool) -> str | None:
    """Why an event that closes a turn could not be read again: it says of turn and call what was said before."""
    if event["type"] == "tool/result":
        return message_fault("tool/result", event["data"], generation)
    if written and event["type"] == "turn/end" and generation < 2 and not is_safe(event["data"].get("turn"), lowest=1):
        return "the turn that was left open has no number, so nothing can end it"
    return None


def _sound_part(log: StoredLog) -> tuple[int, int]:
    """How much of the file can stay, and the first of the good lines that are not in that part."""
    if not log.compressed:
        return (log.text_end if log.torn else log.file_bytes), len(log.lines)
    if log.torn_frame is None:
        return log.file_bytes, len(log.lines)
    return log.torn_frame, bisect_left(log.lines, log.frames_end, key=lambda line: line.start)
