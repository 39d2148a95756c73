"""How large a request is, before it is sent: an estimate in tokens (agent-session specification, "Financial request
inputs").

No tokenizer is asked: four ASCII characters, or one other character, are taken for a token, and each message costs a
few more. The same text always gives the same number.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from orjson import dumps

from tasks.agents.native.conversation import Message, Request, Round, ToolSpec

__all__ = ["DEFAULT_OUTPUT", "request_tokens", "text_tokens", "tool_tokens", "turn_tokens"]

DEFAULT_OUTPUT: Final = 4096
"""Tokens of output that are reserved where neither the agent nor the run says."""

_MESSAGE: Final = 4
_REQUEST: Final = 16


def text_tokens(text: str) -> int:
    """The text's size in tokens, rounded up."""
    ascii_bytes = len(text) if text.isascii() else sum(1 for character in text if character < "\x80")
    return (ascii_bytes + 3) // 4 + len(text) - ascii_bytes


def turn_tokens(messages: Iterable[Message]) -> int:
    """The messages' size in tokens."""
    return sum(text_tokens(message.text) + _MESSAGE for message in messages)


def tool_tokens(tools: Iterable[ToolSpec]) -> int:
    """What describing the tools takes."""
    return sum(
        text_tokens(tool.name) + text_tokens(tool.description) + text_tokens(dumps(tool.parameters).decode()) + _MESSAGE
        for tool in tools
    )


def request_tokens(request: Request) -> int:
    """The request's input in tokens: system prompt, messages, tools and the rounds of this turn."""
    total = _REQUEST + text_tokens(request.system) + turn_tokens(request.messages) + tool_tokens(request.tools)
    return total + sum(map(_round_tokens, request.rounds))


def _round_tokens(round: Round) -> int:
    total = text_tokens(round.answer.text) + text_tokens(round.answer.reasoning) + _MESSAGE
    total += sum(text_tokens(call.name) + text_tokens(call.arguments) + _MESSAGE for call in round.answer.calls)
    return total + sum(text_tokens(result.text) + _MESSAGE for result in round.results)
