"""The ingest flow from raw archives: several sources land, one that cannot stops no other, and what is wrong shows."""

import asyncio
import gc
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey
from prefect.client.schemas.objects import State

from flows.ingest import ingest
from flows.land_stage import LAND_KEY, QUARANTINE_KEY
from flows.summary import IngestParameters, IngestSummary
from storage.objects import open_store
from storage.zone import Zone
from tests.integration.fault_proxy import proxy_to, refuse
from tests.s3_server import S3Server

# Prefect's own client leaves sockets to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

CLAUDE = "3758e554-dd3c-4170-89f8-eb139d3f8c97"
OTHER = "4758e554-dd3c-4170-89f8-eb139d3f8c97"
CODEX = "01a19b8a-7238-7001-8a01-51d0c0de1eef"
ROLLOUT = f"sessions/2026/11/02/rollout-2026-11-02T09-15-04-{CODEX}.jsonl"
NOW = "2026-08-07T10:00:00.5Z"


@pytest.fixture(autouse=True)
def collect_what_prefect_leaves() -> Iterator[None]:
    yield
    gc.collect()


def row(name: str) -> bytes:
    prompt = {"type": "user", "uuid": name, "promptId": name, "origin": {"kind": "human"}, "message": {"content": "x"}}
    return json.dumps(prompt).encode() + b"\n"


@pytest.fixture
def claude(tmp_path: Path) -> Path:
    for session, project in ((CLAUDE, "-srv-app"), (OTHER, "-srv-scratch")):
        folder = tmp_path / "claude" / project
        folder.mkdir(parents=True)
        (folder / f"{session}.jsonl").write_bytes(row(session[:4]))
    return tmp_path / "claude"


@pytest.fixture
def codex(tmp_path: Path) -> Path:
    path = tmp_path / "codex" / ROLLOUT
    path.parent.mkdir(parents=True)
    path.write_bytes(json.dumps({"type": "session_meta", "payload": {"id": CODEX}}).encode() + b"\n")
    return tmp_path / "codex"


def run(zone: Path | str, sources: Any, **parameters: Any) -> tuple[State[Any], IngestSummary]:
    async def whole() -> tuple[State[Any], IngestSummary]:
        given = IngestParameters(zone=str(zone), sources=sources, now=NOW, **parameters)
        state = await ingest(given, return_state=True)
        summary = await state.aresult(raise_on_failure=False)
        assert isinstance(summary, IngestSummary), summary
        return state, summary

    return asyncio.run(whole())


def newest(key: str) -> list[dict[str, Any]]:
    async def read() -> Any:
        async with get_client() as client:
            found = await client.read_artifacts(artifact_filter=ArtifactFilter(key=ArtifactFilterKey(any_=[key])))
        return max(found, key=lambda each: each.created or 0).data

    rows: list[dict[str, Any]] = json.loads(asyncio.run(read()))
    return rows


def test_sources_of_two_kinds_land_and_assemble_in_one_run_and_a_rerun_finds_nothing_new(
    prefect_api: str, claude: Path, codex: Path, tmp_path: Path
) -> None:
    zone = tmp_path / "zone"
    sources = [str(claude), {"url": codex.as_uri(), "kind": "codex"}]
    state, summary = run(zone, sources)
    assert state.is_completed()
    assert [(each.kind, each.files, each.records) for each in summary.landings] == [
        ("claude-code/1", 2, 2),
        ("codex/1", 1, 1),
    ]
    assert [each.session for each in summary.sessions] == sorted([CLAUDE, OTHER, CODEX])
    assert state.message is not None
    assert state.message.startswith("3 records landed from ")
    assert [(row["kind"], row["records"], row["problems"]) for row in newest(LAND_KEY)] == [
        ("claude-code/1", 2, 0),
        ("codex/1", 1, 0),
    ]
    before = {path: path.read_bytes() for path in zone.rglob("*") if path.is_file()}
    state, again = run(zone, sources)
    assert state.is_completed()
    assert [each.files for each in again.landings] == [0, 0]
    assert all(each.unchanged for each in again.sessions)
    assert {path: path.read_bytes() for path in zone.rglob("*") if path.is_file()} == before


