"""Only one run goes on with another: two that did would each have a session of the same name, and one would not land.

The first to say so is the one. A run that left no transcript has gone on with nothing, so another may take its place.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from schemas.agent_record import RunStart
from schemas.errors import WrongUse
from schemas.times import parse_time
from storage.agent_runs import AgentRuns

__all__ = ["last_to_go_on", "take_place"]

_BEGINS_WITHIN: Final = timedelta(minutes=1)
"""A run that said it goes on with another begins at once. One that did not was killed in between."""


def last_to_go_on(runs: AgentRuns, agent: str, run: str) -> str:
    """The newest of those that go on with this run, one after the other; the run itself where there is none."""
    later: dict[str | None, RunStart] = {}
    for name in runs.runs(agent):
        start = runs.start(agent, name)
        if start is not None and start.continues is not None and _left_something(runs, start):
            later[start.continues] = start
    last = run
    while last in later:
        last = later.pop(last).run_id
    return last


def take_place(runs: AgentRuns, agent: str, run: str, by: str, now: int) -> None:
    """Make `by` the run that goes on with `run`; ``now`` in nanoseconds. Raises `WrongUse` where another one does."""
    last = last_to_go_on(runs, agent, run)
    if last != run:
        raise WrongUse(f"agent {agent}: run {last} goes on with run {run} already — resume that one, when it has ended")
    for place in range(1, len(runs.runs(agent)) + 2):
        first = runs.go_on(agent, run, place, by, now)
        if first.by == by:
            return
        start = runs.start(agent, first.by)
        young = now - parse_time(first.at) < _BEGINS_WITHIN.total_seconds() * 1_000_000_000
        if (start is None and young) or (start is not None and _left_something(runs, start)):
            raise WrongUse(f"agent {agent}: run {first.by} just began to go on with run {run} — resume that one")


def _left_something(runs: AgentRuns, start: RunStart) -> bool:
    end = runs.end(start.agent, start.run_id)
    return end is None or bool(end.transcripts)
