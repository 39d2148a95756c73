"""Relavium's sessions: record, context, messages and their parts (Relavium notes, sections 1.1 to 1.4).

Record and context drop keys they do not know; messages and parts refuse them, so that no tool argument, result or
signature can ride along. `read_session` is the way in from JSON; the fields are named as in the data.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import PlainValidator, Tag, model_validator

from schemas._relavium_model import Lenient, Strict, by_type, tag
from schemas._relavium_values import (
    MAX_SAFE_INTEGER,
    AnyText,
    Count,
    Flag,
    Kebab,
    Maybe,
    Natural,
    Text,
    TextMap,
    Timestamp,
    integer,
    matching,
    one_of,
    refuse,
    text,
)
from schemas.relavium_agent import Agent

__all__ = [
    "AgentSessionRecord",
    "Compaction",
    "HandleSource",
    "MediaPart",
    "ReasoningPart",
    "Selection",
    "SessionContentPart",
    "SessionContext",
    "SessionMessage",
    "TextPart",
    "ToolCallPart",
    "ToolMedia",
    "ToolResultPart",
]

_HANDLE = re.compile(r"media://sha256-[0-9a-f]{64}")
_MIME = re.compile(r"[A-Za-z0-9_!#$%&'*+.^`|~-]+/[A-Za-z0-9_!#$%&'*+.^`|~-]+")
_DATA_URI = re.compile(r"data:[^,]*;base64,", re.IGNORECASE)
_TOOL_ID = re.compile(r"session-tool:([1-9][0-9]{0,15}):(0|[1-9][0-9]{0,15})")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]+")

_mime_text = matching(_MIME, "a MIME type without parameters", longest=255)
_tool_id_text = matching(_TOOL_ID, "session-tool:<turn>:<slot>", longest=46)
_tool_name_text = matching(_TOOL_NAME, "letters, digits, _ and -", longest=128)


def _mime(value: Any) -> str:
    lower = _mime_text(value).lower()
    if lower != "application/pdf" and not lower.startswith(("image/", "audio/", "video/")):
        refuse("unsupported_media", "expected an image, audio, video or application/pdf")
    return str(value)


def _tool_id(value: Any) -> str:
    found = _TOOL_ID.fullmatch(_tool_id_text(value))
    assert found is not None
    if any(int(number) > MAX_SAFE_INTEGER for number in found.groups()):
        refuse("too_big", f"a number above {MAX_SAFE_INTEGER}")
    return str(value)


def _tool_name(value: Any) -> str:
    if value == "":
        refuse("too_small", "an empty string")
    return str(_tool_name_text(value))


def _without_data(longest: int | None) -> Any:
    within = text(longest=longest)

    def check(value: Any) -> str:
        if _DATA_URI.match(within(value)):
            refuse("data_uri", "media bytes belong to the source, not into text")
        return str(value)

    return check


Mime = Annotated[str, PlainValidator(_mime)]
ToolId = Annotated[str, PlainValidator(_tool_id)]
ByteCount = Annotated[int, PlainValidator(integer(0, MAX_SAFE_INTEGER))]


class HandleSource(Strict):
    """Where media bytes are: always a handle, never the bytes."""

    kind: Annotated[str, PlainValidator(one_of("handle"))]
    ref: Annotated[str, PlainValidator(matching(_HANDLE, "media://sha256- and 64 lower-case hex digits"))]


class ToolMedia(Strict):
    """Media in a tool's result: the media part without a name and a transcript."""

    type: Literal["media"]
    mimeType: Mime
    source: HandleSource
    byteLength: Maybe[Natural] = None
    durationMs: Maybe[Count] = None

    @model_validator(mode="after")
    def _duration_of_what_lasts(self) -> Self:
        if self.durationMs is not None and not self.mimeType.lower().startswith(("audio/", "video/")):
            refuse("not_allowed", "only for audio and video", at="durationMs")
        return self


class MediaPart(ToolMedia):
    """Media that a person or the assistant gave."""

    name: Maybe[Annotated[str, PlainValidator(_without_data(255))]] = None
    transcript: Maybe[Annotated[str, PlainValidator(_without_data(None))]] = None


