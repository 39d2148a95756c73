"""Secrets are taken out of everything that leaves a run: log lines, details, names, transcripts, artifacts.

What is masked is each secret's value, whole: as it stands, as JSON writes it, also where that JSON is a text in other
JSON, and in base64, hexadecimal and percent-encoding; a secret of several lines is also masked line by line. In base64
it is found wherever it begins in what was encoded; up to four bits at either end then belong to its neighbours and
stay. In a transcript the mask is as long as the secret, so that a file keeps its offsets and stays JSON.
"""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar
from urllib.parse import quote, quote_plus

import zstandard

__all__ = ["SHORTEST", "Mask"]

SHORTEST: Final = 6
"""A shorter value is no secret that could be told from text; it is refused before a run."""
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_JSON_LEVELS: Final = 3
"""A tool's arguments are JSON in a text of a transcript's JSON, and a model may quote them in arguments again."""
_SAFE: Final = ("", "/", "!'()*", ":/?#[]@!$&'()*+,;=")
"""What percent-encoders leave as it is: all of RFC 3986, paths, JavaScript's encodeURIComponent, whole addresses."""
_BASE64_LINE: Final = 76
_HEX_LINE: Final = 60
_TOLD: Final = 4
"""So many characters of a secret's beginning say something of it."""

Text = TypeVar("Text", str, bytes)


class Mask:
    """Takes the given secrets out of text and bytes."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets for form in _forms(secret) if len(form) >= SHORTEST}
        self._text = sorted(forms)
        self._bytes = [form.encode() for form in self._text]

    def text(self, text: str) -> str:
        """``text`` with each secret replaced by ``***``."""
        parts, done = [], 0
        for start, end in _found(text, self._text):
            parts += [text[done:start], "***"]
            done = end
        return "".join([*parts, text[done:]])

    def file(self, data: bytes) -> bytes:
        """A file with each secret replaced by as many ``*``; also inside of Zstandard frames."""
        return self._frames(data) if data.startswith(_ZSTD_MAGIC) else self._plain(data)

    def begun(self, data: bytes) -> int:
        """So many bytes at the end of what was cut begin a secret: they are to be cut too, for whatever is less than a
        secret is not masked."""
        return max((_begun(data, form) for form in self._bytes), default=0)

    def _plain(self, data: bytes) -> bytes:
        found = _found(data, self._bytes)
        if not found:
            return data
        masked = bytearray(data)
        for start, end in found:
            masked[start:end] = b"*" * (end - start)
        return bytes(masked)

    def _frames(self, data: bytes) -> bytes:
        """Frame by frame, so that a frame without secrets keeps its bytes and an open tail stays what it is."""
        masked, rest = io.BytesIO(), data
        while rest:
            reader = zstandard.ZstdDecompressor().decompressobj()
            try:
                content = reader.decompress(rest)
            except zstandard.ZstdError:
                break
            clean = self._plain(content)
            if not reader.eof:
                # An open tail holds what could be read of it; a secret in it has to go too.
                if clean is not content:
                    rest = b""
                break
            size = len(rest) - len(reader.unused_data)
            masked.write(rest[:size] if clean is content else zstandard.ZstdCompressor().compress(clean))
            rest = rest[size:]
        return masked.getvalue() + self._plain(rest)


def _found(data: Text, forms: list[Text]) -> list[tuple[int, int]]:
    """Where the forms are, in order; forms that overlap are one place. A search for each is faster than one for all."""
    places = sorted(place for form in forms for place in _places(data, form))
    merged: list[tuple[int, int]] = []
    for start, end in places:
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _places(data: Text, form: Text) -> Iterator[tuple[int, int]]:
    at = data.find(form)
    while at >= 0:
        yield at, at + len(form)
        at = data.find(form, at + len(form))


def _begun(data: bytes, form: bytes) -> int:
    lengths = range(min(len(form) - 1, len(data)), _TOLD - 1, -1)
    return next((length for length in lengths if data.endswith(form[:length])), 0)


def _forms(secret: str) -> Iterator[str]:
    for form in (secret, secret.strip(), *(line.strip() for line in secret.splitlines())):
        yield from _as_json(form)
    for form in (secret, secret.strip()):
        yield from _as_base64(form.encode())
        yield from _lines(form.encode().hex(), _HEX_LINE)
        yield from _lines(form.encode().hex().upper(), _HEX_LINE)
        for safe in _SAFE:
            for encoded in (quote(form, safe=safe), quote_plus(form, safe=safe)):
                yield encoded
                yield re.sub("%[0-9A-F]{2}", lambda escape: escape[0].lower(), encoded)


def _as_json(form: str) -> Iterator[str]:
    """As it stands, and as JSON writes it: with characters as they are, or escaped to ASCII."""
    forms = {form}
    for _ in range(_JSON_LEVELS + 1):
        yield from forms
        forms = {json.dumps(each, ensure_ascii=ascii_only)[1:-1] for each in forms for ascii_only in (True, False)}


def _as_base64(secret: bytes) -> Iterator[str]:
    """What is the secret's alone in the base64 of something that holds it, for each place where it can begin: followed
    by something, and at the end; in lines where it is what the lines begin with."""
    yield from _lines(base64.b64encode(secret).decode(), _BASE64_LINE)
    for before, shared in ((0, 0), (1, 2), (2, 3)):
        held = bytes(before) + secret
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            encoded = encode(held).decode()
            yield encoded[shared:]
            yield encoded[shared:].rstrip("=")
            yield encoded[shared : len(held) * 8 // 6]


def _lines(encoded: str, width: int) -> Iterator[str]:
    yield encoded
    yield from (encoded[at : at + width] for at in range(0, len(encoded), width))
