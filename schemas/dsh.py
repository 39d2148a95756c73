"""DeepSeek Harness session logs of generations 0 to 4: bytes in, events out, and back.

`read_log` gives what is stored and whole; `logical_events` closes a turn that a crash left open, in memory; `repair`
says which bytes make the same true of the file. Where logs lie is for `schemas.dsh_root`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from schemas._dsh_chunks import pack
from schemas._dsh_closers import NOT_STARTED_TEXT, OUTCOME_UNKNOWN_TEXT, closing_events
from schemas._dsh_frames import compress
from schemas._dsh_header import GENERATIONS, LogHeader, write_header
from schemas._dsh_json import is_safe, write_value
from schemas._dsh_messages import message_fault
from schemas._dsh_reader import MAX_LOG_BYTES, Event, StoredLog, read_log
from schemas._dsh_scan import Line
from schemas.errors import LogEventRejected

__all__ = [
    "GENERATIONS",
    "MAX_LOG_BYTES",
    "NOT_STARTED_TEXT",
    "OUTCOME_UNKNOWN_TEXT",
    "Event",
    "Line",
    "LogHeader",
    "Repair",
    "StoredLog",
    "closing_events",
    "logical_events",
    "read_log",
    "repair",
    "write_batch",
    "write_event",
    "write_first_batch",
]


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
    closing = closing_events(log.events, log.header.version)
    for event in closing:
        if fault := _fault(event, log.header.version):
            raise LogEventRejected(log.file, None, "unrepairable", fault)
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
    line = write_header(header)
    return (compress(line) if compressed else line) + write_batch(batch, compressed=compressed, packed=packed)


def _fault(event: Event, generation: int) -> str | None:
    """Why an event that closes a turn could not be read again: it says of turn and call what was said before."""
    if event["type"] == "tool/result":
        return message_fault("tool/result", event["data"], generation)
    if event["type"] == "turn/end" and generation < 2 and not is_safe(event["data"].get("turn"), lowest=1):
        return "the turn that was left open has no number, so nothing can end it"
    return None


def _sound_part(log: StoredLog) -> tuple[int, int]:
    """How much of the file can stay, and the first of the good lines that are not in that part."""
    if not log.compressed:
        return (log.text_end if log.torn else log.file_bytes), len(log.lines)
    if log.torn_frame is None:
        return log.file_bytes, len(log.lines)
    return log.torn_frame, bisect_left(log.lines, log.frames_end, key=lambda line: line.start)
