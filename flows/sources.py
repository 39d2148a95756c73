"""The sources of a run as they are written: one place, or a list of places and of mappings with kind and patterns."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import BeforeValidator

from tasks.land.selection import Archive

__all__ = ["Sources"]


def _as_list(value: object) -> object:
    """A text that is JSON as what it holds, one source as a list of one, and a place alone as a source."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            value = json.loads(value)
        except ValueError:
            raise ValueError("is neither a place nor JSON") from None
    if isinstance(value, str | dict | Archive):
        value = [value] if value else []
    if isinstance(value, list | tuple):
        return tuple({"url": each} if isinstance(each, str) else each for each in value)
    return value


Sources = Annotated[tuple[Archive, ...], BeforeValidator(_as_list)]
