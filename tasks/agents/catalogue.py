"""The folder in which a team keeps its agents: one YAML file each, and no agent twice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from schemas.agent_spec import AgentSpec, read_agent_spec
from schemas.errors import AgentSpecRejected, WrongUse

__all__ = ["SpecFile", "read_folder", "read_spec"]


@dataclass(frozen=True)
class SpecFile:
    """A file of the folder, and the agent in it or why it was refused."""

    path: Path
    spec: AgentSpec | None
    refused: AgentSpecRejected | None = None


def read_spec(path: Path) -> AgentSpec:
    """The agent in a file. Raises `AgentSpecRejected`, and `WrongUse` for a file that is not there."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise WrongUse(f"{path}: no such specification") from None
    except OSError as error:
        raise WrongUse(f"{path}: the specification cannot be read: {error.strerror}") from None
    return read_agent_spec(data, name=str(path))


def read_folder(folder: Path) -> list[SpecFile]:
    """Every ``*.yaml`` of the folder, by name. A name that an earlier file has is refused. Raises `WrongUse`."""
    if not folder.is_dir():
        raise WrongUse(f"{folder}: no such folder of agents")
    found: list[SpecFile] = []
    names: dict[str, Path] = {}
    for path in sorted(folder.glob("*.yaml")):
        try:
            spec = read_spec(path)
            first = names.setdefault(spec.name, path)
            if first != path:
                raise AgentSpecRejected(str(path), "duplicate", "name", f"{first.name} is {spec.name} already")
        except AgentSpecRejected as error:
            found.append(SpecFile(path, None, error))
        else:
            found.append(SpecFile(path, spec))
    return found
