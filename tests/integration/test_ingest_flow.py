"""The ingest flow with a real Prefect: what it makes, what it sets aside, and that it can be run again and stopped."""

import asyncio
import gc
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey, TaskRunFilter, TaskRunFilterFlowRunId
from prefect.client.schemas.objects import State

from flows.ingest import SUMMARY_KEY, ingest
from flows.summary import IngestParameters, IngestSummary
from schemas.errors import WrongUse
from storage.objects import ObjectStore, open_store
from storage.zone import Zone
from tests.demo_zone import first_files, later_files
from tests.integration.fault_proxy import proxy_to, refuse
from tests.landed import damage, land, renamed
from tests.s3_server import S3Server

# Prefect's own client leaves sockets to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def collect_what_prefect_leaves() -> Iterator[None]:
    """Within the test that left it, not in whichever comes later."""
    yield
    gc.collect()


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    """The demo's archive before its last file lands."""
    (tmp_path / "zone").mkdir()
    store = open_store(tmp_path / "zone")
    land(store, first_files())
    return store


def run(store: ObjectStore, **parameters: Any) -> tuple[State[Any], IngestSummary]:
    """One flow run; its end state and its summary."""

    async def whole() -> tuple[State[Any], IngestSummary]:
        state = await ingest(IngestParameters(zone=store.url, **parameters), return_state=True)
        summary = await state.aresult(raise_on_failure=False)
        assert isinstance(summary, IngestSummary), summary
        return state, summary

    return asyncio.run(whole())


def published(store: ObjectStore) -> dict[str, bytes]:
    return {stat.key: store.read(stat.key) for stat in store.list("_conversations/") if stat.key.endswith(".sf")}


def rounds(summary: IngestSummary) -> list[tuple[str, int, int]]:
    return [(outcome.session, outcome.rounds_written, outcome.round) for outcome in summary.sessions]


def test_every_session_gets_its_rounds(prefect_api: str, store: ObjectStore) -> None:
    state, summary = run(store)
    assert state.is_completed()
    assert state.message == "3 sessions, 3 rounds written, no problems"
    assert rounds(summary) == [("bakery-orders", 1, 1), ("bicycle-repair", 1, 1), ("kite-festival", 1, 1)]
    assert [outcome.open_unresolved for outcome in summary.sessions] == [0, 1, 1]
    assert len(published(store)) == 3


def test_summary_is_left_as_a_table(prefect_api: str, store: ObjectStore) -> None:
    _, summary = run(store)

    async def newest() -> Any:
        async with get_client() as client:
            found = await client.read_artifacts(
                artifact_filter=ArtifactFilter(key=ArtifactFilterKey(any_=[SUMMARY_KEY])), limit=1
            )
        return found[0].data

    table = asyncio.run(newest())
    assert summary.rows()[0]["session"] in table
    assert "open unresolved" in table


def test_bad_session_is_quarantined_and_the_others_go_on(prefect_api: str, store: ObjectStore) -> None:
    key, _ = damage(store, "bicycle-repair")
    state, summary = run(store)
    assert state.is_failed()
    assert state.message == "3 sessions, 2 rounds written, 1 quarantined"
    assert rounds(summary) == [("bakery-orders", 1, 1), ("bicycle-repair", 0, 0), ("kite-festival", 1, 1)]
    zone = Zone(store)
    assert zone.quarantined() == ["bicycle-repair"]
    reason = zone.quarantine_reason("bicycle-repair")
    assert reason is not None
    assert [(r["file"], r["row"], r["rule"]) for r in reason["reasons"]] == [(key, None, "digest")]
    assert summary.complaints()[-1] == "bicycle-repair: the note is _quarantine/bicycle-repair.json in the zone"


def test_session_that_is_mended_leaves_quarantine(prefect_api: str, store: ObjectStore) -> None:
    key, whole = damage(store, "bicycle-repair")
    run(store)
    store.replace(key, whole)
    state, summary = run(store)
    assert state.is_completed()
    assert rounds(summary) == [("bakery-orders", 0, 1), ("bicycle-repair", 1, 1), ("kite-festival", 0, 1)]
    assert [outcome.state for outcome in summary.sessions] == ["unchanged", "good", "unchanged"]
    assert state.message == "3 sessions, 1 round written, no problems (2 unchanged since found good, not read again)"
    assert Zone(store).quarantined() == []


def test_rerun_writes_nothing(prefect_api: str, store: ObjectStore) -> None:
    _, first = run(store)
    before = {stat.key: (stat.etag, stat.modified) for stat in store.list("")}
    state, again = run(store)
    assert state.is_completed()
    assert {stat.key: (stat.etag, stat.modified) for stat in store.list("")} == before
    assert [o.model_copy(update={"rounds_written": 1, "unchanged": False}) for o in again.sessions] == first.sessions


