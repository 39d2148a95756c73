"""The base of Relavium's models: how unknown keys are met, and a model as the plain value it was read from."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Discriminator

__all__ = ["Lenient", "Strict", "by_type", "plain", "repeated", "tag"]


class Strict(BaseModel):
    """An object that refuses keys it does not know. Fields are named as in the data."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Lenient(BaseModel):
    """An object that drops keys it does not know. Fields are named as in the data."""

    model_config = ConfigDict(extra="ignore", frozen=True)


def plain(value: Any) -> Any:
    """A model as a JSON value: the fields that were given, defaults left out."""
    if isinstance(value, BaseModel):
        fields = value.__dict__
        return {name: plain(fields[name]) for name in value.model_fields_set}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def tag(name: str) -> str:
    """What `by_type` calls the arm of that ``type``; brackets tell it from a field in an error's location."""
    return f"<{name}>"


def by_type() -> Discriminator:
    """Chooses the arm of a union by the ``type`` of an object, or of a model that was already made."""

    def choose(value: Any) -> str | None:
        # Not even an error may be raised here: pydantic makes one of a tag that no arm has.
        kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
        return tag(kind) if isinstance(kind, str) else None

    return Discriminator(choose)


def repeated(values: list[str]) -> list[str]:
    """The values that occur more than once, each named once."""
    seen: set[str] = set()
    twice: dict[str, None] = {}
    for value in values:
        if value in seen:
            twice[value] = None
        seen.add(value)
    return list(twice)
