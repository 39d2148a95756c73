"""Runs whose process was killed before all was done: those that were never closed are closed by what is left of them,
and those that were never settled are settled.

On the machine that had the run its process is looked for; a run of another machine is taken for cut when its heartbeat
has been still for long. What is left of its folder is archived, with its secrets masked; nothing else is known, so the
run is `interrupted` and its figures are what its transcripts show. A run that cannot be made up for is said, and stands
in no other's way: the next run of its agent tries it again.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final

from schemas.agent_record import RunEnd, RunStart
from schemas.agent_spec import AgentSpec
from schemas.errors import SessionmillError, WrongUse
from schemas.times import format_time, parse_time
from storage.agent_runs import AgentRuns
from tasks.agents.archive import left_transcripts, transcript_files
from tasks.agents.environment import Lookup, look_up
from tasks.agents.host import Host
from tasks.agents.masking import Mask
from tasks.agents.settle import Destinations, schedule_of, settle
from tasks.agents.workspace import remove_folders

__all__ = ["make_up_for"]

STILL: Final = timedelta(minutes=10)
"""How long another machine's run says nothing before it is taken for cut."""


def make_up_for(
    spec: AgentSpec,
    work: Path,
    find: Lookup,
    to: Destinations,
    host: Host,
    now: int,
    log: Callable[[str], None] = lambda line: None,
) -> list[RunEnd]:
    """Close every run of the agent that was cut, and settle these and others that were closed and not settled; ``now``
    in nanoseconds. Their ends. Raises only where the archive cannot be listed."""
    made_up = []
    for start, ended in to.runs.unfinished(spec.name):
        root = work / spec.name / start.run_id
        try:
            why = _cut(start, to.runs, root, host, now)
            if why is None:
                continue
            end = ended or _close(spec, to.runs, start, root, find, why, start.host == host.name, now)
            if end is None:
                continue
            log(
                f"{end.run_id}: {end.reason}"
                if ended is None
                else f"{end.run_id}: it was closed and not settled, which is done now"
            )
            settle(end, schedule_of(spec), to)
        except (SessionmillError, OSError) as error:
            log(f"{start.run_id}: it was left, and could not be made up for: {error}")
            continue
        except Exception:
            # A fault of ours must not stand in the way of the runs that come; the traceback is the report.
            log(f"{start.run_id}: it was left, and could not be made up for: {traceback.format_exc()}")
            continue
        made_up.append(end)
    return made_up


def _close(
    spec: AgentSpec, runs: AgentRuns, start: RunStart, root: Path, find: Lookup, why: str, here: bool, now: int
) -> RunEnd | None:
    """The end that was recorded; None where somebody else closed it meanwhile, and settles it."""
    files, kind = _archive(spec, runs, start, root, find) if here else ([], None)
    end = _end(start, why, files, kind, now)
    closed = runs.finish(end)
    if here:
        remove_folders(root)
    return end if closed else None


def _cut(start: RunStart, runs: AgentRuns, root: Path, host: Host, now: int) -> str | None:
    """Why the run is taken for cut; None while it may be alive, or its agent is being ended."""
    if start.host == host.name:
        if start.boot == host.boot and (
            host.runs(start.process, start.process_started) or host.works_in(root / "home")
        ):
            return None
        return "its process is gone and left no end"
    beat = runs.last_beat(start.agent, start.run_id)
    last = parse_time(beat.at if beat is not None else start.started)
    if now - last < STILL.total_seconds() * 1_000_000_000:
        return None
    return f"it has given no sign of life since {format_time(last)}, on another machine"


def _archive(
    spec: AgentSpec, runs: AgentRuns, start: RunStart, root: Path, find: Lookup
) -> tuple[list[str], str | None]:
    left = left_transcripts(start.runner, root / "home")
    if left is None:
        return [], None
    try:
        mask = Mask(look_up(spec, find).values())
    except WrongUse:
        # Without its secrets nothing of a run can be masked, and what is not masked is not archived.
        return [], None
    return runs.add(start.agent, start.run_id, transcript_files(left, mask)), left.kind


def _end(start: RunStart, why: str, files: list[str], kind: str | None, now: int) -> RunEnd:
    return RunEnd(
        run_id=start.run_id,
        agent=start.agent,
        runner=start.runner,
        runner_version="",
        model=start.model,
        provider=start.provider,
        started=start.started,
        ended=format_time(now),
        scheduled_for=start.scheduled_for,
        attempt=start.attempt,
        status="interrupted",
        stop="interrupted",
        reason=why,
        exit_code=None,
        session_id=None,
        continues=start.continues,
        final_text="",
        calls=None,
        tools=None,
        cost_microusd=None,
        cost_reported_microusd=None,
        session_cost_microusd=None,
        budget_microusd=None,
        transcript_kind=kind,
        transcripts=tuple(files),
        to_settle=True,
    )
