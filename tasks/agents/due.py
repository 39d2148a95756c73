"""Which agents are due, by their schedules, the clock, and the runs that were recorded (specification, ``schedule``).

A due time is claimed by the run's name, which is made of it: two workers that see the same agent due begin one run.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from schemas.agent_spec import AgentSpec
from schemas.times import file_stamp

__all__ = ["Due", "due_now", "is_due_run", "is_late", "is_superseded", "run_name"]

_DUE = "-due-"


@dataclass(frozen=True)
class Due:
    """A run that is due. ``late`` is one that its schedule would skip."""

    scheduled_for: datetime
    late: bool


def due_now(spec: AgentSpec, last_run: str | None, now: datetime) -> Due | None:
    """The run that is due at ``now``; None: none is, or it was begun. ``last_run`` is the newest due run's name.

    However many due times were missed, one run makes up for them. Of an agent that never ran nothing was missed: nobody
    says that it was there at the time.
    """
    schedule = spec.schedule
    due = schedule.last_due(now) if schedule is not None else None
    if schedule is None or due is None:
        return None
    begins = due + timedelta(seconds=schedule.delay(spec.name, due))
    if now < begins or (last_run is None and now > begins + timedelta(seconds=schedule.late_after_seconds)):
        return None
    if last_run is not None and last_run >= run_name(spec.name, due):
        return None
    return Due(due, is_late(spec, due, now))


def is_late(spec: AgentSpec, due: datetime, now: datetime) -> bool:
    """Whether a run that was due then is late now, and is to be skipped for it."""
    schedule = spec.schedule
    if schedule is None or schedule.late == "run_once":
        return False
    late = timedelta(seconds=schedule.late_after_seconds + schedule.delay(spec.name, due))
    return now - due > late


def is_superseded(spec: AgentSpec, due: datetime, now: datetime) -> bool:
    """Whether a run that is late has a later one behind it, which makes up for both."""
    schedule = spec.schedule
    if schedule is None or now - due <= timedelta(seconds=schedule.late_after_seconds + schedule.jitter_seconds):
        return False
    newest = schedule.last_due(now)
    return newest is not None and newest > due


def run_name(agent: str, due: datetime) -> str:
    """The name of the agent's run that was due then; no other agent's run has it."""
    return f"{file_stamp(int(due.astimezone(UTC).timestamp()) * 1_000_000_000)}{_DUE}{agent}"


def is_due_run(name: str) -> bool:
    """Whether a run of this name was begun because it was due, and not by somebody."""
    return _DUE in name
