"""Files that are called lines of JSON and are one JSON document instead, written over many lines for people to read.

Each of its lines would be nothing that anybody could understand, so such a file is refused as a whole.
"""

from __future__ import annotations

from schemas.lenient_json import UndecodableJSON, check

__all__ = ["LOOKED_AT", "may_be_one_document", "why_no_lines"]

LOOKED_AT = 1 << 16
"""Bytes from a file's beginning that tell."""

_OPENINGS = (b"{", b"[", b"[{")
_BOM = b"\xef\xbb\xbf"


def may_be_one_document(start: bytes) -> bool:
    """Whether the first line looks as if a document began there; cheap, for every file."""
    return _first(start)[0] in _OPENINGS


def why_no_lines(start: bytes) -> str | None:
    """Why a file that starts so is not read line by line; None when it is. A bracket alone on the first line opens a
    document, unless a whole value stands on the next: then it is the rest of a line that was cut."""
    first, rest = _first(start)
    second = next((line for line in rest.split(b"\n") if line.strip()), b"")
    if first not in _OPENINGS or _is_value(second):
        return None
    return "it is one JSON document over several lines, not one value a line; write each record on a line of its own"


def _first(start: bytes) -> tuple[bytes, bytes]:
    """The first line that is not blank, without what is around it, and the rest."""
    line, _, rest = start.removeprefix(_BOM).lstrip().partition(b"\n")
    return line.strip(), rest


def _is_value(line: bytes) -> bool:
    try:
        check(line)
    except UndecodableJSON:
        return False
    return True
