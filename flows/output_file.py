"""One file of a command's answer, written whole to a place that the caller names.

Unlike an object in a store, such a file is the caller's: links lead to it, its mode stays, and what is not an ordinary
file (a pipe, a device) is never replaced.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import sys
from pathlib import Path

from schemas.errors import WrongUse
from storage.keys import TEMPORARY

__all__ = ["write_output"]


def write_output(name: str, data: bytes) -> None:
    """`data` becomes the file that `name` leads to, or what was there stays. Raises `WrongUse` for what is no file, and
    `OSError`, naming it, where the system fails."""
    standing = _standing(name)
    path = Path(os.path.realpath(name))
    if not path.parent.is_dir():
        raise WrongUse(f"{name}: not a file in a folder that is there")
    try:
        _replace(path, data, standing)
    except (PermissionError, FileNotFoundError) as error:
        raise WrongUse(f"{name}: cannot be written: {error.strerror}") from None
    except OSError as error:
        # The name of the temporary file would say nothing to whoever asked for this one.
        raise OSError(error.errno, error.strerror, name) from None


def _standing(name: str) -> os.stat_result | None:
    """The file that is there, if any; refused when it is none to be replaced."""
    if not os.path.basename(name):
        raise WrongUse(f"{name!r} names no file")
    try:
        status = os.stat(name)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise WrongUse(f"{name}: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        raise WrongUse(f"{name}: not an ordinary file, so it is not replaced; write -o - for standard output")
    if _is_standard_output(status):
        raise WrongUse(f"{name}: is standard output; write -o - for that")
    return status


def _is_standard_output(status: os.stat_result) -> bool:
    with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or no file at all
        return os.path.samestat(status, os.fstat(sys.stdout.fileno()))
    return False


def _replace(path: Path, data: bytes, standing: os.stat_result | None) -> None:
    temporary = path.parent / f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(8)}"
    mode = 0o666 if standing is None else 0o600  # a new file's is cut by the umask
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if standing is not None:
                with contextlib.suppress(PermissionError):  # only some may give a file away
                    os.fchown(descriptor, standing.st_uid, standing.st_gid)
                os.fchmod(descriptor, stat.S_IMODE(standing.st_mode))
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
