"""Sessions that the original keeps in SQLite: rows in, events out, and back (DSH specification, section 11).

Two schemas are in use. 13 has a row for each event, all values as JSON text. 17 packs chunks into rows, compresses long
values and writes cited events as differences. Either is generation 0, and torn rows are judged as torn lines are. Only
17 is written: 13 has no place for an event's ``ignorable`` and a header's ``agentPreset``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import zstandard
from msgspec import structs

from schemas._dsh_checked import checked_events
from schemas._dsh_chunks import ROW_TYPES, pack, unpack
from schemas._dsh_header import LogHeader, header_of
from schemas._dsh_json import MAX_SAFE, UndecodableJSON, read_value, write_value
from schemas._dsh_scan import Line, Scan
from schemas.dsh import MAX_LOG_BYTES, Event
from schemas.errors import LogRejected, LogUnsupported

__all__ = [
    "WRITTEN_SCHEMA",
    "EventRow",
    "SessionRow",
    "StoredRows",
    "header_of_row",
    "read_rows",
    "session_row",
    "write_rows",
]

WRITTEN_SCHEMA: Final = 17

_MEMBERS: Final = range(3, 1025)
_LARGEST_PACKED: Final = 1 << 20
_LEAST_COMPRESSED: Final = 4096


_COMPRESSOR: Final = zstandard.ZstdCompressor(level=3, write_checksum=False, write_content_size=True)


class SessionRow(NamedTuple):
    """A row of the table ``sessions``; schema 13 has no ``agent_preset``."""

    id: str
    version: int
    created_at: int
    cwd: str | None
    parent_session: str | None
    seed_length: int | None
    origin: str | None
    delegation_depth: int | None
    agent_preset: str | None


class EventRow(NamedTuple):
    """A row of the table ``events``, texts as their bytes; ``is_blob`` says that ``data`` is compressed."""

    seq: int
    type: bytes
    time: int
    is_blob: bool
    data: bytes
    source_event_seqs: bytes | None
    surface_op: bytes | None
    ignorable: int | None


@dataclass(frozen=True)
class StoredRows:
    """One session as it is stored. ``rows`` of them are good; ``torn`` says what is wrong with the next, if one is, and
    ``torn_seq`` is what that says of its number.
    """

    file: str
    header: LogHeader
    events: list[Event]
    rows: int
    torn: str | None
    torn_seq: int | None


class _BadRow(ValueError):
    """A row that is not what its columns promise."""


def read_rows(
    session: SessionRow, rows: Iterable[EventRow], *, schema: int, name: str, limit: int = MAX_LOG_BYTES
) -> StoredRows:
    """The session that these rows are, ``rows`` in the order of their numbers; ``schema`` is 13 or 17.

    Raises LogUnsupported, LogEventRejected or LogRejected as `schemas.dsh.read_log` does; rows count from 1.
    """
    header = header_of_row(session, name)
    found = Scan()
    left = limit
    torn_seq: int | None = None
    for number, row in enumerate(rows, 1):
        if found.fault is not None:
            if row.type == b"turn/end":
                raise LogRejected(name, number, "row", f"{found.fault}, and a turn ends after it")
            continue
        try:
            data = _decompressed(row.data, left) if row.is_blob else row.data
            left -= len(data)
            if left < 0:
                raise LogRejected(name, number, "too_large", f"more than {limit} bytes of events")
            held, finite = _events_in(row, data, schema)
            if held[0]["seq"] != len(found.events):
                raise _BadRow(f"the event's number is {held[0]['seq']}, expected was {len(found.events)}")
        except (_BadRow, UndecodableJSON) as error:
            found.fault, torn_seq = str(error), row.seq
            if row.type == b"turn/end":
                raise LogRejected(name, number, "row", found.fault) from None
            continue
        if not finite:
            found.not_finite.update(range(len(found.events), len(found.events) + len(held)))
        found.lines.append(Line(number - 1, number, len(found.events), len(held)))
        found.events.extend(held)
    events = checked_events(found, header, name, first_row=1)
    return StoredRows(name, header, events, len(found.lines), found.fault, torn_seq)


def session_row(header: LogHeader) -> SessionRow:
    """The header's row."""
    return SessionRow(
        header.id,
        header.version,
        header.created_at,
        header.cwd,
        header.parent_session,
        header.seed_length,
        header.origin,
        header.delegation_depth,
        header.agent_preset,
    )


