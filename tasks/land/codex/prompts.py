"""Who wrote a message of role `user`: a person, or a program in its place."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tasks.land.codex.rows import Members, objects, text, within

__all__ = ["Message", "event_texts", "read_message"]

_PUT_IN = (
    "<environment_context>",
    "<user_instructions>",
    "<INSTRUCTIONS>",
    "# AGENTS.md instructions for ",
    "<permissions instructions>",
    "<skills_instructions>",
    "<skill>",
    "<turn_aborted>",
    "<user_shell_command>",
    "<subagent_notification>",
    "<user_action>",
    "<collaboration_mode>",
    "<multi_agent_mode>",
    "Another language model started to solve this problem",
)
_NOTIFICATION = "<subagent_notification>"
_SHELL = "<user_shell_command>"
_IMAGE_FRAME = re.compile(r"<image name=[^\n]*>|</image>")
_AGENT = re.compile(r'"agent_path"\s*:\s*"([^"\\]+)"')


@dataclass(slots=True)
class Message:
    """A message's elements, apart: what its author wrote and what a program put in.

    `child` is the agent that a notification comes from.
    """

    written: list[str] = field(default_factory=list)
    put_in: list[str] = field(default_factory=list)
    images: list[Members] = field(default_factory=list)
    is_notification: bool = False
    is_shell: bool = False
    child: str = ""

    @property
    def is_written(self) -> bool:
        return bool(self.written or self.images)


def read_message(payload: Members) -> Message:
    content = payload.get("content")
    elements = [{"type": "input_text", "text": content}] if isinstance(content, str) else objects(content)
    kinds = within(payload, "internal_chat_message_metadata_passthrough").get("content_item_kinds")
    known = kinds if isinstance(kinds, list) and len(kinds) == len(elements) else None
    has_images = any(text(each, "type") == "input_image" for each in elements)
    is_users = text(payload, "role") == "user"
    message = Message()
    for place, element in enumerate(elements):
        words = text(element, "text")
        kind = known[place] if known is not None else None
        if text(element, "type") == "input_image":
            message.images.append(element)
        elif has_images and _IMAGE_FRAME.fullmatch(words.strip()):
            continue
        elif is_users and not _is_persons(words, kind):
            _put_in(message, words, kind)
        elif words:
            message.written.append(words)
    return message


def event_texts(item: Members) -> list[str]:
    """The texts of an `item_completed`'s message."""
    return [words for each in objects(item.get("content")) if (words := text(each, "text"))]


def _is_persons(words: str, kind: object) -> bool:
    if isinstance(kind, str):
        return kind.startswith("user.")
    return not words.lstrip().startswith(_PUT_IN)


def _put_in(message: Message, words: str, kind: object) -> None:
    message.put_in.append(words)
    start = words.lstrip()
    if kind == "multi_agent.subagent_notification" or start.startswith(_NOTIFICATION):
        message.is_notification = True
        found = _AGENT.search(words)
        message.child = found[1] if found else ""
    if kind == "shell.user_command" or start.startswith(_SHELL):
        message.is_shell = True
