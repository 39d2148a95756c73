"""The runners by name. Each is imported where it is used, so that one without its extra keeps none of the others."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.agent_spec import RunnerName
from tasks.agents.runner import Runner

__all__ = ["Programs", "runner"]


@dataclass(frozen=True)
class Programs:
    """Names on the search path, or paths, of other people's programs."""

    claude: str = "claude"
    codex: str = "codex"


def runner(name: RunnerName, programs: Programs) -> Runner:
    """The runner of this name; whether it is installed is only known when it is asked for its version."""
    if name == "claude-code":
        from tasks.agents.claude_code import ClaudeCode

        return ClaudeCode(programs.claude)
    if name == "codex":
        from tasks.agents.codex import Codex

        return Codex(programs.codex)
    if name == "dsh":
        from tasks.agents.dsh import Dsh

        return Dsh()
    from tasks.agents.native.runner import Native

    return Native()
