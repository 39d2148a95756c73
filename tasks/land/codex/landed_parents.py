"""A thread that is not in the source any more, or never was, as the parent that its landed records tell.

A record does not hold its line, only what was read of it. But whoever reads a copy from its beginning as the parent's
own lines comes to the same records, but for their places, ids and times; so these are what is compared. A line that the
parent has copied itself landed as it stands, and is compared so.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Raw

from schemas import lenient_json
from schemas.errors import RejectedData, StoreError
from schemas.session_data import Part, Record, read_session_data
from storage.zone import Zone
from tasks.land.codex.convert import Reading, ThreadReader
from tasks.land.codex.parents import TASK_STARTED, IsCopyOf, Parent, ParentLine, is_asked, seconds
from tasks.land.codex.replay import EVERY_LINE
from tasks.land.codex.rows import Row, read_row
from tasks.land.source import Line

__all__ = ["landed_parent"]

_COPIES = 2
"""The number that lines have which were copied."""


def landed_parent(zone: Zone, session: str, place: str, prefix: str, thread: str) -> Parent | None:
    """The thread as it has landed in the session's stream `place`, in the files with this prefix; None when they do not
    read."""
    try:
        records = list(_records(zone, session, place, prefix))
    except (RejectedData, StoreError):
        return None
    turns: set[str] = set()
    lines = []
    for record in records:
        if not _is_damaged(record):
            turns |= _started(record)
            lines.append(_line_of(record))
    has_copies = any(line.is_copied for line in lines)
    length = records[-1].ord if records else 0
    return Parent(frozenset(turns), tuple(lines), length, lambda: _by_record(thread, has_copies)) if lines else None


def _records(zone: Zone, session: str, place: str, prefix: str) -> Iterator[Record]:
    refs = (ref for ref in zone.landed_files(session) if ref.folder == "streams" and ref.place == place)
    for ref in refs:
        if ref.prefix == prefix:
            yield from read_session_data(zone.read(ref), name=ref.key).records


def _by_record(thread: str, has_copies: bool) -> IsCopyOf:
    """Reads lines as the parent's, each as one that it copied itself or as one of its own, as the line is that it is
    held against. They are numbered as if all copies were one, for that number is in no print."""
    own = ThreadReader(thread, reading=Reading(copied=_COPIES) if has_copies else Reading())
    copies = ThreadReader(thread, reading=Reading(copied=EVERY_LINE))
    number, as_own, as_copy = 0, (0, b""), (0, b"")

    def is_copy_of(line: Line, row: Row, other: ParentLine) -> bool:
        nonlocal number, as_own, as_copy
        if other.is_copied:
            told = Line(_COPIES, line.off, line.body)
            if as_copy[0] != line.ord:
                as_copy = line.ord, _print(copies.convert(told).record)
            if as_copy[1] != other.print:
                return False
            own.convert(told)  # its counters go on from what was copied
            return True
        if as_own[0] != line.ord:
            number = max(number + 1, _COPIES + 1 if has_copies and number else 1)
            told = Line(number, line.off, line.body)
            if number == 1:
                copies.convert(told)
            as_own = line.ord, _print(own.convert(told).record)
        return as_own[1] == other.print

    return is_copy_of


def _line_of(record: Record) -> ParentLine:
    is_copied = record.ord > 1 and not record.id
    if is_copied:
        row = _row(record)
        asked = row is not None and is_asked(row)
    else:
        asked = record.from_ == "external" or "injected" in record.flags or record.ord == 1
    return ParentLine(_print(record), seconds(record.time), not asked, is_copied)


def _is_damaged(record: Record) -> bool:
    """Whether the line did not decode, or was too long: it was not copied, or counts in no copy."""
    return any(part.k == "unknown" for part in record.parts) and not record.id


def _row(record: Record) -> Row | None:
    """The line of a record that holds it as it stands."""
    for part in record.parts:
        if part.k == "data" and isinstance(part.data, Raw):
            return read_row(bytes(part.data), first=False)
    return None


def _started(record: Record) -> set[str]:
    found = set()
    for part in record.parts:
        line = _line(part)
        payload = line.get("payload")
        if line.get("type") == "event_msg" and isinstance(payload, dict) and payload.get("type") in TASK_STARTED:
            found.add(str(payload.get("turn_id") or ""))
    return found


def _print(record: Record) -> bytes:
    told = [record.from_, record.trigger, record.child, record.tool, [_kept(part) for part in record.parts]]
    return sha256(msgspec.json.encode(told, order="deterministic")).digest()[:16]


def _kept(part: Part) -> Any:
    """A part as a copy has it: of a line that stands in it all but its time, its number and an id of its own."""
    line = _line(part)
    payload = line.get("payload")
    if not isinstance(payload, dict):
        told = bytes(part.text) if isinstance(part.text, Raw) else b""
        data = line or (bytes(part.data) if isinstance(part.data, Raw) else b"")
        return [part.k, told, data, part.id, part.of, part.name, part.failed]
    is_meta = line.get("type") == "session_meta"
    return [line.get("type"), {key: value for key, value in payload.items() if key != "id" or is_meta}]


def _line(part: Part) -> dict[str, Any]:
    if part.k != "data" or not isinstance(part.data, Raw):
        return {}
    try:
        value = lenient_json.decode_value(bytes(part.data))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
