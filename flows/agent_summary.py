"""What a run of the agents that were due says at its end. No Prefect here."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from flows.console import DONE, PROBLEMS, columns, printable

__all__ = ["DueRun", "DueSummary"]


class DueRun(BaseModel):
    """One agent that was due: how its run ended, or why there is none."""

    model_config = ConfigDict(frozen=True)

    agent: str
    said: str
    good: bool


class DueSummary(BaseModel):
    """The agents of a folder: how many there are, those that were due, and specifications that were refused."""

    model_config = ConfigDict(frozen=True)

    agents: int
    runs: list[DueRun]
    refused: list[str]

    @property
    def exit_code(self) -> int:
        return DONE if all(run.good for run in self.runs) and not self.refused else PROBLEMS

    @property
    def sentence(self) -> str:
        bad = sum(not run.good for run in self.runs)
        said = f"{len(self.runs)} of {self.agents} agents were due"
        return "; ".join([said, *([f"{bad} did not complete"] if bad else []), *map(printable, self.refused)])

    def text(self) -> str:
        rows = [[run.agent, printable(run.said)] for run in self.runs]
        return columns(["agent", "run"], rows) if rows else ""
