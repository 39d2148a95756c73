"""Commands that may write below some folders only: Linux's Landlock, asked for in the child before the command starts.

From its version 6 on it also keeps a command from signalling, or reaching by an abstract socket, what it did not start:
the process that supervises the run, and any other of the user's. What Landlock does not see stays possible: a command
may change mode, owner and times of files outside of its folders, as far as its user may.
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

__all__ = ["available", "confine_to", "scopes_signals"]

_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_NO_NEW_PRIVS: Final = 38
_VERSION_FLAG: Final = 1
_PATH_BENEATH: Final = 1
_REFER_FROM: Final = 2
_TRUNCATE_FROM: Final = 3
_SCOPE_FROM: Final = 6
"""The versions of Landlock from which files may be moved between folders at all, truncation is seen, and signals and
abstract sockets are."""

_WRITE_FILE: Final = 1 << 1
_TREE: Final = sum(1 << bit for bit in (4, 5, 6, 7, 8, 9, 10, 11, 12))
"""Removing and making directories, files, sockets, pipes, devices and links."""
_REFER: Final = 1 << 13
_TRUNCATE: Final = 1 << 14
_ABSTRACT_SOCKETS: Final = 1 << 0
_SIGNALS: Final = 1 << 1


@cache
def available() -> bool:
    """Whether commands can be confined here."""
    return sys.platform == "linux" and _version() >= 1


def confine_to(folders: Sequence[Path]) -> Callable[[], None]:
    """What to call in a child, once and before it becomes the command: from then on it writes nowhere but below these
    folders and to /dev/null, and, where `scopes_signals`, signals only what it started. Raises OSError there when it
    cannot be done.
    """
    rights = _WRITE_FILE | _TREE
    rights |= _REFER if _version() >= _REFER_FROM else 0
    rights |= _TRUNCATE if _version() >= _TRUNCATE_FROM else 0
    # handled_access_fs, handled_access_net, scoped: an older kernel knows the first alone.
    handled = (
        struct.pack("QQQ", rights, 0, _ABSTRACT_SOCKETS | _SIGNALS) if scopes_signals() else struct.pack("Q", rights)
    )
    libc = ctypes.CDLL(None, use_errno=True)
    paths = [(os.fsencode(folder), rights) for folder in folders] + [(b"/dev/null", _WRITE_FILE)]

    def confine() -> None:
        rules = _checked(libc.syscall(_CREATE_RULESET, handled, ctypes.c_size_t(len(handled)), 0))
        for path, allowed in paths:
            beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
            rule = struct.pack("=Qi", allowed, beneath)
            _checked(libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, rule, 0))
            os.close(beneath)
        _checked(libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
        _checked(libc.syscall(_RESTRICT_SELF, rules, 0))
        os.close(rules)

    return confine


def scopes_signals() -> bool:
    """Whether a command that is confined here can signal nothing but what it started."""
    return _version() >= _SCOPE_FROM


@cache
def _version() -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    return int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG))


def _checked(value: int) -> int:
    if value < 0:
        raise OSError(ctypes.get_errno(), "this command cannot be confined")
    return value
