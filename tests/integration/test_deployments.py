"""Every deployment can be loaded as a worker loads it."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect.flows import Flow, load_flow_from_entrypoint

ROOT = Path(__file__).parents[2]
DEPLOYMENTS: list[dict[str, Any]] = yaml.safe_load((ROOT / "deployments/prefect.yaml").read_text())["deployments"]


@pytest.fixture(autouse=True)
def stand_at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("SESSIONMILL_ZONE", "s3://archive/zone")
    monkeypatch.setenv("SESSIONMILL_EXPORTS", "s3://archive/exports")
    monkeypatch.setenv("SESSIONMILL_USAGE", "s3://archive/usage")


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=lambda deployment: deployment["name"])
def test_entrypoint_is_a_flow_that_takes_the_deployments_parameters(deployment: dict[str, Any]) -> None:
    flow: Flow[..., Any] = load_flow_from_entrypoint(deployment["entrypoint"])
    parameters = flow.validate_parameters(deployment["parameters"])
    assert parameters["parameters"].zone == "s3://archive/zone"


@pytest.mark.parametrize(
    ("entrypoint", "cron"),
    [
        ("flows/ingest.py:ingest", "0 * * * *"),
        ("flows/usage.py:usage", "20 * * * *"),
        ("flows/verify.py:verify", "0 2 * * *"),
        ("flows/export.py:export", "30 3 * * *"),
    ],
)
def test_flow_is_deployed_on_a_schedule_and_a_process_pool(entrypoint: str, cron: str) -> None:
    (deployment,) = (each for each in DEPLOYMENTS if each["entrypoint"] == entrypoint)
    assert deployment["schedules"] == [{"cron": cron, "timezone": "UTC"}]
    assert deployment["work_pool"]["name"] == "sessionmill"
