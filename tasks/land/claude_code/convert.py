"""One line of a transcript, or one document beside it, as a Session Data record (Claude Code specification, section 3).

Nothing is refused and nothing is dropped: a line that is not JSON, or whose members have other types than the dialect
knows, lands whole as an `unknown` part.
"""

from __future__ import annotations

import re
from hashlib import sha256

import msgspec

from schemas.lenient_json import UndecodableJSON, check, decode_split, decode_string
from schemas.session_data import Dropped, Part, Record, Usage
from tasks.land.claude_code.calls import Members, call_facts
from tasks.land.claude_code.changes import change_part
from tasks.land.claude_code.kinds import AGENT_ID, JOURNAL, MANIFEST, SCRIPT, SIDECAR, TRANSCRIPT
from tasks.land.claude_code.parts import attachment_part, data_part, message_parts, unknown_part
from tasks.land.claude_code.rows import Attachment, Row, ToolResult, Words, raw, read_tool_result, try_decode
from tasks.land.nesting import TOO_DEEP, is_too_deep
from tasks.land.source import Converted, Line, SourceFile

__all__ = ["convert"]

NOT_JSON = "the record is not valid JSON"
NOTIFICATION = "<task-notification>"
_NOTIFICATION_WORD = b"task-notification"
_CALL_OF_NOTIFICATION = re.compile(r"<tool-use-id>(.*?)</tool-use-id>", re.DOTALL)
_TASK = re.compile(r"<task-id>(.*?)</task-id>", re.DOTALL)

_FROM = {"assistant": "agent", "user": "external"}
_TRIGGERS = {"": "", "human": "external", "task-notification": "notification"}
_SYSTEM_FLAGS = {
    "compact_boundary": "context_reset",
    "api_error": "error",
    "turn_duration": "turn_duration",
    "local_command": "command",
}
_FLAG_ORDER = (
    "synthetic",
    "context_reset",
    "reset_summary",
    "finished",
    "external_input",
    "injected",
    "child_result",
    "error",
    "launch_ack",
    "turn_duration",
    "command",
    "notice",
)


def convert(line: Line, file: SourceFile) -> Converted:
    """The record of `line`, a line of `file` or the whole of it."""
    if file.kind == SCRIPT:
        return Converted(_unknown(line, "the source is a program, not data").record)
    read = _read(line, file)
    if read is None:
        return _unknown(line, NOT_JSON)
    row, members = read
    record = _manifest(line, row, file) if file.kind == MANIFEST else _row(line, row, file)
    if record is None:
        return _unknown(line, NOT_JSON)
    if is_too_deep(line.body, record):
        return _unknown(line, TOO_DEEP)
    return Converted(record, call=call_facts(line.body, record, members))


def _read(line: Line, file: SourceFile) -> tuple[Row, Members | None] | None:
    """The line's row, and its members as they stand where each is plain; None when it does not decode. A manifest
    lands whatever JSON it is."""
    try:
        return decode_split(line.body, Row)
    except UndecodableJSON:
        if file.kind != MANIFEST:
            return None
    try:
        check(line.body)
    except UndecodableJSON:
        return None
    return Row(), None


def _envelope(line: Line) -> Record:
    return Record(
        ord=line.ord, off=line.off, sha=sha256(line.body).hexdigest()[:12], bytes=len(line.body), from_="runtime"
    )


def _unknown(line: Line, reason: str) -> Converted:
    return Converted(msgspec.structs.replace(_envelope(line), parts=(unknown_part(line.body, reason),)), reason)


def _manifest(line: Line, row: Row, file: SourceFile) -> Record:
    return msgspec.structs.replace(
        _envelope(line), label=row.workflow_name, batch=row.run_id or file.batch, parts=(data_part(line.body),)
    )


