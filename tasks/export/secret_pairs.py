"""Values that stand apart from their secret-like name: elements of XML, and ``name`` beside ``value``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tasks.export.secret_keys import Span
from tasks.export.secret_names import LONGEST_NAME, name_kind
from tasks.export.secret_values import is_secret

__all__ = ["pairs"]

_ELEMENT = re.compile(r"<([A-Za-z][A-Za-z0-9_.:-]{0,80}+)>([^<>\s]{1,400}+)</")
_NAME_VALUE = re.compile(
    r"name(?<![A-Za-z0-9_]name)[\"']?:[ \t]{0,8}[\"']?([A-Za-z0-9_.-]{1,80}+)[\"']?,?\s{0,80}+"
    r"[\"']?value[\"']?:[ \t]{0,8}[\"']?([^\s\"'{}\[\],]{1,400}+)"
)


def pairs(text: str) -> Iterator[Span]:
    """The values."""
    for sign, pattern in (("</", _ELEMENT), ("value", _NAME_VALUE)):
        if sign in text:
            for found in pattern.finditer(text):
                kind = name_kind(found[1][-LONGEST_NAME:])
                if kind not in ("", "pass", "header") and is_secret(kind, found[2], quoted=True):
                    yield *found.span(2), "assignment"
