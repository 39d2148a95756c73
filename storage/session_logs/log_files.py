"""Files that only grow, and are durable when a call returns (DSH specification, sections 1 and 7).

A new file gets its name by a hard link, so it is there whole or not at all and never takes another's place. A batch
that cannot be written whole is taken back. Links are not followed: an archive is not to lead anywhere else.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from schemas.errors import AccessRefused, LogRejected, SessionBusy, SessionWriteRefused, StoreUnavailable
from storage.local_writes import LASTING_REFUSALS, sync_folder
from storage.session_logs.backend import LogChanged
from storage.session_logs.cancellation import Cancellation, check

__all__ = ["FileHold", "LogFile", "faults_named", "make_folders", "publish_file", "revision_of"]

_FOLDER_MODE: Final = 0o700
_FILE_MODE: Final = 0o600
_STEP: Final = 1 << 23
_TRIES: Final = 50


@contextlib.contextmanager
def faults_named(name: str, operation: str) -> Iterator[None]:
    """The operating system's refusals in our words: AccessRefused for what stays, StoreUnavailable for the rest."""
    try:
        yield
    except FileNotFoundError:
        raise  # what that means is for the caller to say
    except OSError as error:
        detail = error.strerror or str(error)
        if error.errno in LASTING_REFUSALS:
            raise AccessRefused(name, operation, detail) from error
        raise StoreUnavailable(name, operation, detail) from error


def revision_of(status: os.stat_result) -> str:
    """A file's revision: it changes with its content, and when another file takes its place."""
    return f"{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"


class FileHold:
    """An advisory lock on an open file: this process has the log open for writing. It ends with the process."""

    def __init__(self, descriptor: int, session: str) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise SessionBusy(session, "its log is open for writing elsewhere") from None
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Let others have it; again does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            # Closing alone would not do: a child that another thread has just forked has the descriptor, and with it
            # the lock, until it becomes another program.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)


class LogFile:
    """A log's open file; use it as a context. Raises FileNotFoundError, and LogRejected (``link``)."""

    def __init__(self, path: Path, name: str, *, write: bool = False) -> None:
        self._name = name
        mode = os.O_RDWR | os.O_APPEND if write else os.O_RDONLY
        try:
            # Not blocking: a named pipe would wait for a writer forever.
            self._descriptor = os.open(path, mode | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                raise LogRejected(name, None, "link", "no plain file") from None
            raise
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            os.close(self._descriptor)
            raise LogRejected(name, None, "link", "no plain file")

    def __enter__(self) -> LogFile:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    @property
    def revision(self) -> str:
        return revision_of(os.fstat(self._descriptor))

    def hold(self, session: str) -> FileHold:
        """Keep it from others. Raises SessionBusy."""
        return FileHold(os.dup(self._descriptor), session)

    def read_whole(self, limit: int, signal: Cancellation | None) -> tuple[bytes, str]:
        """All bytes, and the revision they are: read again while somebody writes. Raises LogRejected (``too_large``)
        and StoreUnavailable.
        """
        for _ in range(_TRIES):
            before = os.fstat(self._descriptor)
            if before.st_size > limit:
                raise LogRejected(self._name, None, "too_large", f"{before.st_size} bytes, above the limit of {limit}")
            data = self._read(before.st_size, signal)
            if len(data) == before.st_size and self.revision == revision_of(before):
                return data, revision_of(before)
        raise StoreUnavailable(self._name, "read", "it changes all the time")

    def read_start(self, size: int) -> bytes:
        """At most the first ``size`` bytes."""
        return self._read(size, None)

    def check(self, revision: str) -> None:
        """Raise LogChanged unless the file is as long as it was at this revision, and the same one."""
        if self.revision.split(":")[:3] != revision.split(":")[:3]:
            raise LogChanged

    def append(self, data: bytes) -> str:
        """Write ``data`` at the end, durably; the new revision. When that fails nothing of it is left, and the error of
        the operating system is raised.
        """
        before = os.fstat(self._descriptor).st_size
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            os.fsync(self._descriptor)
        except BaseException as error:
            try:
                self.truncate(before)
            except OSError as second:
                detail = f"{error}; and what was written of the batch could not be taken back: {second}"
                raise StoreUnavailable(self._name, "append", detail) from error
            raise
        return self.revision

    def truncate(self, size: int) -> None:
        """Keep only the first ``size`` bytes, durably."""
        os.ftruncate(self._descriptor, size)
        os.fsync(self._descriptor)

    def _read(self, size: int, signal: Cancellation | None) -> bytes:
        pieces = []
        position = 0
        while position < size:
            check(signal)
            piece = os.pread(self._descriptor, min(size - position, _STEP), position)
            if not piece:
                break
            pieces.append(piece)
            position += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def make_folders(root: Path, *names: str) -> Path:
    """The folder ``names`` below ``root``, each made durably where it is not there; the root too."""
    folder = root
    for folder in (root, *(root.joinpath(*names[: depth + 1]) for depth in range(len(names)))):
        try:
            folder.mkdir(_FOLDER_MODE, parents=folder == root)
        except FileExistsError:
            if folder.is_symlink() and folder != root:
                raise LogRejected(folder.name, None, "link", "a link where a folder of logs has to be") from None
            continue
        sync_folder(folder.parent)
    return folder


def publish_file(path: Path, data: bytes, *, session: str, hold: bool) -> tuple[str, FileHold | None]:
    """Create a file, durably, whole or not at all; its revision, and with ``hold`` its lock, taken before anybody can
    see it. Raises SessionWriteRefused (``exists``).
    """
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(6)}.tmp")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, _FILE_MODE)
    held: FileHold | None = None
    try:
        with open(descriptor, "wb", buffering=0) as file:
            rest = memoryview(data)
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(descriptor)
        held = FileHold(os.open(unfinished, os.O_RDONLY | os.O_CLOEXEC), session) if hold else None
        os.link(unfinished, path)
    except FileExistsError:
        if held is not None:
            held.release()
        raise SessionWriteRefused(session, "exists", f"{path.name} was written by somebody else meanwhile") from None
    except BaseException:
        if held is not None:
            held.release()
        raise
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink()
    try:
        sync_folder(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        if held is not None:
            held.release()
        raise
    return revision_of(path.stat(follow_symlinks=False)), held
