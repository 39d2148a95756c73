"""What an agent would miss on this machine is said before it runs: by `agent list`, and by `agent deploy`."""

from pathlib import Path

import pytest

from tests.command import Command

SPEC = """
name: night
runner: native
agent: {id: one, model: claude-sonnet-4-5, provider: anthropic, system_prompt: Be brief.}
task: {prompt: Say hello.}
workspace: {kind: copy, path: WORKSPACE}
endpoints: {anthropic: {key: {env: NIGHT_KEY}}}
schedule: {cron: "5 4 * * *", timezone: UTC}
"""


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("NIGHT_KEY", raising=False)
    folder = tmp_path / "agents"
    folder.mkdir()
    (folder / "night.yaml").write_text(SPEC.replace("WORKSPACE", str(tmp_path / "notes")))
    return folder


def test_list_names_what_is_missing_and_no_value(
    sessionmill: Command, agents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = sessionmill("agent", "list", agents)
    assert said.code == 0
    assert "night: the variable NIGHT_KEY is not set (endpoints.anthropic)\n" in said.err
    assert f"night: workspace: {tmp_path / 'notes'} is not a folder\n" in said.err
    assert "night: no archive for runs — set agents_archive" in said.err
    assert len(sessionmill("agent", "list", agents, "--json").json["agents"][0]["missing"]) == 3
    (tmp_path / "notes").mkdir()
    monkeypatch.setenv("NIGHT_KEY", "sesame-open")
    monkeypatch.setenv("SESSIONMILL_AGENTS_ARCHIVE", str(tmp_path / "runs"))
    whole = sessionmill("agent", "list", agents, "--json")
    assert whole.json["agents"][0]["missing"] == []
    assert "sesame" not in whole.out + whole.err


def test_agent_without_an_archive_is_not_deployed(sessionmill: Command, agents: Path) -> None:
    refused = sessionmill("agent", "deploy", agents / "night.yaml")
    assert refused.code == 2
    assert "no archive for runs of night — give --archive, set agents_archive" in refused.err
    further = sessionmill("agent", "deploy", agents / "night.yaml", "--archive", "runs")
    assert (further.code, "PREFECT_API_URL" in further.err) == (2, True)
