"""What is kept of a headless run: small documents in the archive, written before it, after it, and when it is settled.

A run with the first and without the second is open, one without the third has still to land; whoever finds it so, with
its process gone, makes up for it. Times are RFC 3339, UTC; money is in micro-dollars.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from schemas.agent_run import ModelCall, Status, StopReason, TokenCount, ToolOutcome, ToolUse

__all__ = ["GoingOn", "Heartbeat", "RunEnd", "RunStart", "Settlement"]


class _Record(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class RunStart(_Record):
    """A run that begins. ``host`` and ``process`` say whose it is; ``boot`` and ``process_started`` tell its
    process from a later one with the same number. ``workspace`` is the folder that it works in, where that is thrown
    away with it, and ``project`` what people know that folder by."""

    run_id: str
    agent: str
    runner: str
    model: str
    provider: str
    started: str
    scheduled_for: str | None = None
    attempt: int = 1
    host: str
    boot: str
    process: int
    process_started: int = -1
    continues: str | None = None
    """The run whose session this one continues."""
    workspace: str | None = None
    project: str | None = None


class Heartbeat(_Record):
    """That a run was alive at a time; it says nothing about what the agent did."""

    at: str


class GoingOn(_Record):
    """That a run, ``by``, goes on with the session of the one in whose folder this lies."""

    by: str
    at: str


class Settlement(_Record):
    """That all is done which follows a run's end: its sessions landed and were assembled, and its row is written."""

    at: str
    sessions: tuple[str, ...] = ()


class RunEnd(_Record):
    """A run that is over, as judged by evidence, and all that it used."""

    run_id: str
    agent: str
    runner: str
    runner_version: str
    model: str
    provider: str
    started: str
    ended: str
    scheduled_for: str | None
    attempt: int
    status: Status
    stop: StopReason
    reason: str
    exit_code: int | None
    session_id: str | None
    continues: str | None
    final_text: str
    calls: tuple[ModelCall, ...] | None
    tools: tuple[ToolUse, ...] | None
    """This run's alone; None where nobody was left to count them."""
    cost_microusd: int | None
    """By our prices; None where a call has none."""
    cost_reported_microusd: int | None
    session_cost_microusd: int | None
    """What the runner says the whole session cost so far."""
    budget_microusd: int | None
    transcript_kind: str | None
    transcripts: Annotated[tuple[str, ...], Field(description="Keys below the run's folder in the archive.")]
    to_settle: bool = False
    """It is settled when the archive says so. False in records of earlier releases, which never say it."""

    def verdict(self) -> str:
        """The verdict in one line: status, stop reason where that is another word, and the sentence."""
        words = [self.status] if self.status == self.stop else [self.status, self.stop]
        return ": ".join([*words, self.reason])

    def outcomes(self, outcome: ToolOutcome) -> int:
        return sum(tool.outcome == outcome for tool in self.tools or ())

    def tokens(self) -> TokenCount:
        """What is known of what the run used."""
        return sum((call.tokens for call in self.calls or () if call.tokens is not None), TokenCount())
