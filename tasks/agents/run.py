"""One run from its start record to its end record: everything around a runner that is the same for all of them.

Whatever happens in between, a run that began is closed: by its runner's evidence, by our reason for stopping it, or by
the error that kept it from running. When our own task is cancelled the run is ended, judged and archived first.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from schemas.agent_record import Heartbeat, RunEnd, RunStart
from schemas.agent_run import ModelCall, StopReason, TokenCount, Verdict
from schemas.agent_spec import AgentSpec
from schemas.errors import SessionmillError, WrongUse
from schemas.times import format_time
from storage.agent_runs import AgentRuns
from tasks.agents.archive import transcript_files
from tasks.agents.closing import answer_of, in_a_loop_of_its_own, patiently, whatever_comes
from tasks.agents.environment import Lookup, Secrets, base_environment, look_up
from tasks.agents.going_on import take_place
from tasks.agents.guard import Guard, start_guard
from tasks.agents.host import started_at, this_host
from tasks.agents.masking import Mask
from tasks.agents.runner import Prior, RunEvidence, Runner, RunRequest
from tasks.agents.settle import Destinations
from tasks.agents.verdict import judge
from tasks.agents.watch import Price, Watch, unpriced
from tasks.agents.workspace import make_folders, passing_folder, project_of, remove_folders

__all__ = ["CLOSING_SECONDS", "HEARTBEAT_SECONDS", "Clock", "RunContext", "run_agent"]

HEARTBEAT_SECONDS: Final = 10.0
LINE_SHOWN: Final = 4_000
"""Characters of one line of the log."""
CLOSING_SECONDS: Final = 15.0

Clock = Callable[[], int]
"""The time now, in nanoseconds since 1970, UTC."""


async def _cancelled() -> StopReason:
    return "cancelled"


@dataclass(frozen=True)
class RunContext:
    """What a run needs beside its specification. ``work`` is a local folder in which runs get theirs; ``log`` takes
    lines for people, with secrets masked; ``why`` is asked why our task was cancelled."""

    run_id: str
    runs: AgentRuns
    work: Path
    find: Lookup = field(repr=False)
    clock: Clock = time.time_ns
    log: Callable[[str], None] = lambda line: None
    price: Price = unpriced
    scheduled_for: str | None = None
    to: Destinations | None = None
    """Where a run goes when its process is killed, and another one has to close it; None: it waits for the next run."""
    attempt: int = 1
    prior: Prior | None = None
    continues: str | None = None
    restore: Callable[[Path], None] = lambda home: None
    """Puts the transcripts of the session that is gone on with where the runner looks for them."""
    why: Callable[[], Awaitable[StopReason]] = _cancelled
    waits: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    """Seconds between tries to write the run's end, together well within ``CLOSING_SECONDS``."""


async def run_agent(spec: AgentSpec, runner: Runner, given: Mapping[str, str], context: RunContext) -> RunEnd:
    """Run `spec` once with the variables `given`; the end that was recorded.

    Raises `WrongUse` before anything is recorded for variables that are not declared or missing, for a runner that is
    not there, and for a run that goes on with one with which another goes on. Cancelled, it raises `CancelledError`
    when the run is closed.
    """
    try:
        prompt = spec.task.fill(dict(given))
    except ValueError as error:
        raise WrongUse(f"agent {spec.name}: {error}") from None
    version = await asyncio.to_thread(runner.version)
    if (
        spec.limits.cost_microusd is not None
        and context.price(ModelCall("", spec.agent.model, TokenCount(input=1))) is None
    ):
        raise WrongUse(
            f"agent {spec.name}: no price is known of {spec.agent.provider}/{spec.agent.model}, so that "
            "limits.cost_microusd cannot be kept — limit its tokens"
        )
    if context.prior is not None and spec.workspace.kind != "folder":
        raise WrongUse(f"agent {spec.name}: only a workspace of kind folder is still there to go on in")
    host = this_host()
    root = context.work / spec.name / context.run_id
    passing = passing_folder(root, spec.workspace)
    start = RunStart(
        run_id=context.run_id,
        agent=spec.name,
        runner=spec.runner,
        model=spec.agent.model,
        provider=spec.agent.provider,
        started=format_time(context.clock()),
        scheduled_for=context.scheduled_for,
        attempt=context.attempt,
        host=host.name,
        boot=host.boot,
        process=os.getpid(),
        process_started=started_at(os.getpid()),
        continues=context.continues,
        workspace=None if passing is None else str(passing),
        project=None if passing is None else project_of(spec.workspace, spec.name),
    )
    if context.continues is not None:
        where = (context.runs, spec.name, context.continues, context.run_id)
        await asyncio.to_thread(take_place, *where, context.clock())
    await asyncio.to_thread(context.runs.begin, start)
    run = _Run(spec, runner, version, prompt, context, start, root)
    closing = asyncio.wrap_future(in_a_loop_of_its_own(run.to_its_end))
    try:
        return await asyncio.shield(closing)
    except asyncio.CancelledError:
        if not closing.done():
            cause = await answer_of(context.why, context.log)
            run.stop(cause, f"the run was {cause}")
            await whatever_comes(closing, spec.limits.grace_seconds + CLOSING_SECONDS)
        raise


