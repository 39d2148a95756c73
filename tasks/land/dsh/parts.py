"""What an event holds as parts of a record (DSH version 4, sections 5 and 12)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from schemas._dsh_json import write_value
from schemas.lenient_json import UndecodableJSON, check
from schemas.session_data import Dropped, Part, encode_text

__all__ = ["block_parts", "data_part", "dropped", "encoded", "line_part", "plain", "result_part", "text_part"]

AVAILABLE = "available"
UNAVAILABLE = "unavailable"


def json_text(text: str) -> Raw:
    """`text` as a JSON string; a surrogate without its partner, which is no text, becomes U+FFFD."""
    try:
        return encode_text(text)
    except UnicodeEncodeError:
        return encode_text(_without_surrogates(text))


def size_of(text: str) -> int:
    return len(text.encode("utf-8", "replace")) if text.isascii() else len(_without_surrogates(text).encode())


def encoded(value: Any) -> bytes:
    """`value` as JSON."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, RecursionError):
        return write_value(value)


def text_part(text: str, *, kind: str = "text") -> Part:
    return Part(k=kind, text=json_text(text), state=AVAILABLE, bytes=size_of(text))


def data_part(value: Any) -> Part:
    """A JSON value that was decoded."""
    return line_part(encoded(value))


def line_part(value: bytes) -> Part:
    """A JSON value as it stands."""
    return Part(k="data", data=Raw(value), state=AVAILABLE, bytes=len(value))


def dropped(what: str, value: Any, why: str) -> Dropped:
    """What of an event does not land, with its size as JSON."""
    return Dropped(what=what, bytes=len(encoded(value)), why=why)


def block_parts(blocks: Iterable[Any], tools: Mapping[int, str]) -> list[Part]:
    """One part for each content block; `tools` are the tool ids of the blocks that call tools, by their place."""
    return [_block_part(block, tools.get(place)) for place, block in enumerate(blocks)]


def result_part(of: str, content: Any, failed: bool | None, *, state: str, more: Mapping[str, Any]) -> list[Part]:
    """A tool's result with its text, and after it what it gave that is no text; `more` is what the log says besides."""
    blocks = content if isinstance(content, list) else []
    text = "\n".join(block["text"] for block in blocks if _is(block, "text"))
    data = Raw(encoded(more)) if more else UNSET
    part = Part(k="result", of=of, text=json_text(text), data=data, failed=failed, state=state, bytes=size_of(text))
    return [part, *(_block_part(block, None) for block in blocks if not _is(block, "text"))]


def _block_part(block: Any, tool: str | None) -> Part:
    if _is(block, "text"):
        return text_part(block["text"])
    if _is(block, "reasoning"):
        return text_part(block["text"], kind="reasoning")
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "tool-call" and tool is not None:
        given = _arguments(block.get("arguments"))
        name = block.get("name")
        return Part(
            k="call",
            id=tool,
            name=plain(name) if isinstance(name, str) else "",
            data=UNSET if given is None else Raw(given),
            state=AVAILABLE,
            bytes=len(given or b""),
        )
    if kind == "image" and isinstance(attachment := block.get("attachment"), dict):
        media, size = attachment.get("mediaType"), attachment.get("bytes")
        return Part(
            k="media",
            data=Raw(encoded(attachment)),
            media=plain(media) if isinstance(media, str) else "",
            state=UNAVAILABLE,
            bytes=size if type(size) is int and size >= 0 else 0,
        )
    return data_part(block)


def _arguments(given: Any) -> bytes | None:
    """What a tool was called with: JSON as it stands when it is, else as a JSON string."""
    if given is None:
        return None
    if not isinstance(given, str):
        return encoded(given)
    try:
        data = given.encode()
        check(data)
    except (UndecodableJSON, UnicodeEncodeError):
        return bytes(json_text(given))
    return data


def _is(block: Any, kind: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind and isinstance(block.get("text"), str)


def plain(text: str) -> str:
    """`text` as text: a surrogate without its partner becomes U+FFFD."""
    return text if text.isascii() else _without_surrogates(text)


def _without_surrogates(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
