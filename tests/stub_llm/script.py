"""What the server answers: values that know nothing of any provider's dialect."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

__all__ = ["CUT", "HANG", "Answer", "Script", "Tokens", "ToolCall"]


@dataclass(frozen=True)
class Tokens:
    """Tokens by kind: input is what was neither read from nor written to the cache; reasoning is part of output."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0

    @property
    def input_total(self) -> int:
        """All input, the cache's included: how OpenAI counts."""
        return self.input + self.cache_read + self.cache_write

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.input + other.input,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.output + other.output,
            self.reasoning + other.reasoning,
        )


@dataclass(frozen=True)
class ToolCall:
    """A tool that the model asks for; a string as arguments goes out as it is, also when it is no JSON."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """One answer of the model, or the failure to give one.

    ``status`` other than 200 is an HTTP error with ``text`` as its message. ``ending`` says how the answer goes out:
    in full, ``cut`` (the connection is reset in the middle of the stream) or ``hang`` (it stops there and stays
    open). ``after`` is how many events go out before that; 0 is before the reply's first byte. ``pause`` is the time
    between two events, in seconds. ``stop`` None is what the answer's content implies.
    With a ``gate`` the answer waits until that is set.
    """

    text: str = ""
    tools: tuple[ToolCall, ...] = ()
    usage: Tokens | None = Tokens(input=100, cache_read=20, cache_write=0, output=10, reasoning=0)
    reasoning: str = ""
    status: int = 200
    ending: Literal["full", "cut", "hang"] = "full"
    after: int = 4
    pause: float = 0.0
    stop: Literal["end", "tools", "length"] | None = None
    retry_after: float | None = None
    gate: threading.Event | None = None

    @property
    def stopped(self) -> Literal["end", "tools", "length"]:
        return self.stop or ("tools" if self.tools else "end")


HANG: Final = Answer(ending="hang", after=0)
"""Takes the request and never answers."""

CUT: Final = Answer(text="half of an answer that never ends", ending="cut")
"""Resets the connection in the middle of the stream."""


@dataclass(frozen=True)
class Script:
    """Answers in order, the last one for ever; ``by`` is what counts as one step, ``title`` answers title requests."""

    answers: tuple[Answer, ...]
    by: Literal["request", "round"] = "request"
    title: Answer = Answer(text="A title", usage=Tokens(input=7, output=3))

    def answer(self, step: int) -> Answer:
        return self.answers[min(step, len(self.answers) - 1)]
