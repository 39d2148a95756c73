"""Running one command of an agent: bounded in time and output, and ended with all it started.

It stays in this process's group, so that whoever ends the run ends it too, and with it what a command left running.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["run_command"]

_MAX_OUTPUT: Final = 48 * 1024
_AFTER_EXIT: Final = 1.0
"""Seconds that output may still come once the command has ended: something it left running may hold its pipe."""


async def run_command(
    command: Sequence[str],
    folder: Path,
    *,
    environment: Mapping[str, str],
    seconds: float,
    setup: Callable[[], None] | None,
    begun: Callable[[bytes], int],
) -> str:
    """The command's exit code and output, stdout and stderr as they came. Output that is too long is cut, and with it
    the ``begun`` last bytes of what was kept. Raises OSError when it cannot be started.
    """
    # A pipe of our own: asyncio takes a process for ended only when nobody holds its pipes any more.
    read_end, write_end = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            env=dict(environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=write_end,
            stderr=asyncio.subprocess.STDOUT,
            preexec_fn=setup,
        )
    except BaseException:
        os.close(read_end)
        raise
    finally:
        os.close(write_end)
    output = _Output(begun)
    reading = asyncio.create_task(output.read(read_end))
    try:
        async with asyncio.timeout(seconds):
            code = await process.wait()
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(reading), _AFTER_EXIT)
        ended = f"exit code {code}"
        # What it left running may go on writing; that is read, and nobody sees it.
        _READING.add(reading)
        reading.add_done_callback(_READING.discard)
    except TimeoutError:
        ended = f"stopped after {seconds:g} seconds"
    finally:
        if process.returncode is None:
            _end_tree(process.pid)
            await process.wait()
        if reading not in _READING:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading
    return f"[{ended}]\n{output.text()}"


_READING: Final[set[asyncio.Task[None]]] = set()
"""Held here: an event loop holds its tasks weakly."""


class _Output:
    """The first bytes of a stream; the rest is read and counted."""

    def __init__(self, begun: Callable[[bytes], int]) -> None:
        self._begun = begun
        self._kept = bytearray()
        self._more = 0

    async def read(self, pipe: int) -> None:
        """Read the pipe to its end, and close it."""
        stream = asyncio.StreamReader()
        with os.fdopen(pipe, "rb", buffering=0) as file:
            connected, _ = await asyncio.get_running_loop().connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(stream), file
            )
            try:
                while data := await stream.read(65536):
                    room = _MAX_OUTPUT - len(self._kept)
                    self._kept += data[:room]
                    self._more += max(len(data) - room, 0)
            finally:
                connected.close()

    def text(self) -> str:
        kept = bytes(self._kept)
        if not self._more:
            return kept.decode("utf-8", errors="replace")
        cut = self._begun(kept)
        return f"{kept[: len(kept) - cut].decode('utf-8', errors='replace')}\n[{self._more + cut} more bytes]"


def _end_tree(root: int) -> None:
    """Kill a process and all that descend from it, as far as they are still attached to it."""
    for pid in (*_descendants(root), root):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _descendants(root: int) -> list[int]:
    found: list[int] = []
    for pid in _children(root):
        found += [*_descendants(pid), pid]
    return found


def _children(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (OSError, ValueError):
        return []
