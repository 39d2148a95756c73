"""Open references: what a record names and no landed record answers (session-flow specification, section 6)."""

from __future__ import annotations

from .ids import unresolved_id
from .row import Row

__all__ = ["Open", "open_reference"]


class Open(Row, frozen=True):
    kind: str
    ref: str
    reason: str


def open_reference(unresolved: dict[str, Open], kind: str, ref: str, reason: str) -> None:
    """The first reason given for an id stands."""
    unresolved.setdefault(unresolved_id(kind, ref), Open(kind, ref, reason))
