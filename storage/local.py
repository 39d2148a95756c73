"""Objects in a folder.

An object appears under its name whole or not at all: it is written under a temporary name in the same folder, made
durable, and then linked to its name, which fails when the name is taken. No name is ever looked at before it is used.
What a killed writer leaves under a temporary name, the first write of another process beside it removes a day later.
Symbolic links are followed only while they stay inside the root, and folders that are links are not listed (spec 2:
a stream is a directory).
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator

from schemas.errors import (
    ConfigurationRejected,
    KeyRefused,
    ObjectExists,
    ObjectMissing,
    ObjectTooLarge,
    StoreUnavailable,
)
from storage.keys import check_key, check_prefix, is_temporary
from storage.local_writes import (
    CACHE_MODE,
    EVIDENCE_MODE,
    LASTING_REFUSALS,
    link_or_create,
    sweep,
    sync_folder,
    write_temporary,
)
from storage.objects import Children, ObjectStat, ObjectStats, StoreSettings

__all__ = ["LocalStore"]

FOLDER_MODE = 0o755


class LocalStore:
    """An `ObjectStore` in a folder, which need not exist before the first object."""

    read_ahead = 1

    def __init__(self, root: str, settings: StoreSettings | None = None) -> None:
        self._root = os.path.realpath(root)
        self._inside = os.path.join(self._root, "")
        self._settings = settings or StoreSettings()
        self._swept: set[str] = set()

    @property
    def url(self) -> str:
        return self._root

    def create(self, key: str, data: bytes) -> None:
        path = self._path(key)
        self._check_size(key, len(data))
        with _refusing(key, "create"):
            self._make_folder(os.path.dirname(path))
            temporary = self._write_temporary(path, data, EVIDENCE_MODE)
            try:
                link_or_create(temporary, path, data)
            except FileExistsError:
                raise ObjectExists(key) from None
            finally:
                with contextlib.suppress(FileNotFoundError):  # swept by somebody
                    os.unlink(temporary)
            sync_folder(os.path.dirname(path))

    def replace(self, key: str, data: bytes) -> None:
        path = self._path(key)
        self._check_size(key, len(data))
        with _refusing(key, "replace"):
            self._make_folder(os.path.dirname(path))
            temporary = self._write_temporary(path, data, CACHE_MODE)
            try:
                os.replace(temporary, path)
            except BaseException:
                os.unlink(temporary)
                raise

    def read(self, key: str) -> bytes:
        with _refusing(key, "read"), self._open(key) as descriptor:
            self._check_size(key, os.fstat(descriptor).st_size)
            with open(descriptor, "rb", buffering=0, closefd=False) as file:
                return file.readall()

    def read_range(self, key: str, start: int, length: int) -> bytes:
        if start < 0 or length < 0:
            raise ValueError("a range starts at 0 or later and has no negative length")
        with _refusing(key, "read_range"), self._open(key) as descriptor:
            length = min(length, max(0, os.fstat(descriptor).st_size - start))
            self._check_size(key, length)
            pieces = []
            while length and (piece := os.pread(descriptor, length, start)):
                pieces.append(piece)
                start, length = start + len(piece), length - len(piece)
            return b"".join(pieces)

    def list(self, prefix: str) -> ObjectStats:
        check_prefix(prefix)
        found: ObjectStats = []
        waiting = [prefix]
        with _refusing(prefix, "list"):
            while waiting:
                folders, objects = self._scan(here := waiting.pop())
                found.extend(objects)
                waiting.extend(f"{here}{name}/" for name in folders)
        return sorted(found, key=lambda stat: stat.key)

    def children(self, prefix: str) -> Children:
        check_prefix(prefix)
        with _refusing(prefix, "list"):
            folders, objects = self._scan(prefix)
        return sorted(folders), sorted(objects, key=lambda stat: stat.key)

    def stat(self, key: str) -> ObjectStat | None:
        try:
            with _refusing(key, "stat"), self._open(key) as descriptor:
                return _object_stat(key, os.fstat(descriptor))
        except ObjectMissing:
            return None

    def delete(self, key: str) -> None:
        path = self._path(key)
        with contextlib.suppress(ObjectMissing), _refusing(key, "delete"):
            os.unlink(path)

    def check_root(self) -> None:
        if not os.path.isdir(self._root):
            found = "it is a file, not a folder" if os.path.lexists(self._root) else "no such folder"
            raise ConfigurationRejected(f"{self._root}: {found}")

    def _path(self, key: str) -> str:
        """Where a key lies; only its last segment may still be a link."""
        folder, slash, name = check_key(key).rpartition("/")
        return self._folder(key, folder) + name if slash else self._inside + name

    def _folder(self, key: str, folder: str) -> str:
        """Where a folder of the key lies, with a slash at its end, its links resolved."""
        path = self._inside
        for segment in folder.split("/") if folder else ():
            path += segment
            if os.path.islink(path):  # rare, and os.path.realpath of every read would cost four times as much
                return os.path.join(self._within(key, os.path.realpath(self._inside + folder)), "")
            path += "/"
        return path

    def _within(self, key: str, real: str) -> str:
        """A path without links; refused when it is not in the root."""
        if real != self._root and not real.startswith(self._inside):
            raise KeyRefused(key, "a link leads it out of the root")
        return real

    @contextlib.contextmanager
    def _open(self, key: str) -> Iterator[int]:
        path = self._path(key)
        if os.path.islink(path):
            path = self._within(key, os.path.realpath(path))
        # Not blocking: a named pipe would wait for a writer forever.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if not _is_regular(os.fstat(descriptor)):
                raise ObjectMissing(key)
            yield descriptor
        finally:
            os.close(descriptor)

    def _scan(self, prefix: str) -> Children:
        """One folder, unsorted; one that is not there (any more) is empty."""
        folders: list[str] = []
        objects: ObjectStats = []
        folder = self._folder(prefix, prefix[:-1])
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
            for entry in entries:
                if is_temporary(entry.name):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                    with contextlib.suppress(FileNotFoundError):  # deleted since
                        objects.append(_object_stat(prefix + entry.name, _follow(entry)))
        return folders, objects

    def _make_folder(self, folder: str) -> None:
        missing = []
        while folder and not os.path.isdir(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        for each in reversed(missing):
            with contextlib.suppress(FileExistsError):  # made by someone else meanwhile
                os.mkdir(each, FOLDER_MODE)
                os.chmod(each, FOLDER_MODE)  # mkdir's mode is cut by the umask
                sync_folder(os.path.dirname(each))

    def _write_temporary(self, path: str, data: bytes, mode: int) -> str:
        """The data, durable, under a temporary name beside `path`."""
        temporary = write_temporary(path, data, mode)
        if (folder := os.path.dirname(path)) not in self._swept:
            self._swept.add(folder)
            with contextlib.suppress(OSError):  # it can wait
                sweep(folder, temporary)
        return temporary

    def _check_size(self, key: str, size: int) -> None:
        if size > self._settings.max_object_bytes:
            raise ObjectTooLarge(key, size, self._settings.max_object_bytes)


@contextlib.contextmanager
def _refusing(key: str, operation: str) -> Iterator[None]:
    """The operating system's errors in our words."""
    try:
        yield
    except OSError as error:
        writing = operation in ("create", "replace")
        detail = error.strerror or str(error)
        if error.errno in (errno.ENOENT, errno.ENOTDIR) and not writing:
            raise ObjectMissing(key) from None
        if error.errno in LASTING_REFUSALS:
            raise KeyRefused(key, detail, operation) from error
        raise StoreUnavailable(key, operation, detail) from error


def _follow(entry: os.DirEntry[str]) -> os.stat_result:
    """A link counts with its target's size; a broken one with its own, so that reading it tells."""
    try:
        return entry.stat()
    except OSError:
        return entry.stat(follow_symlinks=False)


def _is_regular(status: os.stat_result) -> bool:
    return (status.st_mode & 0o170000) == 0o100000


def _object_stat(key: str, status: os.stat_result) -> ObjectStat:
    etag = f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"
    return ObjectStat(key, status.st_size, status.st_mtime, etag)
