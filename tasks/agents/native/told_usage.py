"""What a provider says that a request used, looked at before a client library reads it.

A server may leave it out, or say what cannot be; what was used is unknown then, and the answer stands all the same. The
libraries fail on some of this and invent counts for the rest, so it is taken out of the stream: a Chat Completions
chunk loses its ``usage``, and that of a Messages answer becomes all zeros, which means the same to us.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from msgspec import DecodeError, json

from schemas.agent_run import is_count

__all__ = ["believed"]

_NOTHING: Final = {
    "input_tokens": 0,
    "output_tokens": 0,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
}


async def believed(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A stream of server-sent events, line by line, with counts that cannot be taken out of it."""
    answer, kept = _Answer(), bytearray()
    async for data in stream:
        kept += data
        if b"\n" in data:
            *lines, rest = kept.split(b"\n")
            kept = rest
            for line in lines:
                yield answer.line(bytes(line)) + b"\n"
    if kept:
        yield answer.line(bytes(kept))


class _Answer:
    """What one answer has said of its usage so far."""

    def __init__(self) -> None:
        self._told: set[str] = set()
        self._wrong = False

    def line(self, line: bytes) -> bytes:
        field, _, data = line.partition(b":")
        if field != b"data" or (b'"usage"' not in data and b'"message_' not in data):
            return line
        try:
            event = json.decode(data)
        except (DecodeError, UnicodeDecodeError, RecursionError):
            return line
        return b"data: " + json.encode(event) if isinstance(event, dict) and self._mended(event) else line

    def _mended(self, event: dict[str, Any]) -> bool:
        if event.get("type") == "message_start" and isinstance(event.get("message"), dict):
            return self._take(event["message"], frozenset())
        if event.get("type") == "message_delta":
            return self._take(event, frozenset({"input_tokens", "output_tokens"}))
        if event.get("usage") is not None and not _may_be(event["usage"]):
            event["usage"] = None
            return True
        return False

    def _take(self, holder: dict[str, Any], needed: frozenset[str]) -> bool:
        """Counts are cumulative: the last event needs what was told by it or before, its output by itself."""
        usage = holder.get("usage")
        if usage is not None:
            self._wrong |= not _may_be(usage)
        said = {name for name, value in usage.items() if value is not None} if isinstance(usage, dict) else set()
        self._told |= said
        if usage is not None and not self._wrong and needed <= self._told and (not needed or "output_tokens" in said):
            return False
        holder["usage"] = dict(_NOTHING)
        return True


def _may_be(usage: object) -> bool:
    return isinstance(usage, dict) and _counts(usage)


def _counts(value: object) -> bool:
    """Whether every field that is named as a number of tokens, at any depth, holds one, or null."""
    if isinstance(value, list):
        return all(map(_counts, value))
    if not isinstance(value, dict):
        return True
    return all(
        each is None or is_count(each) if name.endswith("_tokens") else _counts(each) for name, each in value.items()
    )
