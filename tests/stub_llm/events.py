"""Server-sent events, and what the three dialects share in making them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.stub_llm.script import ToolCall

__all__ = ["Event", "arguments", "encoded", "pieces"]


@dataclass(frozen=True)
class Event:
    """One event; ``counted`` marks the one that tells the client what it used."""

    data: dict[str, Any] | str
    name: str = ""
    counted: bool = False

    def encode(self) -> bytes:
        data = self.data if isinstance(self.data, str) else json.dumps(self.data)
        return (f"event: {self.name}\n" if self.name else "").encode() + f"data: {data}\n\n".encode()


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def arguments(call: ToolCall) -> str:
    """A call's arguments as the JSON text that goes out."""
    return call.arguments if isinstance(call.arguments, str) else json.dumps(dict(call.arguments))


def pieces(text: str, size: int = 16) -> list[str]:
    """A text as a stream gives it; an empty one is one empty piece."""
    return [text[start : start + size] for start in range(0, len(text), size)] or [""]
