"""Whose work a run's calls are, where its workspace is thrown away with it: never a folder that nobody knows."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.agent_record import RunStart
from schemas.agent_spec import Workspace
from storage.agent_runs import AgentRuns
from storage.local import LocalStore
from storage.objects import StoreSettings
from storage.usage_dataset import newest_manifest, read_calls
from storage.zone import Zone
from tasks.agents.settle import Destinations, settle
from tasks.agents.workspace import make_folders, passing_folder, project_of, remove_folders
from tasks.ingest.outcome import IngestOptions
from tasks.land.outcome import LandOptions
from tasks.land.workplaces import Workplace, known_as
from tasks.usage import UsageOptions, count_usage
from tasks.usage.price_table import shipped_price_table
from tasks.usage.rates import RateCard
from tests.agent_runs import ended

SESSION = "6a4df0e2-1b7c-4f3e-9a5d-2c8e7b9f0a11"
PLACES = (Workplace(folder="/tmp/r1/workspace", project="/srv/kite"), Workplace(folder="/tmp/r2", project="reviewer"))


@pytest.mark.parametrize(
    ("cwd", "known"),
    [
        ("/tmp/r1/workspace", "/srv/kite"),
        ("/tmp/r1/workspace/api/v2", "/srv/kite/api/v2"),
        ("/tmp/r1/workspace2", "/tmp/r1/workspace2"),
        ("/tmp/r1", "/tmp/r1"),
        ("/tmp/r2", "reviewer"),
        ("/home/ada/kite", "/home/ada/kite"),
        ("", ""),
    ],
)
def test_folder_at_or_below_a_workplace_is_known_by_its_project(cwd: str, known: str) -> None:
    assert known_as(cwd, PLACES) == known


@given(st.text(max_size=20))
def test_folder_elsewhere_is_known_as_it_is(name: str) -> None:
    assert known_as(f"/srv/{name}", PLACES) == f"/srv/{name}"
    assert known_as(f"/tmp/r2/{name}", PLACES) == f"reviewer/{name}"


@pytest.mark.parametrize(
    ("kind", "passing", "project"),
    [
        ({"kind": "copy", "path": "kite"}, True, "{here}/kite"),
        ({"kind": "git", "path": "link", "ref": "main"}, True, "{here}/kite"),
        ({"kind": "empty"}, True, "reviewer"),
        ({"kind": "folder", "path": "kite"}, False, "{here}/kite"),
    ],
)
def test_project_is_what_the_workspace_is_made_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: dict[str, Any], passing: bool, project: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kite").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "kite")
    workspace = Workspace.model_validate(kind)
    assert project_of(workspace, "reviewer") == project.format(here=tmp_path.resolve())
    assert (passing_folder(tmp_path / "run", workspace) is not None) == passing
    if workspace.kind in ("copy", "empty"):
        folders = asyncio.run(make_folders(tmp_path / "run", workspace))
        assert passing_folder(tmp_path / "run", workspace) == folders.workspace
        remove_folders(folders.root)


def message(number: int, cwd: str) -> bytes:
    row = {
        "type": "assistant",
        "uuid": f"u{number}",
        "sessionId": SESSION,
        "timestamp": f"2026-03-01T12:00:{number:02d}.000Z",
        "cwd": cwd,
        "message": {
            "id": f"msg_{number}",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": "Done."}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 100, "output_tokens": 10},
        },
    }
    return json.dumps(row).encode() + b"\n"


def begun(run: str, **fields: Any) -> RunStart:
    return RunStart(
        run_id=run, agent="reviewer", runner="claude-code", model="claude-sonnet-4-5", provider="anthropic",
        started="2026-03-01T12:00:00Z", host="h", boot="b", process=1, **fields,
    )  # fmt: skip


def test_calls_of_a_run_count_for_the_project_and_what_landed_stays_as_it_was_written(tmp_path: Path) -> None:
    for folder in ("archive", "zone", "usage", "again"):
        (tmp_path / folder).mkdir()
    runs, zone = AgentRuns(LocalStore(str(tmp_path / "archive"))), Zone(LocalStore(str(tmp_path / "zone")))
    usage, card = LocalStore(str(tmp_path / "usage")), RateCard(shipped_price_table())
    to = Destinations(
        runs, StoreSettings(), zone, usage, card, LandOptions(now=1), IngestOptions(now=1, max_round_bytes=1 << 20)
    )
    gone = "/var/runs/reviewer/{}/workspace"
    for number, run in enumerate(("run-1", "run-2"), 1):
        place = gone.format(run)
        runs.begin(begun(run, workspace=place, project="/srv/kite"))
        path = f"transcripts/claude-code/-tmp/{SESSION}.jsonl"
        lines = [message(1, gone.format("run-1")), message(2, f"{place}/api")][:number]
        runs.add("reviewer", run, [(path, b"".join(lines))])
        end = ended(run, agent="reviewer", transcript_kind="claude-code", transcripts=(path,))
        assert settle(end, None, to).problems == 0
        if number == 1:
            assert read_calls(usage)["project"].to_pylist() == ["/srv/kite"]
    rows = read_calls(usage).sort_by("call_key")
    assert rows["project"].to_pylist() == ["/srv/kite", "/srv/kite/api"]
    # A rebuild from the zone alone is the same to the byte.
    again = LocalStore(str(tmp_path / "again"))
    count_usage(zone, again, card, UsageOptions(now=9))
    (first, rebuilt) = (newest_manifest(store) for store in (usage, again))
    assert first is not None
    assert rebuilt is not None
    assert first.files == rebuilt.files
    # The archived transcript says where the program worked.
    assert b"/var/runs/reviewer/run-2/workspace/api" in runs.store.read(runs.folder("reviewer", "run-2") + path)


def test_run_that_says_nothing_of_its_workspace_keeps_the_folder(tmp_path: Path) -> None:
    for folder in ("archive", "zone", "usage"):
        (tmp_path / folder).mkdir()
    runs = AgentRuns(LocalStore(str(tmp_path / "archive")))
    usage = LocalStore(str(tmp_path / "usage"))
    to = Destinations(
        runs,
        StoreSettings(),
        Zone(LocalStore(str(tmp_path / "zone"))),
        usage,
        RateCard(shipped_price_table()),
        LandOptions(now=1),
        IngestOptions(now=1, max_round_bytes=1 << 20),
    )
    runs.begin(begun("run-1"))
    path = f"transcripts/claude-code/-srv-kite/{SESSION}.jsonl"
    runs.add("reviewer", "run-1", [(path, message(1, "/srv/kite"))])
    settle(ended("run-1", agent="reviewer", transcript_kind="claude-code", transcripts=(path,)), None, to)
    assert read_calls(usage)["project"].to_pylist() == ["/srv/kite"]
