"""The seam behind which every runner works: a request goes in, evidence comes out (headless agent runs).

A runner says what happened and judges nothing; `tasks.agents.verdict` does. It may end a run itself at a limit it can
watch better than we can; everything else is stopped from outside through `Watch.stopping`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol

from schemas.agent_run import ModelCall, StopReason, ToolUse
from schemas.agent_spec import AgentSpec, RunnerName
from tasks.agents.watch import Watch

__all__ = ["Prior", "RunEvidence", "RunRequest", "Runner", "Transcripts", "TurnEnd"]

TurnEnd = Literal["completed", "failed", "aborted", "open", "none"]
"""How the run's last turn ended, by the runner's own record. ``open``: it began and nothing closes it. ``none``: no
turn began."""


@dataclass(frozen=True)
class Prior:
    """The session that a run continues, and what runs before it used: runners give cumulative figures."""

    session_id: str
    calls: tuple[ModelCall, ...] = ()
    cost_reported_microusd: int = 0


@dataclass(frozen=True)
class RunRequest:
    """One run. ``workspace`` is where the agent works and ``home`` a private folder of this run for all that the
    runner keeps, transcripts too; both exist. ``environment`` is the whole environment of a child process: nothing of
    ours is inherited. ``keys`` are API keys by provider."""

    run_id: str
    spec: AgentSpec
    prompt: str
    workspace: Path
    home: Path
    environment: Mapping[str, str] = field(repr=False)
    keys: Mapping[str, str] = field(repr=False)
    prior: Prior | None = None


@dataclass(frozen=True)
class Transcripts:
    """What a run left for the archive: ``files`` below ``root``, landed as ``kind``."""

    kind: Literal["dsh", "claude-code", "codex", "relavium"]
    root: Path
    files: tuple[Path, ...] = ()


@dataclass(frozen=True)
class RunEvidence:
    """What a run left to be judged by.

    ``calls`` and ``tools`` are this run's alone, in order. ``stop`` is why the runner itself ended the run, or what
    kind of failure it met; None where it knows none. ``detail`` says it in words, with secrets masked.
    ``exit_code`` is negative for a signal, None where there was no process. ``cost_reported_microusd`` is what the
    runner itself says this run cost.
    """

    version: str
    turn: TurnEnd
    final_text: str = ""
    session_id: str | None = None
    exit_code: int | None = None
    stop: StopReason | None = None
    detail: str = ""
    calls: tuple[ModelCall, ...] = ()
    tools: tuple[ToolUse, ...] = ()
    cost_reported_microusd: int | None = None
    transcripts: Transcripts | None = None

    def masked(self, mask: Callable[[str], str]) -> RunEvidence:
        """The evidence with every text masked that a model, a tool or a program may have chosen."""
        return replace(
            self,
            final_text=mask(self.final_text),
            detail=mask(self.detail),
            session_id=None if self.session_id is None else mask(self.session_id),
            calls=tuple(replace(call, key=mask(call.key), model=mask(call.model)) for call in self.calls),
            tools=tuple(replace(tool, name=mask(tool.name)) for tool in self.tools),
        )


class Runner(Protocol):
    """One kind of agent program, or an agent of our own."""

    @property
    def name(self) -> RunnerName: ...

    def version(self) -> str:
        """The version that would run; raises `RunnerMissing` with what to install."""
        ...

    async def run(self, request: RunRequest, watch: Watch) -> RunEvidence:
        """Run to the end, or until ``watch.stopping`` is set: then end within ``limits.grace_seconds``, with all the
        evidence there is. Every model call and tool use is reported to ``watch`` as soon as it is known. When
        cancelled it leaves no process behind. Raises `RunnerMissing`; other failures are evidence."""
        ...
