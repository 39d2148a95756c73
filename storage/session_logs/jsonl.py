"""Session logs as files in a folder, ``<project>/<session>/session.jsonl.zstd`` (DSH specification, sections 1 and 7).

A root has one encoding: frames, which is the default, or plain lines. New sessions are of generation 0; a log of
generation 4 is read, repaired and continued as well, those between are only read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from schemas.dsh import MAX_LOG_BYTES, Event, LogHeader, StoredLog, header_in, read_log, repair, write_batch
from schemas.dsh import write_first_batch as first_batch
from schemas.dsh_root import LogPlace, LogRoot, check_place, encode_segment, find_logs, log_key
from schemas.errors import ConfigurationRejected, LogRejected, LogUnsupported, StoreUnavailable
from storage.session_logs.backend import Hold, LogChanged, Stored
from storage.session_logs.cancellation import Cancellation, check
from storage.session_logs.coordinator import BATCH_SECONDS, PREPARED_SESSIONS, CoordinatedSessions
from storage.session_logs.log_files import FileHold, LogFile, faults_named, make_folders, publish_file
from storage.session_logs.persistence import SessionLocation, SessionSnapshot

__all__ = ["JsonlSessions"]

_CONTINUED: Final = (0, 4)
"""The generations whose programs are known well enough to write behind what they wrote."""

_LOCKED: Final = 4
"""From this generation on a file beside the log is locked by whoever writes to it; before, the log is."""

_FIRST_STEP: Final = 8192


class JsonlSessions(CoordinatedSessions[StoredLog]):
    """`SessionPersistence` in a folder, which need not be there before the first event.

    ``compressed`` None takes the encoding that the root has. ``packed`` joins pieces of a streamed answer into rows.
    Raises ConfigurationRejected for a root that is a file.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        compressed: bool | None = True,
        packed: bool = True,
        limit: int = MAX_LOG_BYTES,
        prepared_sessions: int = PREPARED_SESSIONS,
        batch_seconds: float = BATCH_SECONDS,
    ) -> None:
        backend = _Files(Path(os.path.abspath(root)), compressed, packed, limit)
        super().__init__(backend, prepared_sessions=prepared_sessions, batch_seconds=batch_seconds)