def write_rows(batch: Sequence[Event], *, packed: bool = True) -> Iterator[EventRow]:
    """The rows of schema 17 that one append adds."""
    for event in _packed(batch) if packed else batch:
        is_row = event["type"] in ROW_TYPES
        data = write_value(event["data"])
        blob = _COMPRESSOR.compress(data) if len(data) >= _LEAST_COMPRESSED else data
        cited, placed = event.get("sourceEventSeqs"), event.get("surfaceOp")
        is_blob = len(blob) < len(data)
        yield EventRow(
            seq=int(event["seq0" if is_row else "seq"]),
            type=event["type"].encode(),
            time=int(event["time0" if is_row else "time"]),
            is_blob=is_blob,
            data=blob if is_blob else data,
            source_event_seqs=None if cited is None else _as_differences(cited),
            surface_op=None if placed is None else write_value(placed),
            ignorable=0 if is_row else (1 if "ignorable" in event else None),
        )


def _packed(batch: Sequence[Event]) -> Iterator[Event]:
    """The batch with runs of chunks as rows, none larger than a row may be."""
    for row in pack(batch, longest=_MEMBERS[-1]):
        if row["type"] in ROW_TYPES and len(write_value(row["data"])) > _LARGEST_PACKED:
            yield from unpack(row) or ()
        else:
            yield row


def header_of_row(session: SessionRow, name: str) -> LogHeader:
    """The header that a row says. Raises LogUnsupported (``version``) and LogRejected (``header``)."""
    if session.version != 0:
        raise LogUnsupported(name, None, "version", f"version {session.version} in a database, which holds version 0")
    value = {
        "id": session.id,
        "createdAt": session.created_at,
        "cwd": session.cwd,
        "parentSession": session.parent_session,
        "seedLength": session.seed_length,
        "origin": session.origin,
        "delegationDepth": session.delegation_depth or 0,
        "agentPreset": session.agent_preset,
    }
    header = header_of({key: each for key, each in value.items() if each is not None}, 0, name)
    return header if session.delegation_depth is not None else structs.replace(header, delegation_depth=None)


def _events_in(row: EventRow, data: bytes, schema: int) -> tuple[list[Event], bool]:
    """The events of one row, and whether all their numbers are sound."""
    kind = row.type.decode("utf-8", "replace")
    value, finite = read_value(data)
    if schema == 17 and row.ignorable == 0:
        if kind not in ROW_TYPES or row.source_event_seqs is not None or row.surface_op is not None:
            raise _BadRow(f"a packed row of {kind!r:.40}")
        members = unpack({"type": kind, "seq0": row.seq, "time0": row.time, "data": value})
        if members is None or len(members) not in _MEMBERS or len(data) > _LARGEST_PACKED:
            raise _BadRow(f"a malformed row of {kind}")
        return members, finite
    event: Event = {"type": kind, "seq": row.seq, "time": row.time, "data": value}
    if row.source_event_seqs is not None:
        if schema == 17:
            event["sourceEventSeqs"] = _differences(row.source_event_seqs)
        else:
            event["sourceEventSeqs"], cited_finite = read_value(row.source_event_seqs)
            finite = finite and cited_finite
    if row.surface_op is not None:
        event["surfaceOp"], placed_finite = read_value(row.surface_op)
        finite = finite and placed_finite
    if row.ignorable is not None:
        event["ignorable"] = True
    return [event], finite


def _differences(blob: bytes) -> list[int]:
    """The numbers in a row of LEB128 varints: the first as it is, each other as its zigzag difference from the last."""
    numbers: list[int] = []
    value = shift = 0
    for byte in blob:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte & 0x80:
            if shift > 56:
                raise _BadRow("a cited event's number is too long")
            continue
        if byte == 0 and shift > 7:
            raise _BadRow("a cited event's number is longer than it must be")
        if numbers:
            value = numbers[-1] + (value >> 1 if value & 1 == 0 else -(value + 1 >> 1))
        if not 0 <= value <= MAX_SAFE:
            raise _BadRow("a cited event's number is out of range")
        numbers.append(value)
        value = shift = 0
    if shift:
        raise _BadRow("the cited events are cut short")
    return numbers


def _as_differences(numbers: Sequence[int]) -> bytes:
    blob = bytearray()
    for earlier, later in pairwise([0, *map(int, numbers)]):
        difference = later - earlier
        value = later if not blob else (difference << 1 if difference >= 0 else (-difference << 1) - 1)
        while value > 0x7F:
            blob.append(value & 0x7F | 0x80)
            value >>= 7
        blob.append(value)
    return bytes(blob)


def _decompressed(blob: bytes, limit: int) -> bytes:
    """A value's one frame, up to one byte more than ``limit``."""
    try:
        with zstandard.ZstdDecompressor().stream_reader(blob) as reader:
            pieces = []
            size = 0
            while size <= limit and (piece := reader.read(min(limit + 1 - size, 1 << 20))):
                pieces.append(piece)
                size += len(piece)
        return b"".join(pieces)
    except zstandard.ZstdError as error:
        raise _BadRow(f"a compressed value is damaged: {error}") from None
