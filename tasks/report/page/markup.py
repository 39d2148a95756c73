"""HTML that is put together from elements, in which every text from the data is escaped because nothing else can be.

A `str` is text and is escaped where it enters an element; `Markup` is made here alone.
"""

from __future__ import annotations

import html
import json
from typing import Any

__all__ = ["Markup", "element", "joined", "json_block", "raw_text"]

_VOID = {"meta"}


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: str | int | bool | None) -> Markup:
    """An element; a child that is no `Markup` is text. ``class_`` means class; ``data_x`` means data-x; None and False
    leave an attribute out, True leaves it without a value."""
    opening = name
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        opening += f" {key}" if value is True else f' {key}="{html.escape(str(value), quote=True)}"'
    if name in _VOID:
        return Markup(f"<{opening}>")
    return Markup(f"<{opening}>{joined(*children)}</{name}>")


def joined(*children: str) -> Markup:
    """Children side by side."""
    return Markup("".join(each if isinstance(each, Markup) else html.escape(each, quote=False) for each in children))


def raw_text(name: str, text: str, **attributes: str) -> Markup:
    """A style or script element of our own, whose text browsers do not unescape; it must not close itself."""
    if f"</{name}" in text.lower() or "<!--" in text:
        raise ValueError(f"text that would end its {name} element")
    return Markup(str(element(name, Markup(text), **attributes)))


def json_block(identity: str, value: Any) -> Markup:
    """Data for a script: JSON in which no character means anything to HTML."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return raw_text("script", text, type="application/json", id=identity)
