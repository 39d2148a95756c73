"""A private copy of a SQLite database that its owner may be writing to, from a folder or from S3 alike.

Nothing is written beside the original, not even SQLite's own files. A copy counts when what it was made from stood
still, or, in write-ahead mode, when the log is still of the generation it was before the first byte was read: a
database then changes only by pages that are in the log too, and what is half-written in the log has no valid checksum.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final, NamedTuple

from schemas.errors import ObjectMissing, ObjectTooLarge, StoreUnavailable
from storage.objects import GIB, ObjectStat, ObjectStore

__all__ = ["MAX_DATABASE_BYTES", "copy_database"]

MAX_DATABASE_BYTES: Final = GIB
"""Of a database with its log."""

_LOG, _JOURNAL = "-wal", "-journal"
_LOG_HEADER: Final = 32
"""Bytes of a log's header; the two numbers in it that tell generations apart are new whenever the log begins anew."""

_ATTEMPTS: Final = 6
_WAIT_SECONDS: Final = 0.05
_PIECE: Final = 8 << 20


class _State(NamedTuple):
    """What there was of a database at one moment. An empty log or journal is none."""

    main: ObjectStat
    log: ObjectStat | None
    journal: ObjectStat | None
    log_header: bytes


def copy_database(store: ObjectStore, key: str, folder: Path, *, limit: int = MAX_DATABASE_BYTES) -> Path:
    """Copy the database at ``key`` with its log into ``folder``, which is nobody else's: where the copy lies.

    Raises ObjectMissing, ObjectTooLarge, and StoreUnavailable when it was changed too often to be copied.
    """
    target = folder / "copy.db"
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_WAIT_SECONDS * 2**attempt)
        before = _state(store, key)
        size = sum(stat.size for stat in before[:3] if stat is not None)
        if size > limit:
            raise ObjectTooLarge(key, size, limit)
        header = _copy(store, before, target, limit)
        after = _state(store, key)
        if before == after or _same_generation(before, after, header):
            return target
    raise StoreUnavailable(key, "read", "its owner kept changing it while it was copied")


def _same_generation(before: _State, after: _State, copied_header: bytes) -> bool:
    if before.journal is not None or after.journal is not None or not before.log_header:
        return False
    return before.log_header == copied_header == after.log_header


def _state(store: ObjectStore, key: str) -> _State:
    main = store.stat(key)
    if main is None:
        raise ObjectMissing(key)
    log, journal = (
        stat if stat is not None and stat.size else None
        for stat in (store.stat(key + _LOG), store.stat(key + _JOURNAL))
    )
    header = b""
    if log is not None:
        try:
            header = store.read_range(log.key, 0, _LOG_HEADER)
        except ObjectMissing:
            log = None
    return _State(main, log, journal, header)


def _copy(store: ObjectStore, state: _State, target: Path, limit: int) -> bytes:
    """Copy what there is, the database before its log; the copied log's header."""
    _copy_object(store, state.main.key, target, limit)
    for stat, suffix in ((state.log, _LOG), (state.journal, _JOURNAL)):
        path = target.with_name(target.name + suffix)
        path.unlink(missing_ok=True)
        if stat is not None:
            try:
                _copy_object(store, stat.key, path, limit)
            except ObjectMissing:
                path.unlink(missing_ok=True)
    log = target.with_name(target.name + _LOG)
    if not log.exists():
        return b""
    with log.open("rb") as file:
        return file.read(_LOG_HEADER)


def _copy_object(store: ObjectStore, key: str, target: Path, limit: int) -> None:
    """All of an object as far as it goes now, which may be further than it was listed."""
    size = 0
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        while piece := store.read_range(key, size, _PIECE):
            size += file.write(piece)
            if size > limit:
                raise ObjectTooLarge(key, size, limit)
            if len(piece) < _PIECE:
                return