def test_source_that_cannot_be_landed_stops_no_other_and_the_run_does_not_end_green(
    prefect_api: str, s3: S3Server, claude: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    sources = [
        str(tmp_path / "nothing"),
        "s3://no-such-bucket/raw",
        {"url": str(claude), "kind": "papyrus"},
        str(tmp_path / "empty"),
        str(claude),
    ]
    state, summary = run(tmp_path / "zone", sources)
    assert state.is_failed()
    reasons = [each.failure or "" for each in summary.landings]
    for reason, words in zip(
        reasons,
        ["no such folder", "no-such-bucket", "'papyrus' is none of", "no sessions of a known kind", ""],
        strict=True,
    ):
        assert words in reason
    assert summary.landings[-1].records == 2
    assert [each.state for each in summary.sessions] == ["good", "good"]
    assert summary.exit_code == 1
    said = summary.landings[3].complaints()[0]
    assert said.count(str(tmp_path / "empty")) == 1
    assert "say which with `kind` of the source" in said
    assert "--kind" not in " ".join(reasons)
    assert "5 sources, 4 failed" in summary.sentence


def test_what_is_wrong_with_a_source_is_one_row_of_the_quarantine_until_it_is_mended(
    prefect_api: str, claude: Path, tmp_path: Path
) -> None:
    path = claude / "-srv-app" / f"{CLAUDE}.jsonl"
    second = claude / "-z" / f"{CLAUDE}.jsonl"
    second.parent.mkdir()
    second.write_bytes(row("second"))
    with path.open("ab") as file:
        file.write(b"no json\n")
    state, summary = run(tmp_path / "zone", str(claude))
    assert state.is_failed()
    assert summary.exit_code == 1
    length = len(row(CLAUDE[:4]))
    found = [
        (each["file"], each["line"], each["offset"], each["rule"], each["first seen"])
        for each in newest(QUARANTINE_KEY)
    ]
    assert sorted(found, key=str) == [
        (f"-srv-app/{CLAUDE}.jsonl", 2, length, "not_understood", NOW),
        (f"-z/{CLAUDE}.jsonl", None, None, "two_sources", NOW),
    ]
    assert [each.state for each in summary.sessions] == ["good", "good"]
    second.unlink()
    state, _ = run(tmp_path / "zone", str(claude))
    assert state.is_completed()
    assert [each["rule"] for each in newest(QUARANTINE_KEY)] == ["not_understood"]


def test_patterns_choose_sessions_by_their_projects(prefect_api: str, claude: Path, tmp_path: Path) -> None:
    _, summary = run(tmp_path / "zone", [{"url": str(claude), "exclude": "/srv/scratch"}])
    assert Zone(open_store(tmp_path / "zone")).sessions() == [CLAUDE]
    assert summary.landings[0].records == 1


def test_bucket_that_refuses_for_a_while_is_tried_again_and_counted_once(
    prefect_api: str, s3: S3Server, claude: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = open_store("s3://zone/raw")
    for path in claude.rglob("*.jsonl"):
        raw.create(str(path.relative_to(claude)), path.read_bytes())
    with proxy_to(s3.port) as proxy:
        monkeypatch.setenv("SESSIONMILL_S3_ENDPOINT_URL", proxy.endpoint)
        # As many refusals as a worker makes attempts: the task fails once, and its retry succeeds.
        proxy.faults += [refuse("503 Service Unavailable", "ServiceUnavailable")] * 8
        state, summary = run("s3://zone/landed", "s3://zone/raw")
        assert proxy.faults == []
    assert state.is_completed()
    assert [(each.files, each.records) for each in summary.landings] == [(2, 2)]


def kill_worker_when(begun: Path) -> None:
    """Kill the worker that this process has started, once a file has landed below `begun`."""
    deadline = time.monotonic() + 60
    while not any(begun.rglob("*.sd")) and time.monotonic() < deadline:
        time.sleep(0.005)
    for children in Path("/proc/self/task").glob("*/children"):
        for pid in children.read_text().split():
            if b"tasks.shards.worker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(int(pid), signal.SIGKILL)


def test_worker_that_is_killed_fails_its_source_alone_and_the_next_run_finishes(
    prefect_api: str, claude: Path, codex: Path, tmp_path: Path
) -> None:
    long = b"".join(b'{"type":"progress","x":"%s"}\n' % (b"x" * 100_000) for _ in range(400))
    with (claude / "-srv-app" / f"{CLAUDE}.jsonl").open("ab") as file:
        file.write(long)
    killer = threading.Thread(target=kill_worker_when, args=(tmp_path / "zone" / CLAUDE,))
    killer.start()
    state, summary = run(tmp_path / "zone", [str(claude), str(codex)], workers=1)
    killer.join()
    assert state.is_failed()
    assert summary.exit_code == 3
    assert summary.landings[0].failure == "the process that worked on it was killed by signal 9"
    assert [each.records for each in summary.landings[1:]] == [1]
    assert all(each.state == "good" for each in summary.sessions)
    state, again = run(tmp_path / "zone", [str(claude), str(codex)])
    assert state.is_completed()
    assert sorted(each.session for each in again.sessions) == sorted([CLAUDE, OTHER, CODEX])
    refs = Zone(open_store(tmp_path / "zone")).landed_files(CLAUDE)
    assert [ref.seq for ref in refs] == list(range(1, len(refs) + 1))
