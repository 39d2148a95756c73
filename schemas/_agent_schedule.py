"""When an agent runs: a cron line in a time zone, spread by a jitter, and what becomes of a run that is late.

The times are a function of the schedule and the clock alone. The jitter of one due time is drawn from the agent's name
and that time, so that two workers that look at the same time agree on it.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, Literal
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field, field_validator

__all__ = ["DAY_SECONDS", "YEAR_SECONDS", "Schedule"]

CRON_FIELDS: Final = 5
DAY_SECONDS: Final = 86_400
YEAR_SECONDS: Final = 366 * DAY_SECONDS
"""The longest time that a specification may name: added to a date of these centuries it is a date."""


class Schedule(BaseModel):
    """``cron`` has five fields; ``jitter_seconds`` is the most that a run is put off. A run that starts more than
    ``late_after_seconds`` after it was due is late: ``run_once`` makes up for all that were missed by one run,
    ``skip`` waits for the next."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    cron: str
    timezone: str = "UTC"
    jitter_seconds: Annotated[int, Field(ge=0, le=DAY_SECONDS)] = 0
    late: Literal["run_once", "skip"] = "run_once"
    late_after_seconds: Annotated[int, Field(ge=1, le=YEAR_SECONDS)] = 300

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (KeyError, OSError, ValueError):
            raise ValueError("no time zone of that name; write it as Europe/Berlin") from None
        return value

    @field_validator("cron")
    @classmethod
    def _cron_line(cls, value: str) -> str:
        from cronsim import CronSim, CronSimError

        if len(value.split()) != CRON_FIELDS:
            raise ValueError("a cron line has five fields: minute, hour, day, month, day of the week")
        try:
            next(CronSim(value, datetime(2026, 1, 1, tzinfo=UTC)))
        except CronSimError as error:
            raise ValueError(f"no cron line: {error}") from None
        except StopIteration:
            raise ValueError("a cron line that is never due") from None
        return value

    def last_due(self, now: datetime) -> datetime | None:
        """The last time, at or before ``now``, at which a run was due, jitter left out; None: never in 50 years."""
        from cronsim import CronSim

        local = now.astimezone(ZoneInfo(self.timezone)) + timedelta(seconds=1)
        return next((found.astimezone(UTC) for found in CronSim(self.cron, local, reverse=True)), None)

    def next_due(self, now: datetime) -> datetime | None:
        """The first time after ``now`` at which a run is due, jitter left out; None: never in 50 years."""
        from cronsim import CronSim

        local = now.astimezone(ZoneInfo(self.timezone))
        return next((found.astimezone(UTC) for found in CronSim(self.cron, local)), None)

    def delay(self, name: str, due: datetime) -> float:
        """Seconds by which the run of the agent ``name`` that is due at ``due`` is put off."""
        digest = hashlib.sha256(f"{name}\n{due.astimezone(UTC).isoformat()}".encode()).digest()
        return self.jitter_seconds * int.from_bytes(digest[:8], "big") / 2**64
