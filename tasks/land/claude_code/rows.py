"""A transcript's row as the dialect reads it (Claude Code specification, section 3).

Only these members are known; one of another type than its field makes the whole row unknown. `toolUseResult` is looser:
when it does not decode, its strings that do still name what the row is about.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from schemas.lenient_json import UndecodableJSON, decode, decode_string, members

__all__ = ["Attachment", "Block", "Hunk", "Row", "ToolResult", "Words", "raw", "read_tool_result", "try_decode"]

Signed = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""With its bounds told, the C decoder refuses what the lenient reader does."""

S = TypeVar("S", bound=msgspec.Struct)


class Origin(msgspec.Struct):
    kind: str = ""


class Usage(msgspec.Struct):
    input_tokens: Signed = 0
    output_tokens: Signed = 0
    cache_read_input_tokens: Signed = 0
    cache_creation_input_tokens: Signed = 0


class Message(msgspec.Struct):
    id: str = ""
    model: str = ""
    stop_reason: str | None = None
    content: Raw | UnsetType = UNSET
    usage: Usage | None = None


class Attachment(msgspec.Struct, rename="camel"):
    type: str = ""
    command_mode: str = ""
    origin: Origin | None = None


class Row(msgspec.Struct, rename="camel"):
    """`attachment` is kept as it stands, for that is how it lands; `Attachment` is what is read from it."""

    type: str = ""
    uuid: str = ""
    parent_uuid: str = ""
    timestamp: str = ""
    prompt_id: str = ""
    agent_id: str = ""
    subtype: str = ""
    cwd: str = ""
    logical_parent_uuid: str = ""
    ai_title: str = ""
    description: str = ""
    workflow_name: str = ""
    run_id: str = ""
    parent_agent_id: str = ""
    is_compact_summary: bool = False
    is_meta: bool = False
    origin: Origin | None = None
    message: Message | None = None
    attachment: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    tool_use_result: Raw | UnsetType = UNSET
    # Read by `calls` alone, of any type; named here so that rows in which they are spelled otherwise can be told.
    request_id: Raw | UnsetType = UNSET
    is_sidechain: Raw | UnsetType = UNSET
    session_id: Raw | UnsetType = UNSET
    version: Raw | UnsetType = UNSET


class Hunk(msgspec.Struct, rename="camel"):
    old_start: Signed = 0
    old_lines: Signed = 0
    new_start: Signed = 0
    new_lines: Signed = 0
    lines: list[str] | None = None


class ToolResult(msgspec.Struct):
    agent_id: str = msgspec.field(default="", name="agentId")
    tool_use_id: str = msgspec.field(default="", name="toolUseId")
    status: str = ""
    run_id: str = msgspec.field(default="", name="runId")
    transcript_dir: str = msgspec.field(default="", name="transcriptDir")
    task_id: str = msgspec.field(default="", name="taskId")
    file_path: str = msgspec.field(default="", name="filePath")
    old_string: str = msgspec.field(default="", name="oldString")
    new_string: str = msgspec.field(default="", name="newString")
    notebook_path: str = ""
    original_file: str | None = msgspec.field(default=None, name="originalFile")
    content: str | None = None
    original_notebook: str | None = msgspec.field(default=None, name="original_file")
    updated_notebook: str | None = msgspec.field(default=None, name="updated_file")
    replace_all: bool = msgspec.field(default=False, name="replaceAll")
    structured_patch: list[Hunk] | None = msgspec.field(default=None, name="structuredPatch")


class Words(NamedTuple):
    """What a `toolUseResult` names, decodable as a whole or not."""

    agent: str = ""
    tool: str = ""
    run: str = ""


class BlockSource(msgspec.Struct):
    media_type: str = ""
    data: str = ""


class Block(msgspec.Struct):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    id: str = ""
    name: str = ""
    tool_use_id: str = ""
    input: Raw | UnsetType = UNSET
    content: Raw | UnsetType = UNSET
    is_error: bool | None = None
    source: BlockSource | None = None


def raw(value: Raw | UnsetType) -> bytes | None:
    """A member as it stands in the row, None when it is absent."""
    return bytes(value) if isinstance(value, Raw) else None


def try_decode(data: bytes, kind: type[S]) -> S | None:
    """`data` as `kind`, None when a member has another type than its field."""
    try:
        return decode(data, kind)
    except UndecodableJSON:
        return None


def read_tool_result(row: Row) -> tuple[ToolResult | None, Words]:
    """The row's tool result, None when it has none that decodes, and what it names."""
    data = raw(row.tool_use_result)
    if data is None or not data.startswith(b"{"):
        return None, Words()
    result = try_decode(data, ToolResult)
    if result is not None:
        return result, Words(result.agent_id, result.tool_use_id, result.run_id)
    named = {key: decode_string(value) for key, value in members(data) if value.startswith(b'"')}
    return None, Words(named.get("agentid", ""), named.get("tooluseid", ""), named.get("runid", ""))