def _row(line: Line, row: Row, file: SourceFile) -> Record | None:
    """The record of a row; None when its attachment does not decode."""
    attachment = _attachment(row)
    if attachment is None:
        return None
    result, words = read_tool_result(row)
    parts, dropped = _parts(line, row, result, file)
    call, child = _notified(row)
    message = row.message
    return Record(
        ord=line.ord,
        off=line.off,
        sha=sha256(line.body).hexdigest()[:12],
        bytes=len(line.body),
        id=row.uuid,
        parent=row.parent_uuid,
        call=message.id if message else "",
        run=row.prompt_id,
        continues=row.logical_parent_uuid,
        tool=("" if file.kind == JOURNAL else words.tool) or call,
        child=_child(row, words, file) or child,
        batch=words.run or file.batch,
        label=row.ai_title or row.description or row.workflow_name,
        started_by=row.parent_agent_id,
        from_=_FROM.get(row.type, "runtime") if file.kind == TRANSCRIPT else "runtime",
        time=row.timestamp,
        trigger=_TRIGGERS.get(kind, "unknown") if (kind := _origin(row, attachment)) else "",
        flags=_flags(row, attachment, result, file),
        usage=_usage(row),
        model=message.model if message else "",
        parts=tuple(parts),
        dropped=tuple(dropped),
    )


def _attachment(row: Row) -> Attachment | None:
    """What is read of the row's attachment, empty when it has none; None when it does not decode."""
    data = raw(row.attachment)
    return Attachment() if data is None else try_decode(data, Attachment)


def _parts(line: Line, row: Row, result: ToolResult | None, file: SourceFile) -> tuple[list[Part], list[Dropped]]:
    parts: list[Part] = []
    dropped: list[Dropped] = []
    if row.type == "attachment":
        parts.append(attachment_part(raw(row.attachment)))
    elif row.message is not None and (content := raw(row.message.content)) is not None:
        parts, dropped = message_parts(content, result, raw(row.tool_use_result) or b"")
    if result is not None and (change := change_part(row, result, parts, file)) is not None:
        parts.append(change)
    return parts or [data_part(line.body)], dropped


def _notified(row: Row) -> tuple[str, str]:
    """The call and the agent that a task notification in the row's text names."""
    content = raw(row.message.content) if row.message is not None else None
    if content is None or not content.startswith(b'"'):
        return "", ""
    if _NOTIFICATION_WORD not in content and b"\\u" not in content:  # most rows: not worth decoding once more
        return "", ""
    if NOTIFICATION not in (text := decode_string(content)):
        return "", ""
    call = _CALL_OF_NOTIFICATION.search(text)
    child = ""
    for task in _TASK.finditer(text):
        name = task[1].strip()
        if not name:
            break
        if AGENT_ID.fullmatch(name):
            child = name
            break
    return call[1].strip() if call else "", child


def _child(row: Row, words: Words, file: SourceFile) -> str:
    if file.kind == SIDECAR:
        return row.agent_id or file.place
    return row.agent_id if file.kind == JOURNAL else words.agent


def _origin(row: Row, attachment: Attachment) -> str:
    own = row.origin.kind if row.origin else ""
    return own or (attachment.origin.kind if attachment.origin else "")


def _usage(row: Row) -> Usage | None:
    reported = row.message.usage if row.message else None
    if reported is None:
        return None
    return Usage(
        in_=reported.input_tokens,
        out=reported.output_tokens,
        cache_read=reported.cache_read_input_tokens,
        cache_write=reported.cache_creation_input_tokens,
    )


def _flags(row: Row, attachment: Attachment, result: ToolResult | None, file: SourceFile) -> tuple[str, ...]:
    flags: set[str] = set()
    message = row.message
    if row.type == "assistant" and message is not None:
        if message.model == "<synthetic>":
            flags.add("synthetic")
        if message.stop_reason:
            flags.add("finished")
    if row.type == "system":
        flags.add(_SYSTEM_FLAGS.get(row.subtype, "notice"))
    if row.is_compact_summary:
        flags.add("reset_summary")
    attached = row.type == "attachment"
    queued = attached and attachment.type == "queued_command" and attachment.command_mode == "prompt"
    typed = row.type == "user" and row.origin is not None and row.origin.kind == "human"
    if (queued or typed) and not row.is_meta and file.kind == TRANSCRIPT:
        flags.add("external_input")
    elif attached or row.is_meta:
        flags.add("injected")
    status = result.status if result is not None else ""
    if status == "completed" or (file.kind == JOURNAL and raw(row.result) is not None):
        flags.add("child_result")
    if status == "async_launched":
        flags.add("launch_ack")
    return tuple(flag for flag in _FLAG_ORDER if flag in flags)
