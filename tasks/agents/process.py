"""One agent program as a child process: bounded, watched, and gone when it is over (headless agent runs).

The program runs below a supervisor of ours (`tasks.agents.supervisor`), which ends it and all it started when we ask,
and also when we are killed. Its environment is exactly what is given: nothing of this process is inherited.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tasks.agents.watch import Watch

__all__ = ["Ended", "Launch", "run_program"]

_SUPERVISOR: Final = Path(__file__).with_name("supervisor.py")
_LONGEST_LINE: Final = 16 * 1024 * 1024
_CHUNK: Final = 1 << 16
_STDERR_KEPT: Final = 16 * 1024
_SUPERVISOR_SECONDS: Final = 5.0


@dataclass(frozen=True)
class Launch:
    """A program to run; ``command[0]`` is its path."""

    command: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str] = field(repr=False)
    given: bytes = b""
    """What it reads from its standard input."""


@dataclass(frozen=True)
class Ended:
    """How a program ended. ``exit_code`` is negative for a signal and None where its end was not seen. ``error`` is the
    end of its standard error; ``overlong`` counts lines that were too long to be read."""

    exit_code: int | None
    error: str
    overlong: int = 0
    missing: str = ""
    """Why it could not be started."""


async def run_program(launch: Launch, watch: Watch, line: Callable[[bytes], None]) -> Ended:
    """Run to the end, or until the watch asks for one; each line of standard output goes to ``line``.

    Returns only when no process of the program is left. Cancelled, it ends the program first.
    """
    control_read, control_write = os.pipe()
    status_read, status_write = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            str(_SUPERVISOR),
            str(control_read),
            str(status_write),
            str(watch.limits.grace_seconds),
            *launch.command,
            cwd=launch.folder,
            env=dict(launch.environment),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=(control_read, status_write),
            start_new_session=True,
        )
    except BaseException:
        os.close(control_write)
        os.close(status_read)
        raise
    finally:
        os.close(control_read)
        os.close(status_write)
    return await _Run(process, watch, control_write, status_read).to_the_end(launch.given, line)


class _Run:
    """A running supervisor and the pipes to it."""

    def __init__(self, process: asyncio.subprocess.Process, watch: Watch, control: int, status: int) -> None:
        self._process = process
        self._watch = watch
        self._control: int | None = control
        self._status = status
        self._said: dict[str, Any] = {}

    async def to_the_end(self, given: bytes, line: Callable[[bytes], None]) -> Ended:
        work = asyncio.ensure_future(self._communicate(given, line))
        asked = asyncio.ensure_future(self._watch.stopping.wait())
        try:
            await asyncio.wait({work, asked}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                await self._end(work)
        except asyncio.CancelledError:
            # The program's end is waited for even so: a cancelled run leaves no process.
            await asyncio.shield(self._end(work))
            raise
        finally:
            asked.cancel()
            work.cancel()
            self._close_control()
            said = self._facts()
            os.close(self._status)
        error, overlong = work.result()
        if "exit" not in said:
            self._kill_group()
        return Ended(said.get("exit"), error, overlong, str(said.get("missing", "")))

    async def _end(self, work: asyncio.Future[Any]) -> None:
        self._close_control()
        await asyncio.wait({work}, timeout=self._watch.limits.grace_seconds + _SUPERVISOR_SECONDS)
        if not work.done():
            with suppress(ProcessLookupError):
                self._process.kill()
            self._facts()
            self._kill_group()
            await asyncio.wait({work}, timeout=_SUPERVISOR_SECONDS)

    def _close_control(self) -> None:
        if self._control is not None:
            os.close(self._control)
            self._control = None

    def _kill_group(self) -> None:
        """The supervisor was killed, and the program with it; what the program started is in its group."""
        if (program := self._said.get("pid")) is not None:
            with suppress(ProcessLookupError):
                os.killpg(program, signal.SIGKILL)

    def _facts(self) -> dict[str, Any]:
        """What the supervisor has said so far."""
        os.set_blocking(self._status, False)
        with suppress(BlockingIOError):
            for each in os.read(self._status, _CHUNK).splitlines():
                self._said.update(json.loads(each))
        return self._said

    async def _communicate(self, given: bytes, line: Callable[[bytes], None]) -> tuple[str, int]:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        _, overlong, error, _ = await asyncio.gather(
            _write(process.stdin, given),
            _lines(process.stdout, line),
            _tail(process.stderr),
            process.wait(),
        )
        return error, overlong


async def _write(pipe: asyncio.StreamWriter, given: bytes) -> None:
    # A program that ends without reading its input is judged by how it ends.
    with suppress(ConnectionError):
        pipe.write(given)
        await pipe.drain()
    pipe.close()
    with suppress(ConnectionError):
        await pipe.wait_closed()


async def _lines(pipe: asyncio.StreamReader, line: Callable[[bytes], None]) -> int:
    """Give every line of the pipe, and its last piece, to ``line``; how many were too long and left out."""
    kept, overlong, skipping = bytearray(), 0, False
    while chunk := await pipe.read(_CHUNK):
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            if not skipping:
                kept += piece
                line(bytes(kept))
            kept.clear()
            skipping = False
        if not skipping:
            kept += rest
        if len(kept) > _LONGEST_LINE:
            kept.clear()
            skipping = True
            overlong += 1
    if kept:
        line(bytes(kept))
    return overlong


async def _tail(pipe: asyncio.StreamReader) -> str:
    kept = b""
    while chunk := await pipe.read(_CHUNK):
        kept = (kept + chunk)[-_STDERR_KEPT:]
    return kept.decode("utf-8", "replace")
