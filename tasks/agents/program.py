"""What the runners of other people's programs have in common: finding the program, and reading lines of JSON."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from schemas.agent_run import TokenCount, is_count
from schemas.agent_spec import AgentSpec
from schemas.errors import RunnerMissing, WrongUse

__all__ = ["JsonObject", "find_program", "objects", "program_version", "refuse_unsupported", "tokens"]

JsonObject = dict[str, Any]
_VERSION_SECONDS: Final = 30
_FIELDS: Final = (
    "temperature",
    "max_tokens",
    "mcp_servers",
    "memory",
    "fallback_chain",
    "input_schema",
    "output_schema",
)

_decode = msgspec.json.Decoder().decode


def find_program(runner: str, program: str, remedy: str) -> str:
    """The path of `program`, a name on the search path or a path. Raises `RunnerMissing`."""
    found = shutil.which(program)
    if found is None:
        raise RunnerMissing(runner, f"the program {program} is not there", remedy)
    return os.path.abspath(found)


def program_version(runner: str, path: str, remedy: str) -> str:
    """What the program at `path` says of its version. Raises `RunnerMissing` where it says nothing."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/nonexistent"}
    try:
        said = subprocess.run(
            [path, "--version"],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_VERSION_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunnerMissing(runner, f"{path} does not start: {type(error).__name__}", remedy) from None
    words = said.stdout.split()
    number = next((word for word in words if word[:1].isdigit()), "")
    if said.returncode or not number:
        raise RunnerMissing(runner, f"{path} does not say its version", remedy)
    return number


def refuse_unsupported(runner: str, spec: AgentSpec, supported: frozenset[str]) -> None:
    """Raises `WrongUse` for a field of the agent that this runner would have to ignore."""
    given = [name for name in _FIELDS if getattr(spec.agent, name) is not None and name not in supported]
    if given:
        raise WrongUse(f"agent {spec.name}: runner {runner} has no use for agent.{given[0]} — leave it out")


def objects(line: bytes) -> JsonObject | None:
    """The object on a line; None for anything else: programs print warnings among their records."""
    try:
        found = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found if isinstance(found, dict) else None


def tokens(usage: Mapping[str, Any], names: tuple[str, str, str, str], reasoning: object = None) -> TokenCount | None:
    """Counts from the fields of `usage` that hold input, cache reads, cache writes and output; what is absent is 0.
    None where one of them is no count: what was used is unknown then."""
    told = [0 if value is None else value for value in (*map(usage.get, names), reasoning)]
    counts = [value for value in told if is_count(value)]
    return TokenCount(*counts) if len(counts) == len(told) else None
