"""What the parameters of all flows have in common."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from flows.invalid import why_invalid
from flows.settings import load_settings
from schemas.errors import WrongUse

__all__ = ["ZoneParameters", "configured", "counted", "one_is_a_list", "parameters_from"]

P = TypeVar("P", bound=BaseModel)


def parameters_from(kind: type[P], assignments: Iterable[str]) -> P:
    """A flow's parameters: `NAME=VALUE` texts over the settings; several `sessions` are a JSON list. Raises
    `WrongUse`."""
    given: dict[str, Any] = {}
    for assignment in assignments:
        name, separator, text = assignment.partition("=")
        if not separator:
            raise WrongUse(f"-p {assignment}: write a parameter as NAME=VALUE")
        given[name] = _names(text) if name == "sessions" and text.startswith("[") else text
    try:
        return kind(**given)
    except ValidationError as error:
        problems = why_invalid(error, "parameter", kind.model_fields, show_values=True)
        raise WrongUse("; ".join(f"-p {problem}" for problem in problems)) from None


def _names(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise WrongUse(f"-p sessions: {text} is not a JSON list of patterns") from None


def configured(name: str) -> Callable[[], Any]:
    """A default that is the setting `name`, as it stands when it is asked for."""
    return lambda: getattr(load_settings(), name)


def one_is_a_list(value: object) -> object:
    """One text as a list of one; anything else as it is."""
    return (value,) if isinstance(value, str) else value


def counted(number: int, noun: str) -> str:
    """`1 session`, `2 sessions`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class ZoneParameters(BaseModel):
    """What every flow over the sessions of a zone works on. What is not given is as configured where the flow runs."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    zone: str = Field(default_factory=configured("zone"), min_length=1, description="A folder or s3://bucket/prefix.")
    sessions: tuple[str, ...] = Field((), description="Only sessions that match one of these shell patterns.")
    shard_bytes: int = Field(
        default_factory=configured("shard_bytes"), ge=1, description="Landed bytes that one task works on."
    )
    workers: int = Field(
        default_factory=configured("workers"), ge=1, description="Shards worked on at once, one process each."
    )

    @field_validator("zone", mode="before")
    @classmethod
    def _zone_is_known(cls, value: object) -> object:
        if value is None:
            raise ValueError("give -p zone=ZONE, or configure it")
        return value

    @field_validator("sessions", mode="before")
    @classmethod
    def _one_pattern_is_a_list_of_one(cls, value: object) -> object:
        return one_is_a_list(value)

    def wanted(self, session: str) -> bool:
        """Whether the session filter lets `session` through."""
        return not self.sessions or any(fnmatch.fnmatchcase(session, pattern) for pattern in self.sessions)