class TextPart(Strict):
    """Text, which may be empty."""

    type: Literal["text"]
    text: AnyText


class ReasoningPart(Strict):
    """What the model thought, without a provider's signature."""

    type: Literal["reasoning"]
    text: AnyText
    redacted: Maybe[Flag] = None


class ToolCallPart(Strict):
    """That a tool was called; ``argsBytes`` is the UTF-8 size of the model's JSON arguments."""

    type: Literal["tool_call"]
    id: ToolId
    name: Annotated[str, PlainValidator(_tool_name)]
    argsBytes: ByteCount


class ToolResultPart(Strict):
    """That a tool answered; ``resultBytes`` is the UTF-8 size of the JSON result that the model was shown."""

    type: Literal["tool_result"]
    toolCallId: ToolId
    resultBytes: ByteCount
    outcome: Annotated[str, PlainValidator(one_of("ok", "error", "denied", "cancelled"))]
    media: Maybe[list[ToolMedia]] = None


SessionContentPart = Annotated[
    Annotated[TextPart, Tag(tag("text"))]
    | Annotated[ReasoningPart, Tag(tag("reasoning"))]
    | Annotated[MediaPart, Tag(tag("media"))]
    | Annotated[ToolCallPart, Tag(tag("tool_call"))]
    | Annotated[ToolResultPart, Tag(tag("tool_result"))],
    by_type(),
]


class Compaction(Strict):
    """A boundary: the messages up to this sequence number were replaced in the model's context."""

    droppedThroughSequence: Natural


class SessionMessage(Strict):
    """One row of a session's transcript."""

    id: Text
    sessionId: Text
    sequenceNumber: Natural
    role: Annotated[str, PlainValidator(one_of("system", "user", "assistant", "tool"))]
    content: list[SessionContentPart]
    modelId: Maybe[Text] = None
    compaction: Maybe[Compaction] = None
    timestamp: Timestamp

    @model_validator(mode="after")
    def _parts_of_the_role(self) -> Self:
        if self.compaction is not None and self.role != "system":
            refuse("row_role", f"a boundary in a row of role {self.role}, it belongs to system", at="compaction")
        for place, part in enumerate(self.content):
            if part.type == "tool_result":
                allowed = self.role == "tool"
            elif part.type == "tool_call":
                allowed = self.role == "assistant"
            else:
                allowed = self.role != "tool"
            if not allowed:
                refuse("row_role", f"a {part.type} part in a row of role {self.role}", at=f"content.{place}")
        return self


class Selection(Lenient):
    """Lines of a file, numbered as the surface numbers them."""

    file: Text
    startLine: Natural
    endLine: Natural

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.startLine > self.endLine:
            refuse("line_order", "before startLine", at="endLine")
        return self


class SessionContext(Lenient):
    """The workspace a session ran against. It never reaches the exported file."""

    workingDir: Text
    fsScopeTier: Annotated[str, PlainValidator(one_of("sandboxed", "project", "full"))]
    activeFile: Maybe[Text] = None
    gitRef: Maybe[Text] = None
    selection: Maybe[Selection] = None
    variables: Maybe[TextMap] = None


class AgentSessionRecord(Lenient):
    """A session without its messages. Money is in micro-cents (1 USD = 100,000,000)."""

    id: Text
    agentSlug: Kebab
    context: SessionContext
    status: Annotated[str, PlainValidator(one_of("active", "idle", "exported", "ended"))]
    totalInputTokens: Natural
    totalOutputTokens: Natural
    totalCostMicrocents: Natural
    totalConservativeMicrocents: Natural = 0
    createdAt: Timestamp
    updatedAt: Timestamp
    agentId: Maybe[Text] = None
    title: Maybe[Text] = None
    modelId: Maybe[Text] = None
    exportedWorkflowPath: Maybe[Text] = None
    agentSnapshot: Maybe[Agent] = None
    deletedAt: Maybe[Timestamp] = None
