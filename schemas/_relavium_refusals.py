"""Validation errors as `FieldRejected`: the first one found, its field's path and its rule, never the value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from schemas._relavium_values import kind_of
from schemas.errors import FieldRejected

__all__ = ["Refusal", "first_refusal", "refused", "shown_path"]

_RULES: Final = {
    "missing": ("required", "missing"),
    "extra_forbidden": ("unrecognized_keys", "unknown key"),
    "list_type": ("invalid_type", "expected an array, received {kind}"),
    "model_type": ("invalid_type", "expected an object, received {kind}"),
    "model_attributes_type": ("invalid_type", "expected an object, received {kind}"),
    "too_short": ("too_small", "expected at least one"),
    "union_tag_not_found": ("invalid_type", "expected an object, received {kind}"),
    "literal_error": ("invalid_literal", "another value than the one there is"),
}
"""pydantic's own errors that its structure can still raise; everything else is `_relavium_values.refuse`."""

_LONGEST_STEP: Final = 80
_ODD_STEP: Final = re.compile(r"(?=.*\d).{12}|.{41}|.*[=\s@+/]", re.DOTALL)
"""A key that no field has, and that could be a secret: long with digits in it, very long, or no name at all."""

Refusal = tuple[str, str, str]
"""Rule, field and what is wrong."""


def first_refusal(error: ValidationError) -> Refusal:
    """The first rule broken, in the order the fields are declared."""
    errors = error.errors(include_url=False)
    rule, field, detail = _refusal(errors[0])
    more = len(errors) - 1
    return rule, field, f"{detail} (and {more} more)" if more else detail


def refused(kind: type[FieldRejected], error: ValidationError, file: str, row: int | None = None) -> FieldRejected:
    """``error`` as a rejection of ``file``."""
    rule, field, detail = first_refusal(error)
    return kind(file, row, rule, field, detail)


def _refusal(error: ErrorDetails) -> Refusal:
    # Tags of unions are in the location too; `_relavium_model.tag` brackets them.
    path = [_shown(str(step)) for step in error["loc"] if not str(step).startswith("<")]
    context: dict[str, Any] = error.get("ctx", {})
    if error["type"] == "refused":
        if context["at"]:
            path.append(_shown(context["at"]))
        return context["rule"], ".".join(path), context["message"]
    if error["type"].startswith("union_tag") and isinstance(error["input"], dict):
        known = context.get("expected_tags", "").replace("'<", "").replace(">'", "")
        return (
            "invalid_union_discriminator",
            ".".join((*path, "type")),
            f"expected one of {known}" if known else "missing",
        )
    if error["type"] in _RULES:
        rule, message = _RULES[error["type"]]
        return rule, ".".join(path), message.format(kind=kind_of(error["input"]))
    # pydantic's own sentence quotes the input, and is no format.
    return error["type"], ".".join(path), error["msg"]


def shown_path(steps: Iterable[str]) -> str:
    """Where a field lies, as one printable word."""
    return ".".join(map(_shown, steps))


def _shown(step: str) -> str:
    """A step of a path as one printable word: keys come from the data, and one that could be a secret is cut."""
    if _ODD_STEP.match(step):
        step = f"{step[:4]}..."
    return (step if step.isprintable() else ascii(step)[1:-1])[:_LONGEST_STEP]
