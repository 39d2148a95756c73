"""Writing a landed file, in the form of release 0.5 (specification, sections 1.1 and 3)."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import msgspec
from msgspec import UNSET, Raw

from schemas import lenient_json
from schemas._formats import encode
from schemas._sd_model import Part, Record, SessionDataHeader

_SEPARATORS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"))


def write_session_data(header: SessionDataHeader, records: Iterable[Record]) -> bytes:
    """A landed file's bytes, end line included.

    ``<``, ``>`` and ``&`` stay raw; a part's data keeps its tokens byte for byte and loses only the space between them.
    Raises UndecodableJSON for a text that is no JSON string or data that is no JSON value.
    """
    return write_and_digest(header, records)[0]


def write_and_digest(header: SessionDataHeader, records: Iterable[Record]) -> tuple[bytes, str]:
    """`write_session_data`, and the hex SHA-256 of the whole file, for which the end line's is carried on."""
    lines = [_escape_separators(encode(header))]
    lines.extend(map(encode_record, records))
    lines.append(b"")
    content = b"\n".join(lines)
    digest = sha256(content)
    end = b'{"t":"end","records":%d,"digest":"%b"}\n' % (len(lines) - 2, digest.hexdigest().encode())
    digest.update(end)
    return content + end, digest.hexdigest()


def encode_text(text: str) -> Raw:
    """``text`` as the JSON string a `Part.text` holds."""
    return Raw(_escape_separators(encode(text)))


def encode_texts(texts: list[str]) -> Raw:
    """``texts`` as a JSON list of strings, each as `encode_text` writes it."""
    return Raw(_escape_separators(encode(texts)))


def text_size(text: str) -> int:
    """Bytes of ``text`` in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def encode_record(record: Record) -> bytes:
    """One record's line, without its newline."""
    parts = tuple(map(_canonical, record.parts))
    if any(new is not old for new, old in zip(parts, record.parts, strict=True)):
        record = msgspec.structs.replace(record, parts=parts)
    line = encode(record)
    if line.isascii() or not any(raw in line for raw, _ in _SEPARATORS):
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
    text, data = part.text, part.data
    if text is not UNSET:
        string = lenient_json.decode_string_checked(bytes(text))
        text = encode_text(string) if string else UNSET
    if data is not UNSET:
        data = Raw(lenient_json.compact_checked(bytes(data)))
    if text == part.text and data == part.data:
        return part
    return msgspec.structs.replace(part, text=text, data=data)


def _escape_separators(encoded: bytes) -> bytes:
    if encoded.isascii():  # told ten times as fast as the search is done
        return encoded
    for raw, escaped in _SEPARATORS:
        encoded = encoded.replace(raw, escaped)
    return encoded
