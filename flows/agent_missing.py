"""What an agent needs and this machine has not: its runner, variables for its secrets, its workspace, an archive.

Names only: whether a variable is set is all that is asked of it. Prefect blocks are not looked up, for that takes a
server.
"""

from __future__ import annotations

import os
from pathlib import Path

from flows.settings import Settings
from schemas.agent_spec import AgentSpec

__all__ = ["missing_for"]


def missing_for(spec: AgentSpec, settings: Settings) -> list[str]:
    """One sentence for each thing that a run of the agent would miss here, but for its runner."""
    named = {ref.env: place for place, ref in spec.secrets().items() if ref.env is not None}
    said = [f"the variable {name} is not set ({place})" for name, place in named.items() if not os.environ.get(name)]
    workspace = spec.workspace
    if workspace.path is not None and not Path(workspace.path).is_dir():
        said.append(f"workspace: {workspace.path} is not a folder")
    if (spec.archive or settings.agents_archive) is None:
        said.append("no archive for runs — set agents_archive, name one in the specification, or run it with --archive")
    return said
