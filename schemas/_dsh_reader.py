"""Reading one session log: container, header, lines, events (DSH specification, sections 2 to 7, 10 and 13)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from schemas._dsh_checked import checked_events
from schemas._dsh_frames import find_frames, open_frames, open_torn_frame
from schemas._dsh_header import GENERATIONS, LogHeader, read_header
from schemas._dsh_scan import Line, scan
from schemas.dsh_root import place_of
from schemas.errors import LogRejected, LogUnsupported

__all__ = ["MAX_LOG_BYTES", "Event", "StoredLog", "read_log", "read_log_and_text"]

Event = dict[str, Any]
"""An event as its JSON object, keys in the order in which they stand."""

MAX_LOG_BYTES: Final = 1 << 30
"""The most a log may hold when decompressed, unless the caller says otherwise: what is more is refused."""


@dataclass(frozen=True)
class StoredLog:
    """One log as it is stored.

    ``events`` are those of its whole lines, old shapes brought up to date, and ``lines`` are where those stand in the
    decompressed text; the header is line 1 and not among them. ``text_end`` is where the last of them ends; ``torn``
    says what is wrong with what stands behind it, and is None when nothing does. ``frames`` are the starts of the whole
    frames, in the file and in the text, and ``frames_end`` is where they end in the text; a plain log has none.
    ``torn_frame`` is where in the file a frame begins that is cut short.
    """

    file: str
    compressed: bool
    header: LogHeader
    events: list[Event]
    lines: list[Line]
    frames: list[tuple[int, int]]
    frames_end: int
    file_bytes: int
    text_end: int
    torn_frame: int | None
    torn: str | None


@dataclass(frozen=True)
class _Text:
    """A log's text, and how it was framed. Of its bytes the first ``whole`` are from whole frames or lines."""

    header: LogHeader
    text: bytes
    header_end: int
    whole: int
    frames: list[tuple[int, int]]
    torn_frame: int | None


def read_log(data: bytes, *, name: str, limit: int = MAX_LOG_BYTES) -> StoredLog:
    """The log in ``data``; ``name`` is its key, whose last part says its generation and its encoding.

    Raises LogUnsupported (``version``, ``unknown_type``) for what a later program may have written, LogEventRejected
    for an event that breaks a rule, and LogRejected for whatever else makes it unreadable.
    """
    return read_log_and_text(data, name=name, limit=limit)[0]


def read_log_and_text(data: bytes, *, name: str, limit: int = MAX_LOG_BYTES) -> tuple[StoredLog, bytes]:
    """The log in ``data`` as `read_log` gives it, and its decompressed text: the header's line and the whole lines
    after it. Raises as `read_log` does.
    """
    place = place_of(name)
    if place is None:
        raise LogRejected(name, None, "name", "no session log's name: session.jsonl, session.v4.jsonl.zstd")
    if place.generation not in GENERATIONS:
        detail = f"generation {place.generation}, which is newer than this reader; upgrade it"
        raise LogUnsupported(name, None, "version", detail)
    opened = (_open_compressed if place.compressed else _open_plain)(data, place.generation, name, limit)
    found = scan(opened.text, opened.header_end, packed=place.generation < 2, name=name)
    if place.compressed and found.end < opened.whole:
        raise LogRejected(name, len(found.lines) + 2, "line", f"{found.fault}, in a whole frame")
    events = checked_events(found, opened.header, name)
    torn = found.fault
    if torn is None and opened.torn_frame is not None:
        torn = "the last frame is cut short"
    elif torn is None and found.end < len(opened.text):
        torn = "the last line does not end"
    stored = StoredLog(
        file=name,
        compressed=place.compressed,
        header=opened.header,
        events=events,
        lines=found.lines,
        frames=opened.frames,
        frames_end=opened.whole,
        file_bytes=len(data),
        text_end=found.end,
        torn_frame=opened.torn_frame,
        torn=torn,
    )
    return stored, opened.text[: found.end]


def _open_plain(data: bytes, generation: int, name: str, limit: int) -> _Text:
    if len(data) > limit:
        raise LogRejected(name, None, "too_large", f"{len(data)} bytes, above the limit of {limit}")
    header_end = data.find(b"\n") + 1
    if not header_end:
        raise LogRejected(name, None, "empty", "the file has no header line")
    header = read_header(data[: header_end - 1], generation, name)
    return _Text(header, data, header_end, len(data), [], None)


def _open_compressed(data: bytes, generation: int, name: str, limit: int) -> _Text:
    frames, torn_frame = find_frames(data, name)
    if not frames:
        raise LogRejected(name, None, "empty", "the file has no whole frame, so no header")
    contents = open_frames(data, frames[:1], name, limit)
    if contents[0].find(b"\n") + 1 != len(contents[0]) or not contents[0]:
        raise LogRejected(name, None, "frame", "the first frame is not exactly the header line")
    header = read_header(contents[0][:-1], generation, name)
    contents += open_frames(data, frames[1:], name, limit - len(contents[0]))
    starts, offset = [], 0
    for frame, content in zip(frames, contents, strict=True):
        starts.append((frame.start, offset))
        offset += len(content)
    if torn_frame is not None:
        contents.append(open_torn_frame(data, torn_frame, name, limit - offset))
    text = b"".join(contents)
    if text[offset - 1] != 0x0A:
        raise LogRejected(name, None, "frame", "the last whole frame ends within a line")
    return _Text(header, text, len(contents[0]), offset, starts, torn_frame)
