"""Sessions that the program keeps in `sessions.db`, as logs of generation 0: one line an event (DSH specification,
section 11).

A database may be in use, so it is read from a copy, which is made once and goes with the object that has it. As rows
are only appended, so are lines.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from schemas.dsh import Line, LogHeader, StoredLog, write_event, write_header
from schemas.errors import LogRejected
from storage.database_copy import copy_database
from storage.dsh_sqlite import APPLICATION_ID, SessionDatabase
from storage.keys import escape_id, unescape_id
from storage.objects import ObjectStore

__all__ = ["DATABASE", "Databases", "Kept", "database_of"]

DATABASE = "sessions.db"
_KEY = re.compile(rf"((?:.*/)?{re.escape(DATABASE)})#session=([^/#]+)", re.DOTALL)
_SQLITE = b"SQLite format 3\0"
_HEADER_BYTES = 100
_APPLICATION = slice(68, 72)


class Kept(NamedTuple):
    """One session of a database: the key that it has as a log, its header, and what changes whenever it does."""

    key: str
    header: LogHeader
    revision: str


def database_of(key: str) -> tuple[str, str] | None:
    """The database that the log with this key is in, and its session; None for any other key."""
    found = _KEY.fullmatch(key)
    return (found[1], unescape_id(found[2])) if found else None


class Databases:
    """The databases of a source as they were when each was first asked for."""

    def __init__(self, store: ObjectStore, *, max_bytes: int) -> None:
        self._store = store
        self._max_bytes = max_bytes
        self._copies: dict[str, _Copy] = {}

    def sessions(self, key: str) -> Iterator[Kept]:
        """Every session of the database at `key`; none when it is another program's.

        Raises `LogRejected`, and as `copy_database` does.
        """
        start = self._store.read_range(key, 0, _HEADER_BYTES)
        program = int.from_bytes(start[_APPLICATION], "big")
        if start and (not start.startswith(_SQLITE) or program not in (0, APPLICATION_ID)):
            return
        for header, revision in self._open(key).headers():
            yield Kept(f"{key}#session={escape_id(header.id)}", header, revision)

    def read(self, key: str) -> tuple[StoredLog, bytes]:
        """The log with this key, and its text. Raises as `sessions` does."""
        place, session = database_of(key) or ("", "")
        stored = self._open(place).read(session)
        pieces, lines = [write_header(stored.header)], []
        at = len(pieces[0])
        for event in stored.events:
            pieces.append(write_event(event))
            lines.append(Line(at, at + len(pieces[-1]), event["seq"], 1))
            at = lines[-1].end
        log = StoredLog(
            file=key,
            compressed=False,
            header=stored.header,
            events=stored.events,
            lines=lines,
            frames=[],
            frames_end=at,
            file_bytes=at,
            text_end=at,
            torn_frame=None,
            torn=stored.torn,
        )
        return log, b"".join(pieces)

    def _open(self, key: str) -> SessionDatabase:
        if key not in self._copies:
            self._copies[key] = _Copy(self._store, key, self._max_bytes)
        return self._copies[key].database


class _Copy:
    """A copied database, open. Raises `LogRejected` under the name of the original."""

    def __init__(self, store: ObjectStore, key: str, limit: int) -> None:
        folder = tempfile.mkdtemp(prefix="sessionmill-")
        self._gone = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        try:
            self.database = SessionDatabase(copy_database(store, key, Path(folder)), limit=limit)
        except LogRejected as error:
            self._gone()
            raise type(error)(key, error.row, error.rule, error.detail) from None
        except BaseException:
            self._gone()
            raise
        weakref.finalize(self, self.database.__exit__, None, None, None)
