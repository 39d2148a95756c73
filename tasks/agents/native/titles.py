"""What a session is called: its first message, as far as a line goes (Relavium notes, section 3, title derivation)."""

from __future__ import annotations

from typing import Final

__all__ = ["title_of"]

_LONGEST: Final = 40


def title_of(text: str) -> str:
    """The text on one line, at most 40 characters; nothing of nothing."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1].rstrip()}…"
