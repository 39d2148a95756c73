"""What a run is judged by, when it is due, and what is kept of it: everything without a process."""

from __future__ import annotations

import asyncio
import json
import os
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from schemas.agent_run import ModelCall, StopReason, TokenCount, ToolUse
from schemas.agent_spec import Limits
from schemas.errors import AgentSpecRejected, RunnerMissing, StoreUnavailable, WrongUse
from storage.agent_runs import AgentRuns
from storage.local import LocalStore
from tasks.agents.archive import left_transcripts, transcript_files
from tasks.agents.attempts import run_with_retries
from tasks.agents.catalogue import read_folder
from tasks.agents.cut_runs import make_up_for
from tasks.agents.due import Due, due_now, is_late, is_superseded, run_name
from tasks.agents.environment import base_environment, look_up
from tasks.agents.failures import failure_kind
from tasks.agents.host import Host, started_at, this_host
from tasks.agents.masking import Mask
from tasks.agents.report import markdown, run_row
from tasks.agents.run import run_agent
from tasks.agents.runner import RunEvidence, RunRequest, Transcripts
from tasks.agents.runners import Programs, runner
from tasks.agents.verdict import judge
from tasks.agents.watch import Watch
from tests.scripted_agents import NOON, SECRET, Scripted, archive_alone, context, evidence, spec


@pytest.mark.parametrize(
    ("found", "cause", "verdict"),
    [
        (evidence(), None, ("completed", "completed")),
        (evidence(exit_code=None), None, ("completed", "completed")),
        (evidence(tools=(ToolUse("Bash", "denied"),)), None, ("failed", "tool_denied")),
        (evidence(tools=(ToolUse("Frob", "unknown_tool"), ToolUse("Bash", "error"))), None, ("completed", "completed")),
        (evidence(final_text=" \n"), None, ("failed", "empty_answer")),
        (evidence("open"), None, ("failed", "open_turn")),
        (evidence("open", exit_code=143), None, ("interrupted", "interrupted")),
        (evidence("open", exit_code=-9), None, ("interrupted", "interrupted")),
        (evidence("open", exit_code=143), "timeout", ("failed", "timeout")),
        (evidence("open", exit_code=143), "cancelled", ("interrupted", "cancelled")),
        (evidence("aborted"), "interrupted", ("interrupted", "interrupted")),
        (evidence("aborted", exit_code=0), None, ("interrupted", "interrupted")),
        (evidence("aborted", stop="turn_limit", exit_code=1), None, ("failed", "turn_limit")),
        (evidence("failed", stop="provider_refused", exit_code=1), None, ("failed", "provider_refused")),
        (evidence("none", stop="runner_failed", exit_code=127), None, ("failed", "runner_failed")),
        # It was done before our word reached it: then it is done. But a limit that was passed was passed.
        (evidence(), "cancelled", ("completed", "completed")),
        (evidence(), "timeout", ("completed", "completed")),
        (evidence(), "token_limit", ("failed", "token_limit")),
    ],
)
def test_verdict_is_drawn_from_evidence(found: RunEvidence, cause: StopReason | None, verdict: tuple[str, str]) -> None:
    judged = judge(found, cause, "because")
    assert (judged.status, judged.stop) == verdict
    assert judged.reason


@pytest.mark.parametrize(
    ("text", "facts", "kind"),
    [
        ("bad", {"code": "SERVER"}, "provider_unavailable"),
        ("bad", {"status": 529}, "provider_unavailable"),
        ("bad", {"status": 429}, "rate_limited"),
        ("bad", {"status": 400}, "provider_refused"),
        ("Not logged in · Please run /login", {}, "missing_key"),
        ("Missing environment variable: `MODEL_API_KEY`.", {}, "missing_key"),
        ("stream disconnected before completion: Transport error", {}, "provider_unavailable"),
        ("API Error: Connection dropped (ECONNRESET).", {}, "provider_unavailable"),
        ("Incomplete response returned, reason: max_output_tokens", {}, "output_limit"),
        ("prompt is too long: 250000 tokens", {}, "context_overflow"),
        ("invalid_request_error: bad", {}, "provider_refused"),
        ("something else", {}, "runner_failed"),
    ],
)
def test_failures_are_told_apart(text: str, facts: dict[str, Any], kind: str) -> None:
    assert failure_kind(text, **facts) == kind


