"""Commands that may write below some folders only: Linux's Landlock, asked for in the child before the command starts.

It is not everywhere (an old kernel, another system), so `available` says whether it can be relied on; a command that
should be confined and cannot be is not run at all.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

__all__ = ["available", "confine_to"]

_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_NO_NEW_PRIVS: Final = 38
_VERSION_FLAG: Final = 1
_PATH_BENEATH: Final = 1
_REFER_FROM: Final = 2
_TRUNCATE_FROM: Final = 3
"""The versions of Landlock from which files may be moved between folders at all, and truncation is seen."""

_WRITE_FILE: Final = 1 << 1
_TREE: Final = sum(1 << bit for bit in (4, 5, 6, 7, 8, 9, 10, 11, 12))
"""Removing and making directories, files, sockets, pipes, devices and links."""
_REFER: Final = 1 << 13
_TRUNCATE: Final = 1 << 14


@cache
def available() -> bool:
    """Whether commands can be confined here."""
    return sys.platform == "linux" and _version() >= 1


def confine_to(folders: Sequence[Path]) -> Callable[[], None]:
    """What to call in a child, once and before it becomes the command: from then on it writes nowhere but below these
    folders and to /dev/null. Raises OSError there when it cannot be done.
    """
    rights = _WRITE_FILE | _TREE
    rights |= _REFER if _version() >= _REFER_FROM else 0
    rights |= _TRUNCATE if _version() >= _TRUNCATE_FROM else 0
    libc = ctypes.CDLL(None, use_errno=True)
    paths = [(os.fsencode(folder), rights) for folder in folders] + [(b"/dev/null", _WRITE_FILE)]

    def confine() -> None:
        rules = _checked(libc.syscall(_CREATE_RULESET, struct.pack("Q", rights), ctypes.c_size_t(8), 0))
        for path, allowed in paths:
            beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
            rule = struct.pack("=Qi", allowed, beneath)
            _checked(libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, rule, 0))
            os.close(beneath)
        _checked(libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
        _checked(libc.syscall(_RESTRICT_SELF, rules, 0))
        os.close(rules)

    return confine


@cache
def _version() -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    return int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG))


def _checked(value: int) -> int:
    if value < 0:
        raise OSError(ctypes.get_errno(), "this command cannot be confined")
    return value
