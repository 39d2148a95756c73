"""The base of Relavium's models: how unknown keys are met, and a model as the plain value it was read from."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Discriminator

from schemas._relavium_values import refuse

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


def by_type(*names: str) -> Discriminator:
    """Chooses the arm of a union by the ``type`` of an object, or of a model that was already made."""
    expected = ", ".join(names)

    def choose(value: Any) -> str:
        if isinstance(value, dict):
            kind = value.get("type")
        elif isinstance(value, BaseModel):
            kind = getattr(value, "type", None)
        else:
            refuse("invalid_type", "expected an object")
        if isinstance(kind, str) and kind in names:
            return tag(kind)
        refuse("invalid_union_discriminator", f"expected one of {expected}", at="type")

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