def test_environment_is_what_the_specification_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "ours")
    agent = spec(environment={"GH_TOKEN": {"block": "gh"}, "MODE": {"value": "fast"}})
    secrets = look_up(agent, lambda reference: f"secret-0-of-{reference.env or reference.block}")
    assert secrets.keys == {"openai": "secret-0-of-KEY"}
    found = base_environment(agent, secrets, tmp_path, "/bin")
    assert {name: found[name] for name in ("GH_TOKEN", "MODE", "PATH", "HOME")} == {
        "GH_TOKEN": "secret-0-of-gh",
        "MODE": "fast",
        "PATH": "/bin",
        "HOME": str(tmp_path),
    }
    assert set(found) == {"GH_TOKEN", "MODE", "PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER", "LOGNAME"}


@pytest.mark.parametrize("value", [None, "", "short"])
def test_secret_that_is_not_there_is_named_by_its_place(value: str | None) -> None:
    with pytest.raises(WrongUse, match=r"endpoints\.openai: .*the variable KEY"):
        look_up(spec(), lambda reference: value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("sk-0123456789\n", "begins or ends with white space or a line break"),
        (" sk-0123456789", "begins or ends with white space or a line break"),
        ("sk-012\n3456789", "holds white space, a control character or one that is not ASCII"),
        ("sk-012\x003456789", "holds a NUL"),
        ("sk-stüb-0123456789", "holds white space, a control character or one that is not ASCII"),
        ("assistant", "is a word"),
        ("parent_tool_use_id", "is a word"),
        ("sessionId", "is a word"),
        ("sk-01", "has fewer than 6 characters"),
    ],
)
def test_key_that_cannot_be_sent_or_masked_is_refused_before_the_run(tmp_path: Path, value: str, said: str) -> None:
    """A line break at its end was judged a provider that is away; a word took the names out of a transcript."""
    scripted = Scripted()
    end = asyncio.run(run_agent(spec(), scripted, {}, context(tmp_path, find=lambda reference: value)))
    assert (end.status, end.stop, scripted.requests) == ("failed", "missing_key", [])
    assert f"endpoints.openai: the variable KEY {said}" in end.reason
    assert value not in end.reason


def test_secret_of_the_environment_may_hold_lines() -> None:
    pem = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\n-----END KEY-----\n"
    agent = spec(environment={"PEM": {"env": "PEM"}})
    found = look_up(agent, lambda reference: pem if reference.env == "PEM" else "sk-0123456789")
    assert found.variables == {"PEM": pem}


def test_limits_stop_a_run_by_what_it_used() -> None:
    async def used(limits: Limits, price: int | None = None) -> StopReason | None:
        watch = Watch(limits, price=lambda call: price)
        for number in range(3):
            watch.call(ModelCall(str(number), "m", TokenCount(input=100, output=50)))
            watch.tool_round()
            watch.one_more_turn()
        return watch.cause

    assert asyncio.run(used(Limits())) is None
    assert asyncio.run(used(Limits(tokens=449))) == "token_limit"
    assert asyncio.run(used(Limits(tokens=450))) is None
    assert asyncio.run(used(Limits(turns=3))) == "turn_limit"
    assert asyncio.run(used(Limits(turns=4))) is None
    assert asyncio.run(used(Limits(tool_rounds=2))) == "tool_round_limit"
    assert asyncio.run(used(Limits(tool_rounds=3))) is None
    assert asyncio.run(used(Limits(cost_microusd=29), 10)) == "budget_exceeded"
    assert asyncio.run(used(Limits(cost_microusd=30), 10)) is None
    assert asyncio.run(used(Limits(cost_microusd=30))) == "budget_exceeded"


def test_first_cause_of_a_stop_counts() -> None:
    async def twice() -> Watch:
        watch = Watch(Limits())
        watch.stop("cancelled", "first")
        watch.stop("timeout", "second")
        return watch

    watch = asyncio.run(twice())
    assert (watch.cause, watch.cause_detail, watch.stopping.is_set()) == ("cancelled", "first", True)


