"""The commands that run an agent here and now and that list a folder of them, without Prefect."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import typer

from flows.agent_missing import missing_for
from flows.agent_parameters import AgentParameters, open_place
from flows.agent_secrets import secrets_of
from flows.console import DONE, PROBLEMS, columns, printable, write_answer, write_json
from flows.run import run_until_signal
from flows.settings import Settings, load_settings
from schemas.agent_record import RunEnd
from schemas.errors import RunnerMissing, WrongUse
from schemas.times import file_stamp
from tasks.agents.attempts import run_with_retries, settle_attempts
from tasks.agents.catalogue import SpecFile, read_folder
from tasks.agents.cut_runs import make_up_for
from tasks.agents.host import this_host
from tasks.agents.prices import listed
from tasks.agents.resume import prior_of, put_back
from tasks.agents.run import CLOSING_SECONDS, RunContext
from tasks.agents.runners import Programs, runner
from tasks.agents.settle import Settled, schedule_of, settle

__all__ = ["list_folder", "run_here"]

PROBLEMS_SHOWN: Final = 10


def run_here(
    path: str,
    assignments: Iterable[str],
    archive: str | None,
    zone: str | None,
    usage: str | None,
    resume: str | None,
    *,
    json: bool,
) -> int:
    """Run the agent once, or as often as its retries say; what is said of it. The exit code: 1 unless it completed."""
    settings = load_settings(agents_archive=archive, zone=zone, usage=usage)
    given = _variables(assignments)
    parameters = AgentParameters(
        spec=path, zone=settings.zone, archive=archive or settings.agents_archive, usage=settings.usage
    )
    place = open_place(Path(path), parameters, settings)
    run_id = f"{file_stamp(_now())}-{uuid.uuid4().hex[:8]}"
    ends: list[RunEnd] = []

    async def work() -> None:
        find = await secrets_of(place.spec)
        # What a killed process left is closed and landed by the next run of its agent.
        await asyncio.to_thread(make_up_for, place.spec, place.work, find, place.to, this_host(), _now(), _say)
        context = RunContext(
            run_id=run_id,
            runs=place.runs,
            work=place.work,
            find=find,
            clock=_now,
            log=_say,
            price=listed(place.spec, _now),
            to=place.to,
        )
        if resume is not None:
            context = put_back(context, place.spec, prior_of(place.runs, place.spec, resume))
        ends.extend(await run_with_retries(place.spec, place.runner, given, context))

    try:
        run_until_signal(work, place.spec.limits.grace_seconds + CLOSING_SECONDS + 1)
    except SystemExit:
        settle_attempts(place.spec, run_id, place.to)
        raise
    settled = [settle(end, schedule_of(place.spec), place.to) for end in ends]
    _print(settled, json=json)
    return DONE if ends[-1].status == "completed" and not any(each.problems for each in settled) else PROBLEMS


def list_folder(folder: str | None, *, json: bool) -> int:
    """One line for each specification of the folder. The exit code: 1 when one is refused."""
    settings = load_settings(agents=folder)
    files = read_folder(Path(settings.agents))
    programs = Programs(settings.claude_program, settings.codex_program)
    rows = [_row(each, programs, settings) for each in files]
    if json:
        write_json({"agents": rows})
    else:
        header = ["agent", "runner", "version", "model", "schedule", "file"]
        typer.echo(columns(header, [[row[name] or "-" for name in header] for row in rows]))
        for row in rows:
            if row["problem"]:
                typer.echo(printable(str(row["problem"])), err=True)
            for each in row["missing"]:
                typer.echo(printable(f"{row['agent']}: {each}"), err=True)
    return PROBLEMS if any(each.refused for each in files) else DONE


def _row(file: SpecFile, programs: Programs, settings: Settings) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(("agent", "runner", "version", "model", "schedule", "problem"))
    row |= {"file": str(file.path), "missing": []}
    if file.spec is None:
        return row | {"problem": str(file.refused)}
    spec = file.spec
    row |= {"agent": spec.name, "runner": spec.runner, "model": f"{spec.agent.provider}/{spec.agent.model}"}
    row["missing"] = missing_for(spec, settings)
    if spec.schedule is not None:
        row["schedule"] = f"{spec.schedule.cron} {spec.schedule.timezone}"
    try:
        row["version"] = runner(spec.runner, programs).version()
    except RunnerMissing as missing:
        row["problem"] = str(missing)
    return row


def _variables(assignments: Iterable[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for assignment in assignments:
        name, separator, value = assignment.partition("=")
        if not separator:
            raise WrongUse(f"--var {assignment}: write a variable as NAME=VALUE")
        given[name] = value
    return given


def _print(attempts: list[Settled], *, json: bool) -> None:
    """The last attempt, and what is wrong with what landed of any."""
    settled, end = attempts[-1], attempts[-1].end
    problems = [each for attempt in attempts for each in attempt.named_problems()]
    if json:
        landed = [each.model_dump(mode="json") for each in settled.sessions]
        write_json({"run": end.model_dump(mode="json"), "sessions": landed, "row": settled.row, "problems": problems})
        return
    if end.final_text:
        write_answer(end.final_text)
    tokens = end.tokens()
    cost = "unknown cost" if end.cost_microusd is None else f"${end.cost_microusd / 1_000_000:.6f}"
    typer.echo(f"{end.run_id}: {len(end.calls or ())} model calls, {tokens.total} tokens, {cost}", err=True)
    for session in settled.sessions:
        typer.echo(printable(f"landed {session.session}, round {session.round}"), err=True)
    for each in problems[:PROBLEMS_SHOWN]:
        place = each["file"] if each["row"] is None else f"{each['file']} line {each['row']}"
        _say(f"{each['session']}: {place}: {each['rule']}: {each['detail']}")
    more = sum(attempt.problems for attempt in attempts) - len(problems[:PROBLEMS_SHOWN])
    if more > 0:
        _say(f"{more} more problems in what landed; --json names the first of each session")


def _say(line: str) -> None:
    typer.echo(printable(line), err=True)


def _now() -> int:
    return int(datetime.now(UTC).timestamp() * 1_000_000) * 1_000
