"""What a run is judged by, what is masked, when it is due, and what is kept of it: everything without a process."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import socket
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
import zstandard

from schemas.agent_record import RunStart
from schemas.agent_run import ModelCall, StopReason, TokenCount, ToolUse
from schemas.agent_spec import AgentSpec, Limits, Workspace, read_agent_spec
from schemas.errors import AccessRefused, AgentSpecRejected, RunnerMissing, StoreUnavailable, WrongUse
from storage.agent_runs import AgentRuns
from storage.local import LocalStore
from storage.objects import StoreSettings
from storage.usage_dataset import read_runs
from tasks.agents.archive import left_transcripts, transcript_files
from tasks.agents.attempts import run_with_retries
from tasks.agents.catalogue import read_folder
from tasks.agents.cut_runs import make_up_for
from tasks.agents.due import Due, due_now, is_late, is_superseded, run_name
from tasks.agents.environment import base_environment, look_up
from tasks.agents.failures import failure_kind
from tasks.agents.going_on import last_to_go_on, take_place
from tasks.agents.host import Host, started_at, this_host
from tasks.agents.masking import Mask
from tasks.agents.report import markdown, run_row
from tasks.agents.run import RunContext, run_agent
from tasks.agents.runner import Prior, RunEvidence, RunRequest, Transcripts, TurnEnd
from tasks.agents.runners import Programs, runner
from tasks.agents.settle import Destinations
from tasks.agents.verdict import judge
from tasks.agents.watch import Watch
from tasks.agents.workspace import make_folders, remove_folders
from tasks.ingest.outcome import IngestOptions
from tasks.land.outcome import LandOptions
from tests.agent_runs import ended

SECRET = 'sk-"very"/secret-0123'
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


def spec(**fields: Any) -> AgentSpec:
    document = {
        "name": "reviewer",
        "runner": "codex",
        "agent": {"id": "reviewer", "model": "gpt-5", "provider": "openai", "system_prompt": "Review."},
        "task": {"prompt": "Look."},
        "endpoints": {"openai": {"key": {"env": "KEY"}}},
    } | fields
    return read_agent_spec(json.dumps(document).encode(), name="a.yaml")


def evidence(turn: TurnEnd = "completed", **fields: Any) -> RunEvidence:
    return RunEvidence(**{"version": "1", "turn": turn, "final_text": "Done.", "exit_code": 0} | fields)


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


def test_secret_is_masked_in_every_form() -> None:
    mask = Mask([SECRET, "line one of it\nline two of it"])
    said = [
        SECRET,
        json.dumps({"a": SECRET}),
        "x line two of it y",
        "c2stInZlcnkiL3NlY3JldC0wMTIz",
        "sk-%22very%22%2Fsecret-0123",
    ]
    assert [mask.text(each) for each in said] == ["***", '{"a": "***"}', "x *** y", "***", "***"]
    assert Mask([]).text("anything") == "anything"


def _json_level(text: str, level: int) -> str:
    for _ in range(level):
        text = json.dumps(text)[1:-1]
    return text


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_secret_in_json_within_json_is_masked(level: int) -> None:
    written = _json_level(SECRET, level)
    line = json.dumps({"arguments": _json_level(SECRET, level)}).encode()
    assert Mask([SECRET]).text(f"a {written} b") == "a *** b"
    if level < 3:
        masked = Mask([SECRET]).file(line)
        assert len(masked) == len(line)
        assert set(json.loads(masked)["arguments"]) == {"*"}


@pytest.mark.parametrize("key", ["sk-stub-0123456789abcdef/+=", "sk-0123456789abcdefg", "sk?~>ÿ0123456789?>"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("around", [("", ""), ("", "\n"), ("user:", ""), ("ab", "\n"), ("a", "bc"), ("abc", "d")])
def test_secret_in_base64_is_masked_wherever_it_begins(key: str, encode: Any, around: tuple[str, str]) -> None:
    before, after = around
    encoded = encode(f"{before}{key}{after}".encode()).decode()
    masked = Mask([key]).text(encoded)
    # What is left belongs to what is around it as well.
    assert len(masked.replace("***", "").rstrip("=")) <= len(f"{before}{after}") * 8 / 6 + 2
    assert masked.count("***") == 1


@pytest.mark.parametrize(
    "encoded",
    [
        "736b2f31322b2033343d353b3637",
        "736B2F31322B2033343D353B3637",
        "sk%2F12%2B%2034%3D5%3B67",
        "sk%2f12%2b%2034%3d5%3b67",
        "sk/12%2B%2034%3D5%3B67",
        "sk%2F12%2B+34%3D5%3B67",
        "sk/12+%2034=5;67",
    ],
)
def test_secret_in_hexadecimal_or_percent_encoding_is_masked(encoded: str) -> None:
    assert Mask(["sk/12+ 34=5;67"]).text(f"<{encoded}>") == "<***>"


def test_long_secret_in_lines_of_base64_and_hexadecimal_is_masked() -> None:
    key = "sk-" + "".join(f"{number:04d}" for number in range(40))
    for encoded, width in ((base64.b64encode(key.encode()).decode(), 76), (key.encode().hex(), 60)):
        lines = [encoded[at : at + width] for at in range(0, len(encoded), width)]
        assert set(Mask([key]).text("".join(lines))) == {"*"}
        assert set(Mask([key]).text("\n".join(lines))) == {"*", "\n"}


def test_secrets_that_overlap_are_masked_to_the_last_character() -> None:
    assert Mask(["abcdefgh12", "gh12345678"]).text("xabcdefgh12345678y") == "x***y"
    assert Mask(["abcdefgh12", "cdefgh12"]).text("abcdefgh12 cdefgh12") == "*** ***"


def test_only_the_beginning_of_a_secret_at_the_end_of_what_was_cut_is_told() -> None:
    begun = Mask(["sk-0123456789", "other-secret-1"]).begun
    assert [begun(each) for each in (b"x sk-01234", b"x other-secret-", b"x sk-", b"sk-01234 x")] == [8, 13, 0, 0]


def test_masked_file_keeps_its_length_and_stays_json() -> None:
    line = json.dumps({"out": f"key={SECRET}", "n": 1}).encode() + b"\n"
    masked = Mask([SECRET]).file(line)
    assert len(masked) == len(line)
    assert set(json.loads(masked)["out"][4:]) == {"*"}


def test_secret_inside_of_zstandard_frames_is_masked_and_other_frames_keep_their_bytes() -> None:
    pack = zstandard.ZstdCompressor().compress
    clean, dirty = pack(b'{"a":1}\n'), pack(json.dumps({"k": SECRET}).encode() + b"\n")
    masked = Mask([SECRET]).file(clean + dirty + clean + clean[:-3])
    assert masked.startswith(clean)
    assert masked.endswith(clean + clean[:-3])
    frames = zstandard.ZstdDecompressor().stream_reader(masked[: -len(clean) + 3], read_across_frames=True).read()
    assert b"secret" not in frames
    assert frames.count(b"\n") == 3


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


class Scripted:
    """A runner without a program, which gives prepared evidence."""

    name: Literal["codex"] = "codex"

    def __init__(self, *found: RunEvidence) -> None:
        self.found = list(found)
        self.requests: list[RunRequest] = []

    def version(self) -> str:
        return "9"

    async def run(self, request: RunRequest, watch: Watch) -> RunEvidence:
        self.requests.append(request)
        watch.log(f"the key is {request.keys['openai']}")
        return self.found.pop(0)


def context(folder: Path, **fields: Any) -> RunContext:
    (folder / "archive").mkdir(exist_ok=True)
    known = RunContext(
        "run-1", AgentRuns(LocalStore(str(folder / "archive"))), folder / "work", lambda reference: SECRET
    )
    return replace(known, **fields)


def archive_alone(runs: AgentRuns, **fields: Any) -> Destinations:
    """Where nothing lands unless ``fields`` say so."""
    options = {"land": LandOptions(now=1), "ingest": IngestOptions(now=1, max_round_bytes=1 << 20)}
    known: dict[str, Any] = {"runs": runs, "store": StoreSettings(), "zone": None, "usage": None, "card": None}
    return Destinations(**known | options | fields)


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


def test_run_of_a_process_that_is_gone_is_closed_and_one_that_lives_is_not(tmp_path: Path) -> None:
    runs, here = context(tmp_path).runs, this_host()
    known = {
        "agent": "reviewer", "runner": "codex", "model": "gpt-5", "provider": "openai",
        "started": "2026-07-01T12:00:00Z", "host": here.name, "boot": here.boot, "process": os.getpid(),
    }  # fmt: skip
    runs.begin(RunStart(run_id="alive", process_started=started_at(os.getpid()), **known))
    runs.begin(RunStart(run_id="reused", process_started=1, **known))
    runs.begin(RunStart(run_id="rebooted", process_started=started_at(os.getpid()), **known | {"boot": "other"}))
    runs.begin(RunStart(run_id="elsewhere", process_started=1, **known | {"host": "other"}))
    left = tmp_path / "work/reviewer/reused/home/codex/sessions/2026/rollout-x.jsonl"
    left.parent.mkdir(parents=True)
    left.write_text(json.dumps({"k": SECRET}))
    now = int(NOON.timestamp()) * 1_000_000_000

    def close(now: int) -> list[str]:
        ends = make_up_for(spec(), tmp_path / "work", lambda reference: SECRET, archive_alone(runs), here, now)
        return [end.run_id for end in ends]

    assert close(now + 1) == ["rebooted", "reused"]
    assert close(now + 1) == []
    assert close(now + 601 * 1_000_000_000) == ["elsewhere"]
    end = runs.end("reviewer", "reused")
    assert end is not None
    assert (end.status, end.stop, end.calls) == ("interrupted", "interrupted", None)
    assert end.transcripts == ("transcripts/codex/sessions/2026/rollout-x.jsonl",)
    assert not any(b"secret" in path.read_bytes() for path in (tmp_path / "archive").rglob("*.jsonl"))
    assert not (tmp_path / "work/reviewer/reused").exists()


def test_run_that_was_closed_and_not_settled_is_settled_once_by_the_next_one(tmp_path: Path) -> None:
    """Killed while it settled, or in the pause before its next attempt: it had no row, and landed nowhere."""
    runs, here = context(tmp_path).runs, this_host()
    usage = LocalStore(str(tmp_path / "usage"))
    known = {"agent": "reviewer", "runner": "codex", "model": "gpt-5", "provider": "openai", "host": here.name}
    for name, started, told in (("alive", started_at(os.getpid()), True), ("earlier", 1, False), ("killed", 1, True)):
        begun: dict[str, Any] = {"started": "2026-07-01T12:00:00Z", "boot": here.boot, "process": os.getpid()}
        runs.begin(RunStart(run_id=name, process_started=started, **known | begun))
        runs.finish(ended(name, runner="codex", model="gpt-5", provider="openai", to_settle=told))
    said: list[str] = []

    def make_up() -> list[str]:
        to = archive_alone(runs, usage=usage)
        ends = make_up_for(spec(), tmp_path / "work", lambda ref: SECRET, to, here, time.time_ns(), said.append)
        return [end.run_id for end in ends]

    assert make_up() == ["killed"]
    assert said == ["killed: it was closed and not settled, which is done now"]
    assert read_runs(usage).column("run_id").to_pylist() == ["killed"]
    assert [
        name for name in runs.runs("reviewer") if (tmp_path / f"archive/runs/reviewer/{name}/settled.json").exists()
    ] == ["killed"]
    assert make_up() == []


def test_run_that_cannot_be_settled_is_said_and_stands_in_no_other_s_way(tmp_path: Path) -> None:
    class Away(LocalStore):
        """Comes back after its first use."""

        away = True

        def create(self, key: str, data: bytes) -> None:
            if self.away:
                self.away = False
                raise StoreUnavailable(key, "create", "no route")
            super().create(key, data)

    runs, here, said = context(tmp_path).runs, this_host(), list[str]()
    known = {"agent": "reviewer", "runner": "codex", "model": "gpt-5", "provider": "openai", "host": here.name}
    begun: dict[str, Any] = {"started": "2026-07-01T12:00:00Z", "boot": "other", "process": 1}
    for name in ("a", "b"):
        runs.begin(RunStart(run_id=name, **known | begun))
        runs.finish(ended(name, to_settle=True))
    to = archive_alone(runs, usage=Away(str(tmp_path / "usage")))
    made_up = make_up_for(spec(), tmp_path / "work", lambda ref: SECRET, to, here, time.time_ns(), said.append)
    assert [end.run_id for end in made_up] == ["b"]
    assert said[1].startswith("a: it was left, and could not be made up for: StoreUnavailable: ")
    assert [run.run_id for run, _ in runs.unfinished("reviewer")] == ["a"]


def going_on(tmp_path: Path, name: str, **fields: Any) -> RunContext:
    return context(tmp_path, run_id=name, continues="run-1", prior=Prior("s"), **fields)


def left_behind(name: str, tmp_path: Path) -> RunEvidence:
    (tmp_path / f"rollout-{name}.jsonl").write_text("{}\n")
    return evidence(session_id="s", transcripts=Transcripts("codex", tmp_path, (tmp_path / f"rollout-{name}.jsonl",)))


def test_only_one_run_goes_on_with_another(tmp_path: Path) -> None:
    """A second one would have a session of the same name, of which nothing landed."""
    folder = spec(workspace={"kind": "folder", "path": str(tmp_path)})
    scripted = Scripted(*(left_behind(name, tmp_path) for name in ("1", "2", "3")))
    asyncio.run(run_agent(folder, scripted, {}, context(tmp_path)))
    asyncio.run(run_agent(folder, scripted, {}, going_on(tmp_path, "run-2")))
    with pytest.raises(WrongUse, match="run run-2 goes on with run run-1 already — resume that one"):
        asyncio.run(run_agent(folder, scripted, {}, going_on(tmp_path, "run-3")))
    asyncio.run(run_agent(folder, scripted, {}, replace(going_on(tmp_path, "run-3"), continues="run-2")))
    with pytest.raises(WrongUse, match="run run-3 goes on with run run-1 already — resume that one"):
        asyncio.run(run_agent(folder, scripted, {}, going_on(tmp_path, "run-4")))
    runs = context(tmp_path).runs
    assert (runs.runs("reviewer"), len(scripted.found)) == (["run-1", "run-2", "run-3"], 0)


def test_run_that_left_nothing_has_gone_on_with_nothing(tmp_path: Path) -> None:
    folder = spec(workspace={"kind": "folder", "path": str(tmp_path)})
    scripted = Scripted(left_behind("1", tmp_path), evidence("none", stop="runner_failed"), left_behind("3", tmp_path))
    asyncio.run(run_agent(folder, scripted, {}, context(tmp_path)))
    asyncio.run(run_agent(folder, scripted, {}, going_on(tmp_path, "run-2")))
    assert asyncio.run(run_agent(folder, scripted, {}, going_on(tmp_path, "run-3"))).status == "completed"
    assert last_to_go_on(context(tmp_path).runs, "reviewer", "run-1") == "run-3"


def test_of_runs_that_go_on_with_one_at_once_the_first_does(tmp_path: Path) -> None:
    runs, now = context(tmp_path).runs, time.time_ns()
    refused: list[str] = []

    def take(name: str) -> None:
        try:
            take_place(runs, "reviewer", "run-1", name, now)
        except WrongUse as error:
            refused.append(str(error))

    takers = [threading.Thread(target=take, args=(f"run-{number}",)) for number in range(2, 10)]
    for each in takers:
        each.start()
    for each in takers:
        each.join()
    assert len(refused) == 7
    assert all("just began to go on with run run-1 — resume that one" in each for each in refused)
    # The one that took the place never began: it was killed in between.
    take_place(runs, "reviewer", "run-1", "run-99", now + 61 * 1_000_000_000)


def test_attempt_goes_on_with_what_the_one_before_it_left(tmp_path: Path) -> None:
    folder = spec(workspace={"kind": "folder", "path": str(tmp_path)}, retries={"max": 2, "backoff_seconds": 0})
    away = replace(left_behind("2", tmp_path), turn="failed", stop="provider_unavailable")
    scripted = Scripted(left_behind("1", tmp_path), away, left_behind("3", tmp_path))
    asyncio.run(run_agent(folder, scripted, {}, context(tmp_path)))
    ends = asyncio.run(run_with_retries(folder, scripted, {}, going_on(tmp_path, "run-2")))
    assert [(end.run_id, end.continues) for end in ends] == [("run-2", "run-1"), ("run-2-2", "run-2")]


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


def test_copy_leaves_its_source_alone_and_goes_with_the_run(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.txt").write_text("a")
    (source / "link").symlink_to("/etc")
    folders = asyncio.run(make_folders(tmp_path / "run", Workspace(kind="copy", path=str(source))))
    (folders.workspace / "a.txt").write_text("changed")
    assert (folders.workspace / "link").is_symlink()
    (folders.workspace / "shut").mkdir(mode=0o500)
    remove_folders(folders.root)
    assert (source / "a.txt").read_text() == "a"
    assert not folders.root.exists()


def test_copy_leaves_out_what_has_no_contents(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "below").mkdir(parents=True)
    (source / "a.txt").write_text("a")
    (source / "dangling").symlink_to("/nonexistent")
    os.mkfifo(source / "below/pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(source / "socket"))
        folders = asyncio.run(make_folders(tmp_path / "run", Workspace(kind="copy", path=str(source))))
    copied = sorted(str(path.relative_to(folders.workspace)) for path in folders.workspace.rglob("*"))
    assert copied == ["a.txt", "below", "dangling"]


@pytest.mark.parametrize("source", [".", "work"])
def test_folder_that_holds_the_runs_is_not_copied_into_one(tmp_path: Path, source: str) -> None:
    (tmp_path / "work").mkdir()
    workspace = Workspace(kind="copy", path=str(tmp_path / source))
    with pytest.raises(WrongUse, match="holds the folder for runs"):
        asyncio.run(make_folders(tmp_path / "work/reviewer/run-1", workspace))
    assert not (tmp_path / "work/reviewer/run-1").exists()


def test_what_cannot_be_copied_is_named_and_nothing_is_left_of_it(tmp_path: Path) -> None:
    source, deepest = tmp_path / "s", os.pathconf("/", "PC_PATH_MAX") - 300
    deep = str(source)
    while len(deep) < deepest:
        deep += "/" + "x" * 100
    os.makedirs(deep)
    run = tmp_path / ("r" * 200) / ("u" * 200)
    with pytest.raises(
        AccessRefused, match=r"/s: the system does not allow to copy it: \[Errno 36\] File name too long"
    ):
        asyncio.run(make_folders(run, Workspace(kind="copy", path=str(source))))
    assert not run.exists()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Commit "one" is tagged v1, "two" is main, "three" the branch side/é, and "four" on no branch of its own."""
    import subprocess

    folder = tmp_path_factory.mktemp("repo")

    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)

    def commit(text: str) -> None:
        (folder / "a.txt").write_text(text)
        git("add", ".")
        git("commit", "-qm", text)

    git("init", "-q", "-b", "main")
    commit("one")
    git("tag", "-a", "v1", "-m", "v1")
    commit("two")
    git("checkout", "-qb", "side/é")
    commit("three")
    git("checkout", "-q", "--detach", "main")
    commit("four")
    git("update-ref", "refs/remotes/elsewhere/main", "HEAD")
    git("checkout", "-q", "main")
    return folder