def test_run_is_recorded_masked_and_leaves_no_folder(tmp_path: Path) -> None:
    said: list[str] = []
    scripted = Scripted(evidence("failed", stop="provider_refused", detail=f"{SECRET} is refused", final_text=SECRET))
    where = context(tmp_path, log=said.append)
    end = asyncio.run(run_agent(spec(), scripted, {}, where))
    assert (end.reason, end.final_text) == ("*** is refused", "***")
    assert said == ["the key is ***", "failed: provider_refused: *** is refused"]
    assert where.runs.end("reviewer", "run-1") == end
    assert list((tmp_path / "work").rglob("run-1")) == []
    assert not any(SECRET.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_names_that_a_model_or_a_tool_chose_are_masked(tmp_path: Path) -> None:
    """A tool's name, a session's, a model's, and the path of a transcript, in `ended.json` and on the page."""
    home = tmp_path / "home"
    for folder in (f"x{SECRET.replace('/', '-')}", "y"):
        (home / folder).mkdir(parents=True)
        (home / folder / "rollout-1.jsonl").write_text("{}\n")
    key = SECRET.replace("/", "-")
    found = evidence(
        session_id=f"s-{key}",
        calls=(ModelCall(f"{key}:1", f"gpt-{key}", TokenCount(1)),),
        tools=(ToolUse(key, "unknown_tool"), ToolUse("ls", "ok")),
        transcripts=Transcripts("codex", home, tuple(home.rglob("*.jsonl"))),
    )
    where = context(tmp_path, find=lambda reference: key)
    end = asyncio.run(run_agent(spec(), Scripted(found), {}, where))
    assert end.transcripts == ("transcripts/codex/x***/rollout-1.jsonl", "transcripts/codex/y/rollout-1.jsonl")
    assert [(tool.name, tool.outcome) for tool in end.tools or ()] == [("***", "unknown_tool"), ("ls", "ok")]
    assert key not in markdown(end, {})
    archived = [path for path in (tmp_path / "archive").rglob("*") if path.is_file()]
    assert len(archived) == 5
    assert not any(key in str(path) or key in json.dumps(path.read_text())[1:-1] for path in archived)


def test_task_that_holds_a_secret_is_never_sent(tmp_path: Path) -> None:
    scripted = Scripted()
    task = {"prompt": "Use {{x}}", "variables": {"x": {}}}
    end = asyncio.run(run_agent(spec(task=task), scripted, {"x": SECRET}, context(tmp_path)))
    assert (end.status, scripted.requests) == ("failed", [])
    assert "holds the value of a secret" in end.reason
    assert SECRET not in end.reason


def test_run_without_its_secret_is_closed_as_such(tmp_path: Path) -> None:
    scripted = Scripted()
    end = asyncio.run(run_agent(spec(), scripted, {}, context(tmp_path, find=lambda reference: None)))
    assert (end.status, end.stop, scripted.requests) == ("failed", "missing_key", [])


def test_run_is_closed_whatever_its_runner_does(tmp_path: Path) -> None:
    where = context(tmp_path)
    with pytest.raises(IndexError):
        asyncio.run(run_agent(spec(), Scripted(), {}, where))
    end = where.runs.end("reviewer", "run-1")
    assert end is not None
    assert (end.status, end.stop, end.reason) == ("failed", "runner_failed", "a fault of sessionmill: IndexError")


def test_folder_stays_when_the_archive_cannot_be_written(tmp_path: Path) -> None:
    tries: list[str] = []

    class Full(LocalStore):
        def create(self, key: str, data: bytes) -> None:
            if "transcripts/" in key:
                tries.append(key)
                raise StoreUnavailable(key, "create", "no space")
            super().create(key, data)

    class Writing(Scripted):
        async def run(self, request: RunRequest, watch: Watch) -> RunEvidence:
            left = request.home / "codex/sessions/rollout-1.jsonl"
            left.parent.mkdir(parents=True)
            left.write_text("{}")
            return evidence(transcripts=Transcripts("codex", request.home / "codex", (left,)))

    where = context(tmp_path)
    full = replace(where, runs=AgentRuns(Full(str(tmp_path / "archive"))), waits=(0.0, 0.0))
    with pytest.raises(StoreUnavailable):
        asyncio.run(run_agent(spec(), Writing(), {}, full))
    assert len(tries) == 3
    assert where.runs.end("reviewer", "run-1") is None
    later = replace(this_host(), boot="later")
    (end,) = make_up_for(spec(), where.work, lambda reference: SECRET, archive_alone(where.runs), later, time.time_ns())
    assert end.transcripts == ("transcripts/codex/sessions/rollout-1.jsonl",)


def test_archive_that_is_away_for_a_moment_gets_the_end(tmp_path: Path) -> None:
    archive, away = tmp_path / "archive", tmp_path / "away"

    class Leaving(Scripted):
        async def run(self, request: RunRequest, watch: Watch) -> RunEvidence:
            archive.rename(away)
            archive.write_text("a file where a folder was")
            return await super().run(request, watch)

    said: list[str] = []

    def log(line: str) -> None:
        said.append(line)
        if "tried again" in line and archive.is_file():
            archive.unlink()
            away.rename(archive)

    where = context(tmp_path, log=log, waits=(0.0,))
    end = asyncio.run(run_agent(spec(), Leaving(evidence()), {}, where))
    assert where.runs.end("reviewer", "run-1") == end
    (again,) = [line for line in said if "tried again" in line]
    assert "'runs/reviewer/run-1/ended.json': the store refused to create it: Not a directory" in again


def test_budget_for_a_model_without_a_price_is_refused_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="no price is known of openai/gpt-5"):
        asyncio.run(run_agent(spec(limits={"cost_microusd": 5}), Scripted(), {}, context(tmp_path)))
    assert list((tmp_path / "archive").rglob("*")) == []


