"""Secrets are taken out of everything that leaves a run: log lines, details, transcripts, artifacts.

What is masked is each secret's value as it stands and as JSON writes it, whole; a secret of several lines is also
masked line by line. In a transcript the mask is as long as the secret, so that a file keeps its offsets and stays JSON.
"""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

import zstandard

__all__ = ["SHORTEST", "Mask"]

SHORTEST: Final = 6
"""A shorter value is no secret that could be told from text; it is refused before a run."""
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"


class Mask:
    """Takes the given secrets out of text and bytes."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets for form in _forms(secret) if len(form) >= SHORTEST}
        # The longest first: a secret may hold another.
        longest = sorted(forms, key=lambda form: (-len(form), form))
        self._text = re.compile("|".join(map(re.escape, longest))) if forms else None
        self._bytes = re.compile(b"|".join(re.escape(form.encode()) for form in longest)) if forms else None

    def text(self, text: str) -> str:
        """``text`` with each secret replaced by ``***``."""
        return text if self._text is None else self._text.sub("***", text)

    def file(self, data: bytes) -> bytes:
        """A file with each secret replaced by as many ``*``; also inside of Zstandard frames."""
        if self._bytes is None:
            return data
        if data.startswith(_ZSTD_MAGIC):
            return self._frames(data)
        return self._plain(data)

    def _plain(self, data: bytes) -> bytes:
        assert self._bytes is not None
        return self._bytes.sub(lambda found: b"*" * len(found[0]), data)

    def _frames(self, data: bytes) -> bytes:
        """Frame by frame, so that a frame without secrets keeps its bytes and an open tail stays what it is."""
        assert self._bytes is not None
        masked, rest = io.BytesIO(), data
        while rest:
            reader = zstandard.ZstdDecompressor().decompressobj()
            try:
                content = reader.decompress(rest)
            except zstandard.ZstdError:
                break
            if not reader.eof:
                # An open tail holds what could be read of it; a secret in it has to go too.
                if self._bytes.search(content) is not None:
                    rest = b""
                break
            size = len(rest) - len(reader.unused_data)
            if self._bytes.search(content) is None:
                masked.write(rest[:size])
            else:
                masked.write(zstandard.ZstdCompressor().compress(self._plain(content)))
            rest = rest[size:]
        return masked.getvalue() + self._plain(rest)


def _forms(secret: str) -> list[str]:
    forms = [secret, *(line.strip() for line in secret.splitlines())]
    quoted = [json.dumps(form)[1:-1] for form in forms]
    encoded = [quote(secret, safe=""), base64.b64encode(secret.encode()).decode()]
    return [*forms, *quoted, *encoded]
