"""Derived objects that may be lost at any time: one that cannot be read is none, one that cannot be written is told of.

Evidence and rounds must not fail because of what is derived from them.
"""

from __future__ import annotations

import logging

from schemas.errors import ObjectMissing, TerminalError
from storage.objects import ObjectStore

__all__ = ["read_cache", "write_cache"]

_log = logging.getLogger("sessionmill.storage")


def read_cache(store: ObjectStore, key: str) -> bytes | None:
    """The cached bytes, or None. Raises TransientError alone: then the store as a whole is in doubt."""
    try:
        return store.read(key)
    except ObjectMissing:
        return None
    except TerminalError as error:
        _log.warning("a cache cannot be read, so it is made anew: %s", _printable(error))
        return None


def write_cache(store: ObjectStore, key: str, data: bytes) -> None:
    """Keep `data`. Raises TransientError alone."""
    try:
        store.replace(key, data)
    except TerminalError as error:
        _log.warning("a cache cannot be written, so the next run does its work again: %s", _printable(error))


def _printable(error: TerminalError) -> str:
    """Keys come from the data: no control character of theirs reaches a terminal or starts a line in a log."""
    return str(error).encode("unicode_escape").decode("ascii")
