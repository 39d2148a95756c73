"""What the server was asked and what it gave for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from tests.stub_llm.script import Answer, Tokens

__all__ = ["Dialect", "Request", "Served"]

Dialect = Literal["messages", "chat", "responses"]
MOST_TITLE_TOKENS: Final = 64


@dataclass(frozen=True)
class Request:
    """One request to a model; header names are in lower case."""

    dialect: Dialect
    headers: Mapping[str, str]
    body: dict[str, Any]
    raw: bytes

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def streamed(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def tools(self) -> list[str]:
        """The names of the tools that the model is offered."""
        names = []
        for tool in self.body.get("tools") or []:
            named = tool.get("function") if isinstance(tool.get("function"), dict) else tool
            names.append(str(named.get("name") or named.get("type")))
        return names

    @property
    def is_title(self) -> bool:
        """Whether this asks for the title of a session: no tools, and room for a few words only."""
        limit = self.body.get("max_tokens") or self.body.get("max_completion_tokens") or 0
        return not self.tools and 0 < int(limit) <= MOST_TITLE_TOKENS

    @property
    def rounds(self) -> int:
        """How many answers of the model the conversation holds already."""
        if self.dialect != "responses":
            return sum(message.get("role") == "assistant" for message in self.body.get("messages", []))
        items = self.body.get("input")
        answers, inside = 0, False
        for item in items if isinstance(items, list) else []:
            of_model = item.get("role") == "assistant" or item.get("type") in (
                "reasoning",
                "function_call",
                "custom_tool_call",
            )
            answers += of_model and not inside
            inside = of_model
        return answers


@dataclass
class Served:
    """A request and its answer; ``tokens`` is what the client was told it used, None when it never was."""

    request: Request
    script: str
    answer: Answer
    tokens: Tokens | None = None
    outcome: Literal["open", "full", "cut", "left", "error"] = "open"
    """``left``: the client went away first."""
