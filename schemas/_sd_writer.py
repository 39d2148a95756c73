"""Writing a landed file, in the form of release 0.5 (specification, sections 1.1 and 3)."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import msgspec
from msgspec import UNSET, Raw

from schemas import lenient_json
from schemas._formats import encode
from schemas._sd_model import Part, Record, SessionDataHeader
from schemas.lenient_json import UndecodableJSON

_SEPARATORS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"))


def write_session_data(header: SessionDataHeader, records: Iterable[Record]) -> bytes:
    """A landed file's bytes, end line included.

    ``<``, ``>`` and ``&`` stay raw; a part's data keeps its tokens byte for byte and loses only the space between them.
    Raises UndecodableJSON for a text that is no JSON string or data that is no JSON value.
    """
    lines = [_escape_separators(encode(header))]
    lines.extend(map(encode_record, records))
    lines.append(b"")
    content = b"\n".join(lines)
    digest = sha256(content).hexdigest().encode()
    return content + b'{"t":"end","records":%d,"digest":"%b"}\n' % (len(lines) - 2, digest)


def encode_text(text: str) -> Raw:
    """``text`` as the JSON string a `Part.text` holds."""
    return Raw(_escape_separators(encode(text)))


def encode_record(record: Record) -> bytes:
    """One record's line, without its newline."""
    if any(part.text is not UNSET or part.data is not UNSET for part in record.parts):
        record = msgspec.structs.replace(record, parts=tuple(map(_canonical, record.parts)))
    line = encode(record)
    if b"\xe2\x80" not in line:
        return line
    # Strings escape U+2028 and U+2029, data keeps them. Data stands in the line as it is in the part, after a key that
    # no string can hold unescaped, so walking the parts in order finds each piece of data at its first occurrence.
    pieces: list[bytes] = []
    position = 0
    for part in record.parts:
        if part.data is not UNSET:
            data = bytes(part.data)
            start = line.index(b'"data":' + data, position) + len(b'"data":')
            pieces += (_escape_separators(line[position:start]), data)
            position = start + len(data)
    pieces.append(_escape_separators(line[position:]))
    return b"".join(pieces)


def _canonical(part: Part) -> Part:
    text = part.text
    if text is not UNSET:
        literal = bytes(text)
        if not literal.startswith(b'"'):
            raise UndecodableJSON(f"a part's text is no JSON string: {literal[:20]!r}")
        lenient_json.check(literal)
        string = lenient_json.decode_string(literal)
        text = encode_text(string) if string else UNSET
    data = part.data
    if data is not UNSET:
        value = bytes(data)
        lenient_json.check(value)
        data = Raw(lenient_json.compact(value))
    return msgspec.structs.replace(part, text=text, data=data)


def _escape_separators(encoded: bytes) -> bytes:
    for raw, escaped in _SEPARATORS:
        encoded = encoded.replace(raw, escaped)
    return encoded
