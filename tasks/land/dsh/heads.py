"""What a log's first line says of its session, without reading the rest."""

from __future__ import annotations

import re

import zstandard

from schemas._dsh_header import read_header
from schemas.dsh import LogHeader
from schemas.dsh_root import LogPlace
from schemas.errors import LogRejected

__all__ = ["HEAD_BYTES", "header_in", "id_of_directory"]

HEAD_BYTES = 1 << 16
_ESCAPED = re.compile("~([0-9A-F]{4})")


def header_in(head: bytes, place: LogPlace) -> LogHeader | None:
    """The header in the first `HEAD_BYTES` of a log; None where there is none that keeps the rules."""
    if place.compressed:
        try:
            with zstandard.ZstdDecompressor().stream_reader(head) as reader:
                head = reader.read(HEAD_BYTES)
        except zstandard.ZstdError:
            return None
    line, newline, _ = head.partition(b"\n")
    try:
        return read_header(line, place.generation, place.key) if newline else None
    except LogRejected:
        return None


def id_of_directory(name: str) -> str:
    """The session whose directory this is."""
    units = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), name)
    return units.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