class _Files:
    """A `LogBackend` in a folder."""

    def __init__(self, root: Path, compressed: bool | None, packed: bool, limit: int) -> None:
        if root.exists() and not root.is_dir():
            raise ConfigurationRejected(f"{root}: it is a file, not a folder of session logs")
        self._root = root
        self._compressed = compressed
        self._packed = packed
        self._limit = limit
        self._is_checked = False

    @property
    def name(self) -> str:
        return str(self._root)

    def locate(self, header: LogHeader) -> SessionLocation:
        return SessionLocation("jsonl", self._root / log_key(header, compressed=self._encoding))

    def check(self, header: LogHeader) -> None:
        """Files keep every text."""

    def read(self, session: str, signal: Cancellation | None) -> Stored[StoredLog] | None:
        place = self._find(session)
        if place is None:
            return None
        try:
            with faults_named(place.key, "read"), LogFile(self._root / place.key, place.key) as file:
                data, revision = file.read_whole(self._limit, signal)
        except FileNotFoundError:
            return None
        log = read_log(data, name=place.key, limit=self._limit)
        if log.header.id != session:
            raise LogRejected(
                place.key, 1, "place", f"the log of session {session!r} says that it is {log.header.id!r}"
            )
        check_place(log.header, place)
        return Stored(log.header, log.events, revision, log.torn, log)

    def read_from(
        self, session: str, from_seq: int, signal: Cancellation | None
    ) -> tuple[LogHeader, list[Event]] | None:
        stored = self.read(session, signal)
        return None if stored is None else (stored.header, stored.events[from_seq:])

    def revision(self, session: str, signal: Cancellation | None) -> str | None:
        place = self._find(session)
        if place is None:
            return None
        with faults_named(place.key, "read"):
            try:
                with LogFile(self._root / place.key, place.key) as file:
                    return file.revision
            except FileNotFoundError:
                return None

    def publish(self, header: LogHeader, events: Sequence[Event], hold: bool) -> tuple[str, Hold | None]:
        self._check_root()
        compressed = self._encoding
        key = log_key(header, compressed=compressed)
        data = first_batch(header, events, compressed=compressed, packed=self._packed)
        with faults_named(key, "create"), _folders_kept(key):
            folder = make_folders(self._root, *key.split("/")[:2])
            # Of another encoding or generation, it would be the same session.
            self._found([f"{key.rpartition('/')[0]}/{name}" for name in _names(folder, files=True)])
            return publish_file(self._root / key, data, session=header.id, hold=hold)

    def append(self, header: LogHeader, events: Sequence[Event], revision: str, held: Hold | None) -> str:
        packed = self._packed and header.version < 2
        data = write_batch(events, compressed=self._encoding, packed=packed)
        return self._write(header, revision, held, None, data)

    def repair(self, stored: Stored[StoredLog]) -> None:
        mending = repair(stored.source)
        if mending is not None:
            self._write(stored.header, stored.revision, None, mending.keep, mending.tail)

    def hold(self, header: LogHeader) -> FileHold:
        key = log_key(header, compressed=self._encoding)
        with faults_named(key, "open"):
            try:
                if header.version >= _LOCKED:
                    return self._lock_beside(header)
                with LogFile(self._root / key, key) as file:
                    return file.hold(header.id)
            except FileNotFoundError:
                raise LogChanged from None

    def snapshots(self, signal: Cancellation | None) -> list[SessionSnapshot]:
        found: dict[str, SessionSnapshot] = {}
        for place, header, revision in self._headers(signal):
            if header is None:
                continue
            check_place(header, place)
            if header.id in found:
                raise LogRejected(place.key, None, "duplicate_id", f"session {header.id!r} is there more than once")
            found[header.id] = SessionSnapshot(header, revision)
        return list(found.values())

    def unreadable(self, signal: Cancellation | None) -> list[str]:
        return [place.key for place, header, _ in self._headers(signal) if header is None]

    def close(self) -> None:
        """Nothing is held between calls."""

    def _headers(self, signal: Cancellation | None) -> Iterator[tuple[LogPlace, LogHeader | None, str]]:
        for place in self._check_root(again=True).logs:
            check(signal)
            with faults_named(place.key, "list"):
                try:
                    with LogFile(self._root / place.key, place.key) as file:
                        found = _header_of(file, place), file.revision
                except FileNotFoundError:
                    continue
            yield (place, *found)

    @property
    def _encoding(self) -> bool:
        return self._compressed is not False

    def _write(self, header: LogHeader, revision: str, held: Hold | None, keep: int | None, data: bytes) -> str:
        """Cut the log at this revision to ``keep`` bytes, and append ``data``."""
        if header.version not in _CONTINUED:
            detail = f"a log of generation {header.version} is only read, not written"
            raise LogUnsupported(self.name, None, "read_only", detail)
        key = log_key(header, compressed=self._encoding)
        with faults_named(key, "write"):
            try:
                with LogFile(self._root / key, key, write=True) as file:
                    hold = None
                    if held is None:
                        hold = self._lock_beside(header) if header.version >= _LOCKED else file.hold(header.id)
                    try:
                        file.check(revision)
                        if keep is not None:
                            file.truncate(keep)
                        return file.append(data) if data else file.revision
                    finally:
                        if hold is not None:
                            hold.release()
            except FileNotFoundError:
                raise LogChanged from None

    def _lock_beside(self, header: LogHeader) -> FileHold:
        key = log_key(header, compressed=self._encoding)
        path = (self._root / key).with_name("session.lock")
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        return FileHold(os.open(path, flags, 0o644), header.id)

    def _check_root(self, *, again: bool = False) -> LogRoot:
        """The logs of the root, each where it may be. Only the first time, unless ``again`` is said."""
        if self._is_checked and not again:
            return LogRoot(())
        keys = []
        with faults_named(self.name, "list"):
            for project in _names(self._root, files=False):
                keys += [f"{project}/{name}" for name in _names(self._root / project, files=True)]
                for session in _names(self._root / project, files=False):
                    keys += [
                        f"{project}/{session}/{name}" for name in _names(self._root / project / session, files=True)
                    ]
        root = self._found(keys)
        if self._compressed is None and root.logs:
            self._compressed = root.logs[0].compressed
        self._is_checked = True
        return root

    def _find(self, session: str) -> LogPlace | None:
        """Where the session's log lies. Raises LogRejected (``encoding``, ``layout``, ``duplicate_id``)."""
        if not session:
            raise LogRejected(self.name, None, "missing", "a session's id is not empty")
        self._check_root()
        segment = encode_segment(session)
        keys = []
        with faults_named(self.name, "list"):
            for project in _names(self._root, files=False):
                folder = self._root / project
                flat = (f"{segment}.jsonl", f"{segment}.jsonl.zstd")
                keys += [f"{project}/{name}" for name in flat if (folder / name).is_file()]
                if (folder / segment).is_dir() and not (folder / segment).is_symlink():
                    keys += [f"{project}/{segment}/{name}" for name in _names(folder / segment, files=True)]
        root = self._found(keys)
        return root.find(session, name=self.name) if root.logs else None

    def _found(self, keys: list[str]) -> LogRoot:
        return find_logs(keys, compressed=self._compressed, name=self.name)


def _names(folder: Path, *, files: bool) -> list[str]:
    """The names of a folder's own folders, links left out; or of whatever else is in it."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False) != files]
    except FileNotFoundError:
        return []


@contextmanager
def _folders_kept(key: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise StoreUnavailable(key, "create", "its folder was taken away meanwhile") from None


def _header_of(file: LogFile, place: LogPlace) -> LogHeader | None:
    size = _FIRST_STEP
    while True:
        start = file.read_start(size)
        more, header = header_in(start, compressed=place.compressed, name=place.key)
        if not more or len(start) < size:
            return header
        size *= 4
