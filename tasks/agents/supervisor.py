"""The process that stands between us and an agent program, so that no process of a run outlives it.

Run as ``python -I -S supervisor.py CONTROL STATUS GRACE PROGRAM ARGUMENT…`` with two inherited descriptors. It is made
a subreaper: whatever the program starts, in whatever session, falls to it when its parent dies, and is killed when the
program ends. When CONTROL is closed, by us or because we were killed ourselves, the program gets SIGTERM, and GRACE
seconds later everything gets SIGKILL. STATUS receives one JSON line each for the program's start and its end.

Only the standard library is used and nothing of ours imported: starting it has to cost milliseconds.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def main(control: int, status: int, grace: float, command: list[str]) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake_read, wake_write = os.pipe()
    for end in (wake_read, wake_write):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _note)
    os.set_inheritable(control, False)
    os.set_inheritable(status, False)
    program = _start(libc, command, status)
    _say(status, {"pid": program})
    code = _watch(program, control, wake_read, grace)
    _end_all()
    _say(status, {"exit": code})
    return 0


_ASKED: list[int] = []


def _note(number: int, frame: object) -> None:
    if number != signal.SIGCHLD:
        _ASKED.append(number)


def _start(libc: ctypes.CDLL, command: list[str], status: int) -> int:
    """The program's process, in a session of its own; it dies with us even if we are killed."""
    ours = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != ours:
            os._exit(127)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.execv(command[0], command)
    except OSError as error:
        _say(status, {"missing": error.strerror or str(error)})
    os._exit(127)


def _watch(program: int, control: int, wake: int, grace: float) -> int | None:
    """Wait for the program's end, and ask for it when told. Its exit code, negative for a signal."""
    watched, deadline = [control, wake], None
    while True:
        ready = select.select(watched, [], [], None if deadline is None else max(0.0, deadline - time.monotonic()))[0]
        if wake in ready:
            os.read(wake, 4096)
        code = _reap(program)
        if code is not None:
            return code
        if deadline is None and (control in ready or _ASKED):
            watched = [wake]
            deadline = time.monotonic() + grace
            _signal(program, signal.SIGTERM)
        elif deadline is not None and time.monotonic() >= deadline:
            _signal(program, signal.SIGKILL)
            deadline = time.monotonic() + 1.0


def _reap(program: int) -> int | None:
    """Take every process that has ended; the program's exit code if it is among them."""
    code = None
    while True:
        try:
            found, ended = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if found == 0:
            return code
        if found == program:
            code = os.waitstatus_to_exitcode(ended)


def _end_all() -> None:
    """Kill what is left of the program's processes: those that fall to us, until there are none."""
    while True:
        children = _children()
        for child in children:
            _kill(child)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children() -> list[int]:
    ours = os.getpid()
    with open(f"/proc/{ours}/task/{ours}/children") as listed:
        return [int(child) for child in listed.read().split()]


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def _say(status: int, value: dict[str, object]) -> None:
    with contextlib.suppress(OSError):  # nobody listens any more
        os.write(status, json.dumps(value).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:]))
