"""The tools of a native agent: it reads, lists and writes files of its workspace, and runs commands there.

What a run permits can only be narrowed: the mode decides first, then the agent's and the run's lists. No path leaves
the workspace, through a link neither. A command is a program and its arguments, without a shell and without this
run's keys; unless the mode is ``full`` it can write nowhere but to the workspace and its temporary folder.
"""

from __future__ import annotations

import os
import stat
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import SubprocessError
from typing import Any, Final, Literal

from msgspec import DecodeError, json

from tasks.agents.native import confinement
from tasks.agents.native.beneath import open_beneath
from tasks.agents.native.commands import run_command
from tasks.agents.native.conversation import ToolCall, ToolResult, ToolSpec

__all__ = ["MAX_RESULT", "TOOLS", "Mode", "WorkspaceTools"]

Mode = Literal["read-only", "workspace-write", "full"]

MAX_RESULT: Final = 64 * 1024
"""So many characters of a result the model is shown."""
_READ: Final = MAX_RESULT - 100
_MAX_ENTRIES: Final = 1000
_LARGEST: Final = 2**53 - 1
_MAX_WRITE: Final = 8 * 1024 * 1024


def _tool(name: str, description: str, required: Sequence[str], **properties: dict[str, Any]) -> ToolSpec:
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return ToolSpec(name, description, schema)


_TEXT: Final = {"type": "string"}
_PATH: Final = {"type": "string", "description": "Relative to the workspace."}

TOOLS: Final = {
    tool.name: tool
    for tool in (
        _tool(
            "read_file",
            "Read a text file of the workspace.",
            ["path"],
            path=_PATH,
            offset={"type": "integer", "minimum": 0, "description": "First byte to give."},
        ),
        _tool("list_files", "List a folder of the workspace; folders end with a slash.", [], path=_PATH),
        _tool(
            "write_file",
            "Write a text file of the workspace whole; folders that are missing are made.",
            ["path", "content"],
            path=_PATH,
            content=_TEXT,
        ),
        _tool(
            "run_command",
            "Run a program in the workspace, without a shell; gives its output and exit code.",
            ["command"],
            command={"type": "string", "description": "The program alone."},
            args={"type": "array", "items": _TEXT},
            timeout_seconds={"type": "integer", "minimum": 1, "maximum": 600},
        ),
    )
}
_CHANGING: Final = frozenset({"write_file", "run_command"})


class _Refused(Exception):
    """A call that cannot be carried out; its sentence is for the model."""


