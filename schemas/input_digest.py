"""The digest that binds a round to the landed files it consumed (session-flow specification, section 8, step 5)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

__all__ = ["input_digest"]


def input_digest(previous: str, digests: Iterable[str]) -> str:
    """Hex SHA-256 over the previous round's input digest and those of the landed files of this round's range.

    `previous` is empty for round 1. `digests` are hex SHA-256 of whole files, in any order: they are sorted here,
    because listing order is not stable. A sequence that has no file adds nothing.
    """
    total = hashlib.sha256(previous.encode())
    for digest in sorted(digests):
        total.update(b"\0" + digest.encode())
    return total.hexdigest()
