"""Keys: which texts may name an object, and how an id from the data becomes part of one.

A key is a relative path of segments joined by ``/``, the same on every store. What one store would fold or reinterpret
is refused for all: ``a//b`` (SeaweedFS keeps it as ``a/b``), ``.`` and ``..``, a backslash (a separator elsewhere),
control characters and text that is not UTF-8. A prefix is a key that ends with ``/``, or the empty text for the root.
"""

from __future__ import annotations

import re

from schemas.errors import KeyRefused

__all__ = ["check_key", "check_prefix", "escape_id", "is_temporary", "unescape_id"]

TEMPORARY = ".tmp-"
MAX_KEY_BYTES = 1024  # S3
MAX_SEGMENT_BYTES = 255  # file systems
EMPTY_ID = "%"

_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\\]")
_ORDINARY = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~+=,@: ")
_ESCAPED = re.compile(r"%([0-9A-F]{2})")


def check_key(key: str) -> str:
    """`key` itself when it may name an object; raises `KeyRefused` otherwise."""
    if not key:
        raise KeyRefused(key, "it is empty")
    if forbidden := _FORBIDDEN.search(key):
        raise KeyRefused(key, f"it holds the character {forbidden[0]!r}")
    try:
        encoded = key.encode()
    except UnicodeEncodeError:
        raise KeyRefused(key, "it is not UTF-8 text") from None
    if len(encoded) > MAX_KEY_BYTES:
        raise KeyRefused(key, f"it is longer than {MAX_KEY_BYTES} bytes")
    for segment in encoded.split(b"/"):
        if segment in (b"", b".", b".."):
            raise KeyRefused(key, "it is absolute, ends with a slash, or has an empty, '.' or '..' segment")
        if len(segment) > MAX_SEGMENT_BYTES:
            raise KeyRefused(key, f"a segment of it is longer than {MAX_SEGMENT_BYTES} bytes")
    return key


def check_prefix(prefix: str) -> str:
    """`prefix` itself when it is empty or a key followed by one slash; raises `KeyRefused` otherwise."""
    if prefix:
        if not prefix.endswith("/"):
            raise KeyRefused(prefix, "a prefix ends with a slash")
        check_key(prefix[:-1])
    return prefix


def is_temporary(name: str) -> bool:
    """Whether a file or folder of this name is somebody's unfinished write (spec 2), which no listing shows."""
    return name.startswith(TEMPORARY)


def escape_id(text: str) -> str:
    """An id from the data as one path segment: itself when ordinary, otherwise with ``%XX`` for each unusual byte.

    Escaped are everything but ASCII letters, digits and ``-_.~+=,@:`` and space, a leading ``.`` (hidden and temporary
    names), a leading ``_`` (the zone's own folders) and a space at either end. The empty id is ``%``. `unescape_id`
    gives the id back.
    """
    if not text:
        return EMPTY_ID
    data = text.encode("utf-8", "surrogatepass")
    last = len(data) - 1
    return "".join(
        chr(byte) if byte in _ORDINARY and not _unsafe_there(byte, place, last) else f"%{byte:02X}"
        for place, byte in enumerate(data)
    )


def unescape_id(segment: str) -> str:
    """The id that `escape_id` wrote as `segment`; raises `KeyRefused` for a segment it never writes."""
    if segment == EMPTY_ID:
        return ""
    try:
        data = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), segment).encode("latin-1")
        text = data.decode("utf-8", "surrogatepass")
    except ValueError:
        raise KeyRefused(segment, "it is not an escaped id") from None
    if escape_id(text) != segment:
        raise KeyRefused(segment, "it is not an escaped id")
    return text


def _unsafe_there(byte: int, place: int, last: int) -> bool:
    return (place == 0 and byte in b"._ ") or (place == last and byte == 0x20)
