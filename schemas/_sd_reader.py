"""Reading a landed file (specification, section 3).

Nearly every line is as short as its content allows, and that is what makes reading fast without being loose: all
records are decoded, encoded again in one go, and the total length compared, which is `LineDecoder`'s proof for every
line at once (the encoder never writes more than the shortest form, so one line cannot make up for another). Only when
that fails is each line looked at by itself.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec

from schemas import lenient_json
from schemas._formats import NOT_TYPED, UNSIGNED_MAX, LineDecoder, encode, encode_lines
from schemas._sd_model import SCHEMA, EndLine, LandedFile, Record, SessionDataHeader
from schemas.errors import SessionDataRejected
from schemas.lenient_json import UndecodableJSON

END_LINE_START = b'{"t":"end'
"""A line is the end line when it starts with these nine bytes, whatever follows them."""

_QUOTE = ord('"')

_decode_record = msgspec.json.Decoder(Record).decode
_read_header_line = LineDecoder(SessionDataHeader)
_read_end_line = LineDecoder(EndLine)


def read_session_data(data: bytes, *, name: str) -> LandedFile:
    """The landed file in ``data``; ``name`` is what errors call it.

    Raises SessionDataRejected with the rule broken first in file order: no_header, undecodable, envelope, schema,
    header_field, digest, record_count or no_end. Nothing after the end line is read.
    """
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    if not lines:
        raise SessionDataRejected(name, None, "no_header", "the file is empty")
    header = _read_header(lines[0], name)
    end_row = _end_row(lines)
    if end_row is None:
        _read_records(lines[1:], name)
        raise SessionDataRejected(name, None, "no_end", "the file has no end line; it was cut short")
    records = _read_records(lines[1:end_row], name)
    end_offset = len(data) if end_row == 0 else sum(map(len, lines[:end_row])) + end_row
    content = memoryview(data)
    hashed = sha256(content[:end_offset])
    _check_end(lines[end_row], hashed.hexdigest(), len(records), name)
    hashed.update(content[end_offset:])
    return LandedFile(name, header, records, hashed.hexdigest(), len(data))


def _end_row(lines: list[bytes]) -> int | None:
    for row, line in enumerate(lines):
        if row and line.startswith(END_LINE_START):
            return row
    return None


def _read_header(line: bytes, name: str) -> SessionDataHeader:
    try:
        header = _read_header_line(line)
    except UndecodableJSON as error:
        raise SessionDataRejected(name, None, "undecodable", f"the header does not decode: {error}") from None
    if header.h != 1:
        raise SessionDataRejected(name, None, "envelope", f"envelope version {header.h}, this reader knows 1")
    if header.schema != SCHEMA:
        raise SessionDataRejected(name, None, "schema", f"schema {header.schema!r}, this reader knows {SCHEMA!r}")
    for field in ("kind", "session", "src", "dialect"):
        if not getattr(header, field):
            raise SessionDataRejected(name, None, "header_field", f"the header has no {field}")
    return header


def _read_records(lines: list[bytes], name: str) -> list[Record]:
    try:
        records = list(map(_decode_record, lines))
    except NOT_TYPED:
        records = []
    if len(records) == len(lines):
        length = sum(map(len, lines)) + len(lines)
        if len(encode_lines(records)) == length and all(map(_is_exact, records)):
            return records
    return [_read_record(line, row, name) for row, line in enumerate(lines, 1)]


def _is_exact(record: Record) -> bool:
    """Whether the two rules hold that the typed decoder cannot check: unsigned numbers below 2^64, texts that are
    strings.
    """
    if record.ord > UNSIGNED_MAX or record.off > UNSIGNED_MAX:
        return False
    for part in record.parts:
        text = part.text
        if text is not msgspec.UNSET and memoryview(text)[0] != _QUOTE:
            return False
    return True


def _read_record(line: bytes, row: int, name: str) -> Record:
    try:
        record = _decode_record(line)
        if len(encode(record)) == len(line) and _is_exact(record):
            return record
    except NOT_TYPED:
        pass
    try:
        return lenient_json.decode(line, Record)
    except UndecodableJSON as error:
        raise SessionDataRejected(name, row, "undecodable", f"the record does not decode: {error}") from None


def _check_end(line: bytes, digest: str, count: int, name: str) -> None:
    try:
        end = _read_end_line(line)
    except UndecodableJSON as error:
        raise SessionDataRejected(name, None, "undecodable", f"the end line does not decode: {error}") from None
    if end.digest != digest:
        claimed = end.digest[:12]
        raise SessionDataRejected(
            name, None, "digest", f"the content has digest {digest[:12]}, the end line {claimed!r}"
        )
    if end.records != count:
        raise SessionDataRejected(name, None, "record_count", f"{count} records, the end line says {end.records}")
