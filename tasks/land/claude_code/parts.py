"""A row's content as parts (Claude Code specification, section 4).

Source JSON that lands in a part's `data` keeps its tokens byte for byte; strings that are made here and put there are
escaped for HTML, as the original's encoder does.
"""

from __future__ import annotations

import base64

import msgspec
from msgspec import UNSET, Raw

from schemas.lenient_json import decode_string, elements, members
from schemas.session_data import Dropped, Part, encode_text, encode_texts, text_size
from tasks.land.claude_code.rows import Block, ToolResult, raw, try_decode

__all__ = ["attachment_part", "data_part", "html_safe", "html_safe_lines", "message_parts", "text_part", "unknown_part"]

AVAILABLE = "available"
_HTML = ((b"<", b"\\u003c"), (b">", b"\\u003e"), (b"&", b"\\u0026"))
_THINKING = {"thinking", "redacted_thinking"}
_CALLS = {"tool_use", "server_tool_use"}


def text_part(text: str) -> Part:
    return Part(k="text", text=encode_text(text), state=AVAILABLE, bytes=text_size(text))


def data_part(value: bytes) -> Part:
    """A JSON value as it stands, counted with the space around its tokens."""
    return Part(k="data", data=Raw(value), state=AVAILABLE, bytes=len(value))


def unknown_part(body: bytes, reason: str) -> Part:
    """Bytes that the dialect cannot read, kept as text, or in base64 when they are none."""
    try:
        data, encoding = html_safe(body.decode()), ""
    except UnicodeDecodeError:
        data, encoding = html_safe(base64.b64encode(body).decode()), "base64"
    return Part(k="unknown", text=encode_text(reason), data=data, encoding=encoding, state=AVAILABLE, bytes=len(body))


def html_safe(text: str) -> Raw:
    """`text` as a JSON string with `<`, `>` and `&` escaped."""
    return _escaped(bytes(encode_text(text)))


def html_safe_lines(lines: list[str]) -> Raw:
    """`lines` as a JSON list of strings, each as `html_safe` writes it."""
    return _escaped(bytes(encode_texts(lines)))


def _escaped(encoded: bytes) -> Raw:
    for character, escape in _HTML:
        encoded = encoded.replace(character, escape)
    return Raw(encoded)


def attachment_part(attachment: bytes | None) -> Part:
    """An attachment's text when it has one, else the attachment itself."""
    if attachment is None:
        return Part(k="data", state=AVAILABLE)
    if attachment.startswith(b"{"):
        named = dict(members(attachment))
        for key in ("text", "content"):
            value = named.get(key, b"null")
            if value != b"null" and not value.startswith(b'"'):
                break
            if value != b"null" and (text := decode_string(value)):
                return text_part(text)
    return data_part(attachment)


def message_parts(content: bytes, result: ToolResult | None, whole_result: bytes) -> tuple[list[Part], list[Dropped]]:
    """One part for each block of a message, and what was left out. A `result` that decoded replaces, as
    `whole_result`, what a tool's block says."""
    if content.startswith(b'"'):
        return [text_part(decode_string(content))], []
    if content == b"null":
        return [], []
    if not content.startswith(b"["):
        return [unknown_part(content, "the content is neither text nor a list of blocks")], []
    parts: list[Part] = []
    dropped: list[Dropped] = []
    enrichment = None if result is None else whole_result
    for element in elements(content):
        block = try_decode(element, Block)
        if block is None:
            parts.append(unknown_part(element, "the block is not an object"))
            continue
        parts.append(_block_part(block, element, enrichment))
        if block.type in _THINKING and block.signature:
            dropped.append(
                Dropped(
                    what="reasoning signature",
                    bytes=text_size(block.signature),
                    why="a provider verifies it; a reader cannot read it",
                )
            )
    return parts, dropped


def _block_part(block: Block, element: bytes, enrichment: bytes | None) -> Part:
    if block.type == "text":
        return text_part(block.text)
    if block.type in _THINKING:
        state = "redacted" if block.type == "redacted_thinking" else AVAILABLE if block.thinking else "unavailable"
        text = encode_text(block.thinking)
        return Part(k="reasoning", text=text, state=state, bytes=text_size(block.thinking))
    if block.type in _CALLS:
        given = raw(block.input)
        return Part(
            k="call",
            data=UNSET if given is None else Raw(given),
            id=block.id,
            name=block.name,
            state=AVAILABLE,
            bytes=len(given or b""),
        )
    if block.type == "tool_result":
        return _result_part(block, enrichment)
    if block.type == "image":
        data = block.source.data if block.source else ""
        media = block.source.media_type if block.source else ""
        return Part(k="media", data=html_safe(data), media=media, state=AVAILABLE, bytes=text_size(data))
    return unknown_part(element, f'block type "{block.type}" is not one this dialect describes')


def _result_part(block: Block, enrichment: bytes | None) -> Part:
    content = raw(block.content)
    text = _result_text(content)
    part = Part(
        k="result",
        text=encode_text(text),
        of=block.tool_use_id,
        failed=block.is_error,
        state=AVAILABLE,
        bytes=text_size(text) if text else len(content or b""),
    )
    data = enrichment if enrichment is not None else None if text else content
    return part if data is None else msgspec.structs.replace(part, data=Raw(data))


def _result_text(content: bytes | None) -> str:
    if content is None:
        return ""
    if content.startswith(b'"'):
        return decode_string(content)
    if not content.startswith(b"["):
        return ""
    blocks = [try_decode(element, Block) for element in elements(content)]
    if any(block is None for block in blocks):
        return ""
    return "\n".join(block.text for block in blocks if block is not None and block.text)
