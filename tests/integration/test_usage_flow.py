"""The usage flow with a real Prefect, by itself and as a stage of ingest."""

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

from flows.summary import IngestParameters, IngestSummary
from flows.usage import SUMMARY_KEY
from flows.usage_summary import UsageParameters, UsageSummary
from storage.landings import calls_key
from storage.objects import ObjectStore, open_store
from tests.usage_sessions import claude, land, rows

# Prefect's own client leaves sockets to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ROOT = Path(__file__).parents[2]
NOW = "2026-03-03T08:00:00Z"


@pytest.fixture(autouse=True)
def collect_what_prefect_leaves() -> Iterator[None]:
    yield
    gc.collect()


@pytest.fixture
def zone(tmp_path: Path) -> ObjectStore:
    (tmp_path / "zone").mkdir()
    store = open_store(tmp_path / "zone")
    land(
        store,
        "a",
        [
            claude("m0", 9, time="2026-02-28T23:59:59Z"),
            claude("m1", 10, time="2026-03-01T10:00:00Z"),
            claude("m2", 20, time="2026-03-02T10:00:00Z"),
            claude("m3", 30, time="2026-03-02T23:59:59Z", model="my-local-1"),
            claude("m4", 40, time="2026-03-03T00:00:00Z"),
        ],
    )
    return store


def run(name: str, parameters: Any) -> tuple[State[Any], Any]:
    """One run of the flow; its end state and its summary."""
    flow: Any = load_flow_from_entrypoint(f"{ROOT}/flows/{name}.py:{name}")

    async def whole() -> tuple[State[Any], Any]:
        state = await flow(parameters, return_state=True)
        return state, await state.aresult(raise_on_failure=False)

    return asyncio.run(whole())


def left(key: str) -> list[Any]:
    async def read() -> list[Any]:
        async with get_client() as client:
            wanted = ArtifactFilter(key=ArtifactFilterKey(any_=[key]))
            return [each.data for each in await client.read_artifacts(artifact_filter=wanted)]

    return asyncio.run(read())


def test_a_run_leaves_what_yesterday_and_its_month_came_to_by_model(
    prefect_api: str, zone: ObjectStore, tmp_path: Path
) -> None:
    parameters = UsageParameters(zone=zone.url, to=str(tmp_path / "usage"), now=NOW)
    state, summary = run("usage", parameters)
    assert (state.is_completed(), state.message) == (True, "5 calls of 1 session, 4 days written, no problems")
    assert isinstance(summary, UsageSummary)
    names = ("Period", "Model", "Calls", "Input", "Output", "Cost")
    sums = [tuple(row[name] for name in names) for row in summary.rows()]
    assert sums == [
        ("2026-03-02", "claude-sonnet-4-5", "1", "10", "20", "$0.0003"),
        ("2026-03-02", "my-local-1", "1", "10", "30", "\N{EN DASH}"),
        ("2026-03 to 2026-03-02", "claude-sonnet-4-5", "2", "20", "30", "$0.0005"),
        ("2026-03 to 2026-03-02", "my-local-1", "1", "10", "30", "\N{EN DASH}"),
    ]
    assert [row["without_price"] for row in summary.totals] == [0, 1, 0, 1]
    assert any("my-local-1" in str(data) for data in left(SUMMARY_KEY))
    state, _ = run("usage", parameters)
    assert state.message == "5 calls of 1 session, nothing new, no problems"


def test_evidence_that_cannot_be_read_fails_the_run_after_the_rest_is_counted(
    prefect_api: str, zone: ObjectStore, tmp_path: Path
) -> None:
    land(zone, "b", [claude("m9", 1)])
    zone.replace(calls_key("b", 1), b"no")
    state, summary = run("usage", UsageParameters(zone=zone.url, to=str(tmp_path / "usage"), now=NOW))
    assert (state.is_failed(), summary.exit_code, summary.calls) == (True, 1, 5)


def test_ingest_counts_usage_where_asked(prefect_api: str, zone: ObjectStore, tmp_path: Path) -> None:
    to = str(tmp_path / "usage")
    state, summary = run("ingest", IngestParameters(zone=zone.url, usage_to=to, now=NOW, workers=1))
    assert state.is_completed()
    assert isinstance(summary, IngestSummary)
    assert summary.sentence.endswith("; usage: 5 calls of 1 session, 4 days written, no problems")
    assert rows(open_store(to), "call_key") == ["m0", "m1", "m2", "m3", "m4"]
