"""Which machine this is, and whether a process of a run is still there: what tells an open run from a cut one."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Host", "started_at", "this_host"]

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_START_FIELD = 19
"""Of what follows the program's name in /proc/<id>/stat: ticks from the machine's start to the process's."""


@dataclass(frozen=True)
class Host:
    """A machine since it was started; ``boot`` is empty where the system does not tell."""

    name: str
    boot: str

    def runs(self, process: int, started: int) -> bool:
        """Whether this machine has the process that started then; its number may be another's by now."""
        return started_at(process) == started

    def works_in(self, home: Path) -> bool:
        """Whether a process of this machine has `home` for its home: an agent's own, or what it left."""
        mark = f"HOME={home}".encode()
        for found in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in found.read_bytes().split(b"\0"):
                    return True
            except OSError:
                continue  # it is gone, or another user's
        return False


def this_host() -> Host:
    """The machine that we run on."""
    try:
        boot = _BOOT.read_text().strip()
    except OSError:
        boot = ""
    return Host(socket.gethostname(), boot)


def started_at(process: int) -> int:
    """When a process started, in ticks since the machine did; -1 for one that is not there."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return -1
    return -1 if words[0] in "ZX" else int(words[_START_FIELD])