@pytest.mark.parametrize(
    ("ref", "text"),
    [
        ("v1", "one"),
        ("refs/tags/v1", "one"),
        ("main", "two"),
        ("HEAD", "two"),
        ("main~1", "one"),
        ("refs/heads/main", "two"),
        ("side/é", "three"),
        ("heads/side/é", "three"),
        ("refs/heads/side/é", "three"),
        ("elsewhere/main", "four"),
    ],
)
def test_git_workspace_is_a_checkout_of_the_ref_with_a_history_of_its_own(
    repository: Path, tmp_path: Path, ref: str, text: str
) -> None:
    workspace = Workspace(kind="git", path=str(repository), ref=ref)
    folders = asyncio.run(make_folders(tmp_path / "run", workspace))
    assert (folders.workspace / "a.txt").read_text() == text
    assert (folders.workspace / ".git/objects").is_dir()


@pytest.mark.parametrize("ref", ["nowhere", "^main", "main..v1", "v1..", "main:a.txt", "HEAD^{tree}", "@{u}", " main"])
def test_what_names_no_commit_is_no_ref(repository: Path, tmp_path: Path, ref: str) -> None:
    with pytest.raises(WrongUse, match=f"has no ref {re.escape(ref)} — name a branch"):
        asyncio.run(make_folders(tmp_path / "run", Workspace(kind="git", path=str(repository), ref=ref)))
    assert not (tmp_path / "run").exists()


def test_folder_that_is_no_repository_has_no_refs(repository: Path, tmp_path: Path) -> None:
    (repository / "below").mkdir()
    with pytest.raises(WrongUse, match="git clone failed"):
        asyncio.run(make_folders(tmp_path / "run", Workspace(kind="git", path=str(repository / "below"), ref="main")))


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