def test_rerun_does_not_read_what_it_found_good(prefect_api: str, store: ObjectStore, tmp_path: Path) -> None:
    run(store)
    # Same key and size, other bytes: only a run that reads it again would find the damage.
    damage(store, "bicycle-repair")
    state, _ = run(store)
    assert state.is_completed()
    store.delete("bicycle-repair/index/sessionmill.ingested")
    state, _ = run(store)
    assert state.message == (
        "3 sessions, 0 rounds written, 1 quarantined (2 unchanged since found good, not read again)"
    )


def test_file_that_lands_later_adds_a_round_to_its_conversation_alone(prefect_api: str, store: ObjectStore) -> None:
    run(store)
    before = published(store)
    land(store, later_files())
    _, summary = run(store)
    assert rounds(summary) == [("bakery-orders", 0, 1), ("bicycle-repair", 0, 1), ("kite-festival", 1, 2)]
    assert summary.sessions[2].open_unresolved == 0
    assert {key: data for key, data in published(store).items() if key in before} == before


def test_session_filter_leaves_the_others_alone(prefect_api: str, store: ObjectStore) -> None:
    _, summary = run(store, sessions="b*")
    assert [outcome.session for outcome in summary.sessions] == ["bakery-orders", "bicycle-repair"]
    assert Zone(store).conversations() == ["bakery-orders", "bicycle-repair"]


def test_zone_without_sessions_and_a_filter_that_matches_none_fail_the_run(
    prefect_api: str, store: ObjectStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(WrongUse, match="no sessions in "):
        asyncio.run(ingest(IngestParameters(zone=str(tmp_path / "empty"))))
    with pytest.raises(WrongUse, match="do not match any of its 3 sessions"):
        asyncio.run(ingest(IngestParameters(zone=store.url, sessions=("x*",))))
    assert [record for record in caplog.records if record.exc_info] == []


def test_shards_and_workers_do_not_change_a_byte(prefect_api: str, store: ObjectStore, tmp_path: Path) -> None:
    run(store, shard_bytes=1, workers=3)
    (tmp_path / "other").mkdir()
    other = open_store(tmp_path / "other")
    land(other, first_files())
    run(other, workers=1)
    assert published(store) == published(other)


def test_store_that_refuses_for_a_while_is_tried_again(
    prefect_api: str, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store("s3://zone/refusing")
    land(store, renamed("one") + renamed("two"))
    with proxy_to(s3.port) as proxy:
        monkeypatch.setenv("SESSIONMILL_S3_ENDPOINT_URL", proxy.endpoint)
        # As many refusals as a worker makes attempts: the task fails once, and its retry succeeds.
        proxy.faults += [refuse("503 Service Unavailable", "ServiceUnavailable")] * 8
        state, summary = run(store)
        assert proxy.faults == []
    assert state.is_completed()
    assert rounds(summary) == [("one", 1, 1), ("two", 1, 1)]

    async def counts() -> list[int]:
        async with get_client() as client:
            flow_run = state.state_details.flow_run_id
            assert flow_run is not None
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline:
                of_this_run = TaskRunFilter(flow_run_id=TaskRunFilterFlowRunId(any_=[flow_run]))
                found = await client.read_task_runs(task_run_filter=of_this_run)
                if found and all(each.state and each.state.is_completed() for each in found):
                    return [each.run_count for each in found]
                await asyncio.sleep(0.2)
        return []

    assert asyncio.run(counts()) == [2]


def test_store_that_does_not_answer_is_the_systems_failure(s3: S3Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    done = subprocess.run(
        [sys.executable, "-m", "flows", "verify", "s3://zone/anything"],
        capture_output=True,
        text=True,
        env={**os.environ, "SESSIONMILL_S3_ENDPOINT_URL": f"http://127.0.0.1:{port}"},
        check=False,
    )
    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (3, "", False)
    assert "the store did not complete" in done.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_stopped_run_leaves_nothing_half_written_and_the_next_one_finishes(
    prefect_api: str, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    names = [f"session-{n:03d}" for n in range(60)]
    (tmp_path / "zone").mkdir()
    (tmp_path / "undisturbed").mkdir()
    store, undisturbed = open_store(tmp_path / "zone"), open_store(tmp_path / "undisturbed")
    for name in names:
        land(store, renamed(name))
        land(undisturbed, renamed(name))
    process = subprocess.Popen(
        [sys.executable, "-m", "flows", "run", "ingest", "-p", f"zone={tmp_path / 'zone'}", "-p", "workers=1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PREFECT_API_URL": prefect_api},
    )
    deadline = time.monotonic() + 60
    while not any((tmp_path / "zone").glob("_conversations/*/rounds/*.sf")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, b"Traceback" in err) == (code, False)

    after_stop = published(store)
    assert 0 < len(after_stop) < len(names)
    time.sleep(0.5)
    assert published(store) == after_stop  # no worker went on by itself
    run(store)
    run(undisturbed)
    assert published(store) == published(undisturbed)
