"""What a message's content is as parts of a record: what was said, and that a tool was called and how it ended.

Relavium keeps no arguments, no results and no media bytes, only their sizes; such parts are `unavailable`. A part
stands where its content stands in the message, but for the media of a tool's result, which come after it.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Raw

from schemas.relavium_session import (
    MediaPart,
    ReasoningPart,
    SessionContentPart,
    SessionMessage,
    TextPart,
    ToolCallPart,
    ToolMedia,
)
from schemas.session_data import Part, encode_text
from tasks.land.relavium.lines import to_json

__all__ = ["data_part", "message_parts", "unicode_text", "unknown_part"]

AVAILABLE, UNAVAILABLE, REDACTED = "available", "unavailable", "redacted"
_LARGEST = 2**63 - 1


def message_parts(message: SessionMessage, line: bytes) -> tuple[Part, ...]:
    """The parts of the content, then the whole line, from which the message can be had again."""
    return (*(part for content in message.content for part in _parts(content)), data_part(line))


def data_part(line: bytes) -> Part:
    """A line as it stands."""
    return Part(k="data", data=Raw(line), state=AVAILABLE, bytes=len(line))


def unknown_part(line: bytes, reason: str) -> Part:
    """A line that breaks a rule, kept as text, and which rule."""
    return Part(
        k="unknown",
        text=encode_text(reason),
        data=Raw(bytes(encode_text(line.decode("utf-8", "replace")))),
        state=AVAILABLE,
        bytes=len(line),
    )


def _parts(content: SessionContentPart) -> Iterator[Part]:
    if isinstance(content, TextPart):
        yield _text("text", content.text, AVAILABLE)
    elif isinstance(content, ReasoningPart):
        yield _text("reasoning", content.text, REDACTED if content.redacted else AVAILABLE)
    elif isinstance(content, ToolMedia):
        yield _media(content)
    elif isinstance(content, ToolCallPart):
        yield Part(k="call", id=content.id, name=content.name, state=UNAVAILABLE, bytes=int(content.argsBytes))
    else:
        yield Part(
            k="result",
            data=Raw(to_json({"outcome": content.outcome})),
            of=content.toolCallId,
            failed=content.outcome != "ok",
            state=UNAVAILABLE,
            bytes=int(content.resultBytes),
        )
        yield from map(_media, content.media or ())


def _text(kind: str, text: str, state: str) -> Part:
    size = len(text.encode("utf-8", "surrogatepass"))
    return Part(k=kind, text=encode_text(unicode_text(text)), state=state, bytes=size)


def _media(content: ToolMedia) -> Part:
    part = Part(
        k="media",
        data=Raw(to_json(content.source.ref)),
        media=content.mimeType,
        state=UNAVAILABLE,
        bytes=min(int(content.byteLength or 0), _LARGEST),
    )
    if isinstance(content, MediaPart):
        part.name = unicode_text(content.name or "")
        if content.transcript:
            part.text = encode_text(unicode_text(content.transcript))
    return part


def unicode_text(text: str) -> str:
    """Text as UTF-8 can hold it, with U+FFFD for half a pair; the line has it as it was."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
