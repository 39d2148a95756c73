"""How DeepSeek Harness names its logs, and what the source calls what it lands (DSH version 4, sections 1 and 12)."""

from __future__ import annotations

import re
from hashlib import sha256

from storage.keys import escape_id

__all__ = ["JOURNAL", "MAIN", "SIDECAR", "TRANSCRIPT", "derived_from", "journal_key", "name_of", "sidecar_key"]

TRANSCRIPT = "transcript"
SIDECAR = "agent_meta"
JOURNAL = "journal"
MAIN = "main"

_DERIVED = re.compile(r"(.*)#(agent|call)", re.DOTALL)
_LONGEST_NAME = 120


def name_of(session: str) -> str:
    """What a session's id is called in the zone: itself when it is ordinary, never `main`, and never too long."""
    name = escape_id(session)
    if name == MAIN:
        return "%6Dain"
    if len(name) > _LONGEST_NAME:
        digest = sha256(session.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{name[: _LONGEST_NAME - 17]}~{digest[:16]}"
    return name


def sidecar_key(log: str) -> str:
    """What the source calls the description of a sub-agent, which is made from its log and its parent's."""
    return f"{log}#agent"


def journal_key(log: str) -> str:
    """What the source calls the note of a sub-agent's call, where that is inferred."""
    return f"{log}#call"


def derived_from(key: str) -> tuple[str, str] | None:
    """The log that a sidecar's or journal's key is about, and the kind; None for any other key."""
    found = _DERIVED.fullmatch(key)
    return (found[1], SIDECAR if found[2] == "agent" else JOURNAL) if found else None
