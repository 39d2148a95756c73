"""Going on with the session of an earlier run: what that run and those before it used, and its transcripts put back.

Only a run in a folder that stays can be gone on with: runners find a session by the folder it worked in. Their figures
are then cumulative, and what came before is taken out of them by what is known here.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from schemas.agent_record import RunEnd
from schemas.agent_run import ModelCall
from schemas.agent_spec import AgentSpec
from schemas.errors import WrongUse
from storage.agent_runs import AgentRuns
from tasks.agents.archive import place_of
from tasks.agents.run import RunContext
from tasks.agents.runner import Prior

__all__ = ["prior_of", "put_back"]


def prior_of(runs: AgentRuns, spec: AgentSpec, run: str) -> list[RunEnd]:
    """The run to go on with, and those that it went on with, the newest first. Raises `WrongUse`."""
    chain: list[RunEnd] = []
    wanted: str | None = run
    while wanted is not None:
        end = runs.end(spec.name, wanted)
        if end is None:
            raise WrongUse(f"agent {spec.name}: there is no run {wanted} that ended")
        if end.runner != spec.runner:
            raise WrongUse(f"agent {spec.name}: run {wanted} was of runner {end.runner}, not {spec.runner}")
        if any(each.run_id == end.run_id for each in chain):
            raise WrongUse(f"agent {spec.name}: run {wanted} goes on with itself")
        chain.append(end)
        wanted = end.continues
    if _session(chain) is None or not chain[0].transcripts:
        raise WrongUse(f"agent {spec.name}: run {run} left no session to go on with")
    return chain


def _session(chain: list[RunEnd]) -> str | None:
    """The session of the chain; a run that was cut did not say it, and went on with the one before it."""
    return next((end.session_id for end in chain if end.session_id is not None), None)


def put_back(context: RunContext, spec: AgentSpec, chain: list[RunEnd]) -> RunContext:
    """A context for a run that goes on with the newest of `chain`."""
    newest = chain[0]
    calls: list[ModelCall] = [call for end in reversed(chain) for call in end.calls or ()]
    prior = Prior(_session(chain) or "", tuple(calls), newest.session_cost_microusd or 0)

    def restore(home: Path) -> None:
        folder = context.runs.folder(spec.name, newest.run_id)
        root = place_of(spec.runner, home)
        for path in newest.transcripts:
            target = root / path.removeprefix(f"transcripts/{newest.transcript_kind}/")
            if not target.resolve().is_relative_to(root.resolve()):
                raise WrongUse(f"agent {spec.name}: run {newest.run_id} has a transcript outside of its folder: {path}")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(context.runs.store.read(folder + path))

    return replace(context, prior=prior, continues=newest.run_id, restore=restore)
