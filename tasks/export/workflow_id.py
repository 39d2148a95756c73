"""The id of an exported workflow (Relavium notes, section 3): readable, in ASCII, and the same for the same session."""

from __future__ import annotations

import re
import unicodedata

from schemas._relavium_values import KEBAB
from schemas._utf16 import to_units

__all__ = ["workflow_id"]

_LONGEST = 128
_LONGEST_SESSION_ID = 111
_ENCODED_UNITS = 24
_OTHER = re.compile(r"[^a-z0-9]+")


def workflow_id(title: str | None, session_id: str) -> str:
    """The title as kebab-case; without a usable title the session's id, spelled out in hex when it is no kebab-case.

    Different sessions may get the same id.
    """
    slug = _slug(title or "")
    if slug:
        return slug
    if len(session_id) <= _LONGEST_SESSION_ID and KEBAB.fullmatch(session_id):
        return f"exported-session-{session_id}"
    units = to_units(session_id)[:_ENCODED_UNITS]
    return f"exported-session-id-{''.join(f'{ord(unit):04x}' for unit in units)}"


def _slug(title: str) -> str:
    letters = [letter for letter in unicodedata.normalize("NFKD", title) if unicodedata.category(letter)[0] != "M"]
    # Sharp s is mapped after lowering: its capital only then becomes it.
    lowered = "".join(letters).lower().replace("\u0131", "i").replace("\u00df", "ss")
    return "-".join(filter(None, _OTHER.split(lowered)))[:_LONGEST].rstrip("-")
