"""The verify flow with a real Prefect: it reads what ingest does not read again, and writes nothing."""

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey
from prefect.client.schemas.objects import State
from prefect.flows import load_flow_from_entrypoint

from flows.verify import SUMMARY_KEY
from flows.verify_summary import VerifyParameters, VerifySummary
from storage.objects import ObjectStore, open_store
from storage.zone import Zone
from tasks.ingest import IngestOptions, ingest_session
from tests.demo_zone import first_files
from tests.landed import damage, land
from tests.s3_server import S3Server

# Prefect's own client leaves sockets to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def collect_what_prefect_leaves() -> Iterator[None]:
    yield
    gc.collect()


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    """A zone that ingest has found good."""
    (tmp_path / "zone").mkdir()
    return ingested(open_store(tmp_path / "zone"))


def ingested(store: ObjectStore) -> ObjectStore:
    land(store, first_files())
    zone = Zone(store)
    for session in zone.sessions():
        ingest_session(zone, session, IngestOptions(now=0, max_round_bytes=0))
    return store


def run(store: ObjectStore, **parameters: Any) -> tuple[State[Any], VerifySummary]:
    """One run of the flow that the deployment names; its end state and its summary."""
    flow: Any = load_flow_from_entrypoint(f"{ROOT}/flows/verify.py:verify")

    async def whole() -> tuple[State[Any], VerifySummary]:
        state = await flow(VerifyParameters(zone=store.url, **parameters), return_state=True)
        return state, await state.aresult(raise_on_failure=False)

    return asyncio.run(whole())


def test_good_zone_is_read_whole_and_nothing_is_written(prefect_api: str, store: ObjectStore) -> None:
    before = [(stat.key, stat.etag, stat.modified) for stat in store.list("")]
    state, summary = run(store, shard_bytes=1, workers=2)
    assert state.is_completed()
    assert state.message == "3 sessions, 25 records, 3 rounds, no problems"
    assert [(outcome.session, outcome.rounds) for outcome in summary.sessions] == [
        ("bakery-orders", 1),
        ("bicycle-repair", 1),
        ("kite-festival", 1),
    ]
    assert [(stat.key, stat.etag, stat.modified) for stat in store.list("")] == before


def test_damage_that_ingest_does_not_look_for_fails_the_run(prefect_api: str, store: ObjectStore) -> None:
    key, _ = damage(store, "bicycle-repair")
    state, summary = run(store)
    assert state.is_failed()
    assert summary.exit_code == 1
    assert [outcome.session for outcome in summary.sessions if outcome.problems] == ["bicycle-repair"]
    assert summary.complaints()[0].startswith(f"bicycle-repair: {key}: digest: ")

    async def left() -> list[Any]:
        async with get_client() as client:
            wanted = ArtifactFilter(key=ArtifactFilterKey(any_=[SUMMARY_KEY]))
            return [each.description for each in await client.read_artifacts(artifact_filter=wanted)]

    assert state.message in asyncio.run(left())


def test_session_filter_leaves_the_others_unread(prefect_api: str, store: ObjectStore) -> None:
    damage(store, "bicycle-repair")
    state, summary = run(store, sessions="k*")
    assert state.is_completed()
    assert [outcome.session for outcome in summary.sessions] == ["kite-festival"]


def test_zone_in_s3_is_verified_alike(prefect_api: str, s3: S3Server) -> None:
    state, _ = run(ingested(open_store("s3://zone/verified")))
    assert state.message == "3 sessions, 25 records, 3 rounds, no problems"
