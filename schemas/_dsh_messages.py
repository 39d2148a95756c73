"""The rules of the messages on the surface (DSH specification, section 3; version 4: section 5)."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["blocks_of", "field", "message_fault", "message_of", "text_of"]

_ROLES: Final = {
    "system/message": "system",
    "developer/message": "developer",
    "user/message": "user",
    "assistant/message": "assistant",
    "tool/result": "tool",
}


def message_of(event: dict[str, Any]) -> dict[str, Any]:
    """The message in a surface event that keeps the rules; a user's message is the event's data itself."""
    data: dict[str, Any] = event["data"]
    if event["type"] == "user/message":
        return data
    message: dict[str, Any] = data["message"]
    return message


def blocks_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The blocks of a message's content that say what they are; whatever else stands there is passed over."""
    return [block for block in message["content"] if isinstance(block, dict) and isinstance(block.get("type"), str)]


def text_of(content: Any) -> str:
    """The text blocks of a message's content, a line feed between two."""
    blocks = blocks_of({"content": content}) if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if block["type"] == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))


def field(value: Any, key: str) -> Any:
    """``value[key]`` where there is such a thing, else None: what events hold beyond their rules can be anything."""
    return value.get(key) if isinstance(value, dict) else None


def message_fault(kind: str, data: Any, generation: int) -> str | None:
    """How the message in the ``data`` of a surface event of this ``kind`` breaks a rule; None when it keeps all."""
    message = data.get("message") if isinstance(data, dict) and kind != "user/message" else data
    if not isinstance(message, dict):
        return f"{kind} holds no message"
    if not _is_text(message.get("id")):
        return "the message has no id"
    role = "user" if kind == "tool/result" and generation < 4 else _ROLES[kind]
    if message.get("role") != role:
        return f"the message's role is not {role}"
    source, content = message.get("source"), message.get("content")
    if not isinstance(source, dict) or not _is_text(source.get("kind")):
        return "the message does not say where it comes from"
    if not isinstance(content, list):
        return "the message's content is no list"
    if kind == "assistant/message":
        if source["kind"] != "model" or not _is_text(source.get("provider")) or not _is_text(source.get("model")):
            return "an answer does not name its provider and model"
        return None
    if kind == "tool/result":
        return _result_fault(message, source, content, generation)
    if kind == "user/message" and generation >= 4 and source["kind"] == "plugin":
        return "a source of kind plugin, which this generation names by the producer"
    return None


def _result_fault(message: dict[str, Any], source: dict[str, Any], content: list[Any], generation: int) -> str | None:
    call = source.get("callId")
    if source["kind"] != "tool" or not _is_text(call):
        return "a tool's result does not name its call"
    if generation >= 4:
        if message.get("toolCallId") != call:
            return "a tool's result names two calls, or only one in its source"
        return None if isinstance(message.get("isError"), bool) else "a tool's result does not say whether it failed"
    block = content[0] if len(content) == 1 else None
    if not isinstance(block, dict) or block.get("type") != "tool-result":
        return "a tool's result is not one block of that type"
    if block.get("toolCallId") != call or not isinstance(block.get("content"), list):
        return "a tool's result names two calls, or has no content"
    return None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""