def test_only_passing_failures_are_tried_again_each_as_a_run(tmp_path: Path) -> None:
    away = evidence("failed", stop="provider_unavailable")
    refused = evidence("failed", stop="provider_refused")
    agent = spec(retries={"max": 4, "backoff_seconds": 0})
    ends = asyncio.run(run_with_retries(agent, Scripted(away, away, refused), {}, context(tmp_path)))
    assert [(end.run_id, end.attempt, end.stop) for end in ends] == [
        ("run-1", 1, "provider_unavailable"),
        ("run-1-2", 2, "provider_unavailable"),
        ("run-1-3", 3, "provider_refused"),
    ]


def test_due_run_is_begun_once_and_makes_up_for_all_that_were_missed() -> None:
    agent = spec(schedule={"cron": "0 * * * *"})
    assert due_now(agent, None, NOON + timedelta(minutes=3)) == Due(NOON, late=False)
    assert due_now(agent, run_name("reviewer", NOON), NOON + timedelta(minutes=59)) is None
    assert due_now(agent, run_name("reviewer", NOON), NOON + timedelta(hours=5)) == Due(
        NOON + timedelta(hours=5), late=False
    )
    assert due_now(spec(), None, NOON) is None


def test_agent_that_never_ran_has_missed_nothing() -> None:
    agent = spec(schedule={"cron": "0 7 * * 1", "late_after_seconds": 60})
    monday = datetime(2026, 11, 30, 7, tzinfo=UTC)
    assert due_now(agent, None, monday + timedelta(seconds=60)) == Due(monday, late=False)
    assert due_now(agent, None, monday + timedelta(seconds=61)) is None
    before = run_name("reviewer", monday - timedelta(days=7))
    assert due_now(agent, before, monday + timedelta(hours=17)) == Due(monday, late=False)


def test_late_run_is_skipped_where_its_schedule_says_so() -> None:
    once = spec(schedule={"cron": "0 * * * *", "late_after_seconds": 60})
    skip = spec(schedule={"cron": "0 * * * *", "late_after_seconds": 60, "late": "skip"})
    soon, late, later = (NOON + timedelta(seconds=seconds) for seconds in (60, 61, 3700))
    assert [is_late(skip, NOON, now) for now in (soon, late)] == [False, True]
    assert not is_late(once, NOON, later)
    assert [is_superseded(once, NOON, now) for now in (soon, late, later)] == [False, False, True]
    assert due_now(skip, run_name("reviewer", NOON - timedelta(hours=1)), late) == Due(NOON, late=True)


