"""One headless run as the usage tables keep it (usage specification, "Headless runs")."""

from __future__ import annotations

from datetime import UTC
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

__all__ = ["RunRow"]

Count = Annotated[int, Field(ge=0, lt=2**63)]
Time = Annotated[AwareDatetime, AfterValidator(lambda time: time.astimezone(UTC))]


class RunRow(BaseModel):
    """A row of `schemas.usage.RUN_FILE_SCHEMA`, which says what each field means; money in micro-dollars."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_id: str
    agent: str
    runner: str
    runner_version: str | None = None
    model: str | None = None
    schedule: str | None = None
    started: Time
    ended: Time | None = None
    exit_status: str
    exit_code: Annotated[int, Field(ge=-(2**31), lt=2**31)] | None = None
    stop_reason: str | None = None
    turns: Count | None = None
    tool_calls: Count | None = None
    denied_tools: Count | None = None
    input_uncached: Count | None = None
    cache_read: Count | None = None
    cache_write: Count | None = None
    output: Count | None = None
    reasoning: Count | None = None
    input_total: Count | None = None
    cost_microusd: Count | None = None
    cost_reported_microusd: Count | None = None
    budget_microusd: Count | None = None
    session_id: str | None = None
    transcript_key: str | None = None
    error_class: str | None = None
    figures_from: Literal["runner", "landed"] | None = None

    @property
    def day(self) -> str:
        """The UTC day on which the run started, ``YYYY-MM-DD``."""
        return self.started.date().isoformat()
