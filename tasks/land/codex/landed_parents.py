"""A thread that is not in the source any more, or never was, as the parent that its landed records tell.

A record does not hold its line, only what was read of it. But whoever reads a copy from its beginning as the parent's
own lines comes to the same records, but for their places, ids and times; so these are what is compared.
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
from tasks.land.codex.kinds import TRANSCRIPT
from tasks.land.codex.parents import TASK_STARTED, Parent, ParentLine, PrintOf, seconds
from tasks.land.codex.rows import Row
from tasks.land.source import Line

__all__ = ["landed_parent"]


def landed_parent(zone: Zone, session: str, place: str, thread: str) -> Parent | None:
    """The thread as it has landed in the session's stream `place`; None when its files do not read."""
    try:
        records = list(_records(zone, session, place))
    except (RejectedData, StoreError):
        return None
    turns: set[str] = set()
    lines: list[ParentLine] = []
    first_own = 0
    for record in records:
        if record.ord > 1 and record.id and not first_own:
            first_own = record.ord
        if _is_damaged(record):
            continue
        turns |= _started(record)
        asked = record.from_ == "external" or "injected" in record.flags or record.ord == 1
        lines.append(ParentLine(_print(record), seconds(record.time), not asked))
    copied = first_own - 1 if first_own else len(records)

    def begin() -> PrintOf:
        reader = ThreadReader(thread, reading=Reading(copied=copied) if copied > 1 else Reading())

        def print_of(line: Line, row: Row) -> bytes:
            return _print(reader.convert(Line(line.ord - 1, line.off, line.body)).record)

        return print_of

    return Parent(frozenset(turns), tuple(lines), begin) if lines else None


def _records(zone: Zone, session: str, place: str) -> Iterator[Record]:
    refs = (ref for ref in zone.landed_files(session) if ref.folder == "streams" and ref.place == place)
    for ref in refs:
        if ref.prefix == TRANSCRIPT:
            yield from read_session_data(zone.read(ref), name=ref.key).records


def _is_damaged(record: Record) -> bool:
    """Whether the line did not decode, or was too long: it was not copied, or counts in no copy."""
    return any(part.k == "unknown" for part in record.parts) and not record.id


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
