"""Where the secrets of agents come from: the environment of the process that runs them, or Prefect Secret blocks."""

from __future__ import annotations

import os
from typing import Any

from schemas.agent_spec import AgentSpec, SecretRef
from tasks.agents.environment import Lookup

__all__ = ["secrets_of"]


async def secrets_of(spec: AgentSpec) -> Lookup:
    """A lookup for the secrets of `spec`; its blocks are read now. One that is not there is None."""
    blocks = {name: await _block(name) for each in spec.secrets().values() if (name := each.block) is not None}

    def find(reference: SecretRef) -> str | None:
        if reference.env is not None:
            return os.environ.get(reference.env)
        return blocks.get(reference.block or "")

    return find


async def _block(name: str) -> str | None:
    from prefect.blocks.system import Secret

    try:
        block: Any = await Secret.aload(name)
    except ValueError:
        return None
    value = block.get()
    return value if isinstance(value, str) else None
