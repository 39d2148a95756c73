"""A flow that would be served without what it needs is refused before it begins."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def serve(flow: str, folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SESSIONMILL_", "PREFECT_"))}
    environment = kept | {"PREFECT_HOME": str(folder), "PYTHONPATH": str(ROOT), **settings}
    return subprocess.run(
        [sys.executable, "-m", f"flows.{flow}"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("flow", "settings", "said"),
    [
        ("ingest", {}, "no zone to serve the flow with — set SESSIONMILL_ZONE"),
        ("verify", {}, "no zone to serve the flow with — set SESSIONMILL_ZONE"),
        ("export", {"SESSIONMILL_ZONE": "zone"}, "no exports to serve the flow with — set SESSIONMILL_EXPORTS"),
        ("usage", {}, "no zone and no usage to serve the flow with — set SESSIONMILL_ZONE and SESSIONMILL_USAGE"),
    ],
)
def test_flow_that_lacks_a_setting_is_not_served(
    flow: str, settings: dict[str, str], said: str, tmp_path: Path
) -> None:
    done = serve(flow, tmp_path, **settings)
    assert done.returncode == 2
    assert done.stderr == f"sessionmill: configuration: {said}\n"
