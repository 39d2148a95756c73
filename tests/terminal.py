"""Running a command on a terminal of its own, and reading what it prints there."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path

__all__ = ["on_terminal"]

_ROOT = Path(__file__).parents[1]


def on_terminal(width: int, *arguments: str) -> bytes:
    """What Python with these arguments prints on a terminal of so many columns; colours are not asked for."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    read: list[bytes] = []

    def listen() -> None:
        try:
            while piece := os.read(ours, 1 << 16):
                read.append(piece)
        except OSError:  # how a terminal ends that nobody has open any more
            return

    listener = threading.Thread(target=listen)
    listener.start()
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    done = subprocess.run(
        [sys.executable, *arguments],
        stdout=its,
        stderr=subprocess.PIPE,
        env=environment | {"TERM": "xterm", "NO_COLOR": "1"},
        cwd=_ROOT,
        check=False,
    )
    os.close(its)
    listener.join()
    os.close(ours)
    assert done.returncode == 0, done.stderr
    return b"".join(read)