def test_jitter_puts_a_due_run_off() -> None:
    agent = spec(schedule={"cron": "0 * * * *", "jitter_seconds": 600})
    assert agent.schedule is not None
    delay = agent.schedule.delay("reviewer", NOON)
    assert due_now(agent, None, NOON + timedelta(seconds=delay - 1)) is None
    assert due_now(agent, None, NOON + timedelta(seconds=delay + 1)) == Due(NOON, late=False)


def test_only_plain_files_are_archived(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("a")
    (tmp_path / "b.jsonl").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "c.jsonl")
    (tmp_path / "d.jsonl").mkdir()
    found = transcript_files(Transcripts("codex", tmp_path, tuple(tmp_path.iterdir())), Mask([]))
    assert list(found) == [("transcripts/codex/a.jsonl", b"a")]


def test_link_in_the_place_of_transcripts_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/rollout-1.jsonl").write_text("not yours")
    (tmp_path / "home/codex").mkdir(parents=True)
    (tmp_path / "home/codex/sessions").symlink_to(tmp_path / "other")
    (tmp_path / "home/claude").symlink_to(tmp_path / "other")
    for runner_name in ("codex", "claude-code"):
        left = left_transcripts(runner_name, tmp_path / "home")
        assert left is not None
        assert list(transcript_files(left, Mask([]))) == []


def test_folder_of_agents_names_what_is_wrong_and_no_agent_twice(tmp_path: Path) -> None:
    for name, text in (("a", json.dumps(_document())), ("b", "name: ["), ("c", json.dumps(_document()))):
        (tmp_path / f"{name}.yaml").write_text(text)
    files = read_folder(tmp_path)
    assert [each.path.name for each in files if each.spec is not None] == ["a.yaml"]
    assert [each.refused.rule for each in files if isinstance(each.refused, AgentSpecRejected)] == ["yaml", "duplicate"]


def test_examples_are_agents() -> None:
    files = read_folder(Path(__file__).parents[2] / "agents")
    assert [(each.spec.name if each.spec else each.refused) for each in files] == ["nightly-review", "weekly-digest"]


def _document() -> dict[str, Any]:
    return json.loads(spec().model_dump_json(exclude_unset=True))  # type: ignore[no-any-return]


@pytest.mark.parametrize(("name", "remedy"), [("codex", "codex_program"), ("claude-code", "claude_program")])
def test_missing_program_is_named_with_what_to_do(name: Any, remedy: str) -> None:
    with pytest.raises(RunnerMissing, match=remedy):
        runner(name, Programs("no-such-program", "no-such-program")).version()


def test_host_tells_a_process_from_a_later_one_with_its_number() -> None:
    host = Host("h", "b")
    assert host.runs(os.getpid(), started_at(os.getpid()))
    assert not host.runs(os.getpid(), 1)
    assert started_at(2**22 + 1) == -1


def test_row_and_page_say_what_is_known_and_no_more(tmp_path: Path) -> None:
    found = evidence(
        calls=(ModelCall("a", "gpt-5", TokenCount(1, 2, 3, 4, 1)), ModelCall("b", "gpt-5", None)),
        tools=(ToolUse("exec_command", "ok"), ToolUse("exec_command", "denied")),
        final_text="```\n| a | b |\n```",
    )
    end = asyncio.run(run_agent(spec(), Scripted(found), {}, context(tmp_path)))
    row = run_row(end, None, "runs/reviewer/run-1/")
    assert (row.exit_status, row.stop_reason, row.error_class) == ("failed", "tool_denied", "tool_denied")
    assert (row.input_total, row.output, row.turns, row.tool_calls, row.denied_tools) == (6, 4, 2, 2, 1)
    assert (row.cost_microusd, row.schedule) == (None, None)
    page = markdown(end, {"Archive": "s3://a|b"})
    assert "| Tools | exec_command 1 denied, exec_command 1 ok |" in page
    assert "| Cost | unknown |" in page
    assert "s3://a\\|b" in page
    assert "````text\n```\n| a | b |\n```\n````" in page
