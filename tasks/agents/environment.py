"""What an agent's process finds in its environment: what its specification names, and what every program needs.

Nothing is inherited but the search path, so sessionmill's own credentials (S3, Prefect, settings) do not reach an
agent. A secret is looked up when a run starts and lives in memory and in the child's environment only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from schemas.agent_spec import AgentSpec, SecretRef
from schemas.errors import WrongUse
from tasks.agents.masking import SHORTEST

__all__ = ["Secrets", "base_environment", "look_up"]

Lookup = Callable[[SecretRef], str | None]
"""The value of a secret, None where there is none."""


@dataclass(frozen=True)
class Secrets:
    """The secrets of one run: API keys by provider, and variables by name."""

    keys: Mapping[str, str] = field(repr=False)
    variables: Mapping[str, str] = field(repr=False)
    by_reference: Mapping[SecretRef, str] = field(repr=False)

    def values(self) -> list[str]:
        return [*self.keys.values(), *self.variables.values()]


def look_up(spec: AgentSpec, find: Lookup) -> Secrets:
    """Every secret of the specification. Raises `WrongUse` for one that is not there or too short to be kept from
    the log, naming where it should be and never its value."""
    found: dict[str, dict[str, str]] = {"endpoints": {}, "environment": {}}
    references: dict[SecretRef, str] = {}
    for place, reference in spec.secrets().items():
        value = find(reference)
        if not value:
            raise WrongUse(
                f"agent {spec.name}: {place}: there is no secret in {reference} — set it where the run works"
            )
        if len(value) < SHORTEST:
            raise WrongUse(f"agent {spec.name}: {place}: {reference} has fewer than {SHORTEST} characters, no secret")
        references[reference] = value
        kind, _, name = place.partition(".")
        found[kind][name] = value
    return Secrets(found["endpoints"], found["environment"], references)


def base_environment(spec: AgentSpec, secrets: Secrets, home: Path, path: str) -> dict[str, str]:
    """The environment of a run's process, before what its runner adds; ``path`` is the search path."""
    temporary = home / "tmp"
    temporary.mkdir(exist_ok=True)
    given = {name: each.value for name, each in spec.environment.items() if each.value is not None}
    own = {"HOME": str(home), "TMPDIR": str(temporary), "PATH": path, "USER": "agent", "LOGNAME": "agent"}
    return {"LANG": "C.UTF-8", "TZ": "UTC"} | given | dict(secrets.variables) | own