class _Run:
    """A run that began and has to be closed."""

    def __init__(
        self,
        spec: AgentSpec,
        runner: Runner,
        version: str,
        prompt: str,
        context: RunContext,
        start: RunStart,
        root: Path,
    ) -> None:
        self._spec = spec
        self._runner = runner
        self._prompt = prompt
        self._context = context
        self._start = start
        self._root = root
        self._mask = Mask(())
        self._shown = 0
        self._version = version
        self._fault: Exception | None = None
        self._watch = Watch(spec.limits, log=self._log, price=context.price)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._begun = threading.Event()

    def stop(self, cause: StopReason, detail: str) -> None:
        """Ask the run to end; from another thread than its own."""
        self._begun.wait()
        assert self._loop is not None
        with suppress(RuntimeError):  # its loop is closed: it has ended
            self._loop.call_soon_threadsafe(self._watch.stop, cause, detail)

    async def to_its_end(self) -> RunEnd:
        self._loop = asyncio.get_running_loop()
        self._begun.set()
        beating = asyncio.ensure_future(self._beat())
        guard: Guard | None = None
        try:
            guard = await self._guarded()
            evidence, verdict = await self._run()
            evidence = evidence.masked(self._mask.text)
            verdict = replace(verdict, reason=self._mask.text(verdict.reason))
            waits = self._context.waits
            end = self._end(evidence, verdict, await patiently(lambda: self._archive(evidence), waits, self._log))
            await patiently(lambda: self._context.runs.finish(end), waits, self._log)
        finally:
            beating.cancel()
        if guard is not None:
            await guard.dismiss()
        # Not before: where the archive could not be written, the next run of the agent closes this one from the folder.
        await asyncio.to_thread(remove_folders, self._root)
        # Whatever was said before: how it ended is always shown. Its reason is masked.
        self._context.log(end.verdict())
        if self._fault is not None:
            raise self._fault
        return end

    async def _guarded(self) -> Guard | None:
        """A process that closes the run should ours be killed; None where there are no secrets to mask by, and so no
        run either."""
        to = self._context.to
        if to is None:
            return None
        try:
            secrets = self._secrets()
        except _NoSecret:
            return None
        known = {str(ref): value for ref, value in secrets.by_reference.items()}
        return await start_guard(self._start.run_id, self._spec, known, self._context.work, to)

    def _archive(self, evidence: RunEvidence) -> list[str]:
        if evidence.transcripts is None:
            return []
        masked = transcript_files(evidence.transcripts, self._mask)
        return self._context.runs.add(self._spec.name, self._context.run_id, masked)

    async def _run(self) -> tuple[RunEvidence, Verdict]:
        nothing = RunEvidence(version=self._version, turn="none")
        try:
            request = await self._request()
            evidence = await self._within_its_time(request)
        except _NoSecret as error:
            return nothing, Verdict("failed", "missing_key", str(error))
        except SessionmillError as error:
            return nothing, Verdict("failed", "runner_failed", str(error))
        except Exception as error:
            # A fault of ours: the run is closed all the same, and the fault goes to whoever asked for the run.
            self._fault = error
            return nothing, Verdict("failed", "runner_failed", f"a fault of sessionmill: {type(error).__name__}")
        return evidence, judge(evidence, self._watch.cause, self._watch.cause_detail)

    async def _request(self) -> RunRequest:
        secrets = self._secrets()
        self._mask = Mask(secrets.values())
        if self._mask.text(self._prompt) != self._prompt:
            raise WrongUse(f"agent {self._spec.name}: the task holds the value of a secret; nothing was sent")
        folders = await make_folders(self._root, self._spec.workspace)
        await asyncio.to_thread(self._context.restore, folders.home)
        path = os.environ.get("PATH", os.defpath)
        return RunRequest(
            run_id=self._context.run_id,
            spec=self._spec,
            prompt=self._prompt,
            workspace=folders.workspace,
            home=folders.home,
            environment=base_environment(self._spec, secrets, folders.home, path),
            keys=secrets.keys,
            prior=self._context.prior,
        )

    def _secrets(self) -> Secrets:
        try:
            return look_up(self._spec, self._context.find)
        except WrongUse as error:
            raise _NoSecret(error.detail) from None

    async def _within_its_time(self, request: RunRequest) -> RunEvidence:
        seconds = self._spec.limits.wall_seconds
        alarm = asyncio.get_running_loop().call_later(
            seconds, self._watch.stop, "timeout", f"it took longer than limits.wall_seconds of {seconds}"
        )
        try:
            return await self._runner.run(request, self._watch)
        finally:
            alarm.cancel()

    async def _beat(self) -> None:
        while True:
            beat = Heartbeat(at=format_time(self._context.clock()))
            try:
                await asyncio.to_thread(self._context.runs.beat, self._spec.name, self._context.run_id, beat)
            except (SessionmillError, OSError) as error:
                self._log(f"the heartbeat could not be written: {error}")
            await asyncio.sleep(HEARTBEAT_SECONDS)

    def _log(self, line: str) -> None:
        """One line for people, masked; after `limits.output_bytes` no more."""
        line = self._mask.text(line)
        if len(line) > LINE_SHOWN:
            line = f"{line[:LINE_SHOWN]} … {len(line) - LINE_SHOWN} more characters"
        allowed = self._spec.limits.output_bytes
        if self._shown > allowed:
            return
        self._shown += len(line.encode())
        self._context.log(line if self._shown <= allowed else f"no more is shown after {allowed} bytes")

    def _end(self, evidence: RunEvidence, verdict: Verdict, files: list[str]) -> RunEnd:
        start = self._start
        priced = [self._context.price(call) for call in evidence.calls]
        reported, before = evidence.cost_reported_microusd, self._context.prior
        return RunEnd(
            run_id=start.run_id,
            agent=start.agent,
            runner=start.runner,
            runner_version=evidence.version or self._version,
            model=start.model,
            provider=start.provider,
            started=start.started,
            ended=format_time(self._context.clock()),
            scheduled_for=start.scheduled_for,
            attempt=start.attempt,
            status=verdict.status,
            stop=verdict.stop,
            reason=verdict.reason,
            exit_code=evidence.exit_code,
            session_id=evidence.session_id,
            continues=start.continues,
            final_text=evidence.final_text,
            calls=evidence.calls,
            tools=evidence.tools,
            cost_microusd=None if None in priced else sum(cost for cost in priced if cost is not None),
            cost_reported_microusd=reported,
            session_cost_microusd=None
            if reported is None
            else reported + (before.cost_reported_microusd if before is not None else 0),
            budget_microusd=self._spec.limits.cost_microusd,
            transcript_kind=evidence.transcripts.kind if evidence.transcripts is not None else None,
            transcripts=tuple(files),
            to_settle=True,
        )


class _NoSecret(WrongUse):
    """A secret of the specification is not there."""
