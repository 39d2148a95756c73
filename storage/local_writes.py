"""Writing a file so that it is there whole or not at all, and durably, whatever becomes of the process."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
from typing import Final

from storage.keys import TEMPORARY

__all__ = [
    "CACHE_MODE",
    "EVIDENCE_MODE",
    "LASTING_REFUSALS",
    "link_or_create",
    "sweep",
    "sync_folder",
    "write_temporary",
]

LASTING_REFUSALS: Final = frozenset(
    {
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.EISDIR,
        errno.ENOTDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.EINVAL,
    }
)
"""Refusals that stay as long as the name or the rights stay; anything else (disk full, I/O error) may pass."""

EVIDENCE_MODE: Final = 0o444  # landed files and rounds (spec 2)
CACHE_MODE: Final = 0o644

# What a file system without hard links answers to link().
_NO_HARD_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES}
_LEFT_AFTER_SECONDS: Final = 24 * 3600
_OUR_TEMPORARY = re.compile(re.escape(TEMPORARY) + r"[0-9]+-[0-9a-f]{16}")


def write_temporary(path: str, data: bytes, mode: int) -> str:
    """The data, durable, under a temporary name beside `path`."""
    temporary = os.path.join(os.path.dirname(path), f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        _write_durably(descriptor, data, mode)
    except BaseException:
        os.unlink(temporary)
        raise
    return temporary


def sweep(folder: str, fresh: str) -> None:
    """Remove what killed writers left in a folder: our own temporary files that are a day older than `fresh`, which was
    just written there.

    Ages are by the file system's own clock: the machine's may be another, and a process number means nothing on another
    machine. A writer that is slower than a day meets a failure of the store, and tries again.
    """
    before = os.stat(fresh).st_mtime - _LEFT_AFTER_SECONDS
    with os.scandir(folder) as entries:
        for entry in entries:
            if _OUR_TEMPORARY.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(FileNotFoundError):  # swept by somebody else
                    if entry.stat(follow_symlinks=False).st_mtime < before:
                        os.unlink(entry.path)


def _write_durably(descriptor: int, data: bytes, mode: int) -> None:
    """Write all of `data`, give the file its mode, and close it once the disk holds both."""
    with open(descriptor, "wb", buffering=0) as file:
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) :]
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)


def link_or_create(temporary: str, path: str, data: bytes) -> None:
    """Give the finished file its name; FileExistsError when it is taken.

    A file system without hard links (exFAT, some network shares) gets the name by O_EXCL instead: still once only, but
    a process killed while it writes leaves a short file there, which its closing line then gives away.
    """
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        _create_exclusively(path, data)


def _create_exclusively(path: str, data: bytes) -> None:
    """Create `path` with O_EXCL, read-only and durable; FileExistsError when it is there. Undone if writing fails."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        _write_durably(descriptor, data, EVIDENCE_MODE)
    except BaseException:
        os.unlink(path)
        raise


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Make the folder's names durable, where its file system can."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise
    finally:
        os.close(descriptor)
