"""Opening what lies beneath a folder, and nothing else, whatever a program does to the folders meanwhile.

A path is resolved first, so that links within the workspace work; what is opened then follows no link at all, one part
after the other. A folder that has become a link in between is an error.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["open_beneath"]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_beneath(root: Path, path: Path, flags: int, *, make_folders: bool = False) -> int:
    """A descriptor of ``path``, which is resolved and lies below ``root`` or is it. Raises OSError."""
    *folders, last = path.relative_to(root).parts or (".",)
    descriptor = os.open(root, _FOLDER)
    try:
        for name in folders:
            if make_folders:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=descriptor)
            inner = os.open(name, _FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        # Not blocking: a pipe of this name must not stop the run.
        return os.open(last, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644, dir_fd=descriptor)
    finally:
        os.close(descriptor)