@dataclass(frozen=True)
class WorkspaceTools:
    """The tools of one run in one workspace. ``environment`` is all that commands get of it. ``begun`` says how many
    bytes at the end of what was cut begin a secret: these are cut too, for in part it would not be masked."""

    workspace: Path
    mode: Mode
    only: frozenset[str] | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    temporary: Path | None = None
    begun: Callable[[bytes], int] = lambda data: 0

    def permit(self, name: str) -> Literal["run", "denied", "unknown"]:
        """Whether a tool may be called."""
        if name not in TOOLS:
            return "unknown"
        if self.only is not None and name not in self.only:
            return "denied"
        if name in _CHANGING and self.mode == "read-only":
            return "denied"
        if name == "run_command" and self.mode != "full" and not confinement.available():
            return "denied"
        return "run"

    @property
    def offered(self) -> tuple[ToolSpec, ...]:
        """What the model is told of: the tools it may call."""
        return tuple(tool for name, tool in TOOLS.items() if self.permit(name) == "run")

    async def call(self, call: ToolCall) -> ToolResult:
        """Carry out one call; whatever is wrong with it is its result."""
        try:
            given = json.decode(call.arguments or "{}")
        except (DecodeError, RecursionError) as error:
            return ToolResult(call.id, f"The arguments are no JSON: {error}.", "error", "INVALID_ARGUMENTS")
        if not isinstance(given, dict):
            return ToolResult(call.id, "The arguments are no JSON object.", "error", "INVALID_ARGUMENTS")
        try:
            text = await self._dispatch(call.name, given)
        except (_Refused, OSError, ValueError, RuntimeError, SubprocessError) as error:
            # A NUL in a name is a ValueError, a link that leads to itself a RuntimeError.
            return ToolResult(call.id, _sentence(error, given), "error", "TOOL_FAILED")
        return ToolResult(call.id, self._bounded(text))

    async def _dispatch(self, name: str, given: dict[str, Any]) -> str:
        if name == "read_file":
            return self._read(_text(given, "path"), _number(given, "offset", 0))
        if name == "list_files":
            return self._list(_text(given, "path", "."))
        if name == "write_file":
            return self._write(_text(given, "path"), _text(given, "content"))
        arguments = given.get("args", [])
        if not isinstance(arguments, list) or not all(isinstance(each, str) for each in arguments):
            raise _Refused("args is no list of texts")
        folders = [self.workspace] + ([self.temporary] if self.temporary else [])
        return await run_command(
            [_text(given, "command"), *arguments],
            self.workspace,
            environment=self.environment,
            seconds=min(_number(given, "timeout_seconds", 120), 600),
            setup=confinement.confine_to(folders) if self.mode != "full" else None,
            begun=self.begun,
        )

    def _open(self, name: str, flags: int, *, make_folders: bool = False) -> int:
        root = self.workspace.resolve()
        path = (root / name).resolve()
        if not path.is_relative_to(root):
            raise _Refused(f"{name} is outside the workspace")
        return open_beneath(root, path, flags, make_folders=make_folders)

    @contextmanager
    def _file(self, name: str, flags: int, *, make_folders: bool = False) -> Iterator[int]:
        descriptor = self._open(name, flags, make_folders=make_folders)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise _Refused(f"{name} is no file")
            yield descriptor
        finally:
            os.close(descriptor)

    def _read(self, name: str, offset: int) -> str:
        with self._file(name, os.O_RDONLY) as file:
            data = os.pread(file, _READ, offset)
            more = os.pread(file, 1, offset + len(data)) != b""
        if more:
            # The next part has it from its beginning.
            data = data[: len(data) - self.begun(data)]
        decoder = getincrementaldecoder("utf-8")(errors="replace")
        text = decoder.decode(data, final=not more)
        if not more:
            return text
        # What is left over is the beginning of a character.
        following = offset + len(data) - len(decoder.getstate()[0])
        return f"{text}\n[more from byte {following} on]"

    def _list(self, name: str) -> str:
        folder = self._open(name, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with os.scandir(folder) as entries:
                names = sorted(f"{each.name}/" if each.is_dir(follow_symlinks=False) else each.name for each in entries)
        finally:
            os.close(folder)
        more = [f"[{len(names) - _MAX_ENTRIES} more]"] if len(names) > _MAX_ENTRIES else []
        return "\n".join(names[:_MAX_ENTRIES] + more) or "[empty]"

    def _bounded(self, text: str) -> str:
        if len(text) <= MAX_RESULT:
            return text
        kept = text[:MAX_RESULT].encode("utf-8", errors="surrogatepass")
        shown = kept[: len(kept) - self.begun(kept)].decode("utf-8", errors="surrogatepass")
        return f"{shown}\n[cut after {MAX_RESULT} characters]"

    def _write(self, name: str, content: str) -> str:
        data = content.encode("utf-8", errors="surrogateescape")
        if len(data) > _MAX_WRITE:
            raise _Refused(f"{len(data)} bytes, above the limit of {_MAX_WRITE}")
        with self._file(name, os.O_WRONLY | os.O_CREAT, make_folders=True) as file:
            os.ftruncate(file, 0)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(file, rest) :]
        return f"wrote {len(data)} bytes to {name}"


def _text(given: dict[str, Any], name: str, default: str | None = None) -> str:
    value = given.get(name, default)
    if not isinstance(value, str) or (not value and name != "content"):
        raise _Refused(f"{name} is missing, or no text")
    return value


def _number(given: dict[str, Any], name: str, default: int) -> int:
    value = given.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST:
        raise _Refused(f"{name} is no whole number")
    return value


def _sentence(error: Exception, given: dict[str, Any]) -> str:
    if isinstance(error, OSError):
        return f"{error.strerror or type(error).__name__}: {given.get('path') or given.get('command') or '.'}"
    return f"{error}."
