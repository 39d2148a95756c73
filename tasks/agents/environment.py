"""What an agent's process finds in its environment: what its specification names, and what every program needs.

Nothing is inherited but the search path, so sessionmill's own credentials (S3, Prefect, settings) do not reach an
agent. A secret is looked up when a run starts and lives in memory and in the child's environment only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from schemas.agent_spec import AgentSpec, SecretRef
from schemas.errors import WrongUse
from tasks.agents.masking import SHORTEST

__all__ = ["Secrets", "base_environment", "look_up"]

_WORD: Final = re.compile(r"[A-Za-z]+(?:[_./-][A-Za-z]+)*")
_WORD_BELOW: Final = 20
_SENDABLE: Final = re.compile(r"[!-~]+")

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
    """Every secret of the specification. Raises `WrongUse` for one that is not there, that could not be masked, or that
    could not be sent, naming where it should be and never its value."""
    found: dict[str, dict[str, str]] = {"endpoints": {}, "environment": {}}
    references: dict[SecretRef, str] = {}
    for place, reference in spec.secrets().items():
        value = find(reference)
        if not value:
            raise WrongUse(
                f"agent {spec.name}: {place}: there is no secret in {reference} — set it where the run works"
            )
        kind, _, name = place.partition(".")
        wrong = _unmaskable(value) or (_unsendable(value) if kind == "endpoints" else None)
        if wrong is not None:
            raise WrongUse(f"agent {spec.name}: {place}: {reference} {wrong}")
        references[reference] = value
        found[kind][name] = value
    return Secrets(found["endpoints"], found["environment"], references)


def _unmaskable(value: str) -> str | None:
    """Why the value cannot be taken out of a log or a transcript: these hold it anyway, as a name of theirs."""
    if len(value) < SHORTEST:
        return f"has fewer than {SHORTEST} characters, no secret"
    if len(value) < _WORD_BELOW and _WORD.fullmatch(value):
        return (
            f"is a word (fewer than {_WORD_BELOW} characters, letters alone), as transcripts are written with"
            " — set another secret"
        )
    return "holds a NUL, which no variable can" if "\0" in value else None


def _unsendable(value: str) -> str | None:
    """Why no provider takes the value for a key: it goes out in a header (RFC 9110, section 5.5)."""
    if value != value.strip():
        return (
            "begins or ends with white space or a line break, which is no part of a key"
            ' — set it without, as KEY="$(cat FILE)" does'
        )
    if not _SENDABLE.fullmatch(value):
        return "holds white space, a control character or one that is not ASCII, which no key has — set it anew"
    return None


def base_environment(spec: AgentSpec, secrets: Secrets, home: Path, path: str) -> dict[str, str]:
    """The environment of a run's process, before what its runner adds; ``path`` is the search path."""
    temporary = home / "tmp"
    temporary.mkdir(exist_ok=True)
    given = {name: each.value for name, each in spec.environment.items() if each.value is not None}
    own = {"HOME": str(home), "TMPDIR": str(temporary), "PATH": path, "USER": "agent", "LOGNAME": "agent"}
    return {"LANG": "C.UTF-8", "TZ": "UTC"} | given | dict(secrets.variables) | own
