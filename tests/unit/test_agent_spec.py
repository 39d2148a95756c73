"""An agent's specification: what is read, what is refused, and when it is due."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from schemas.agent_spec import AgentSpec, Schedule, SecretRef, read_agent_spec
from schemas.errors import AgentSpecRejected
from tasks.agents.due import Due, due_now, is_late, is_superseded


def spec(**fields: Any) -> dict[str, Any]:
    return {
        "name": "nightly-review",
        "runner": "claude-code",
        "agent": {"id": "reviewer", "model": "claude-x", "provider": "anthropic", "system_prompt": "Review."},
        "task": {"prompt": "Look at {{repo}}.", "variables": {"repo": {"default": "this"}}},
    } | fields


def read(**fields: Any) -> AgentSpec:
    return read_agent_spec(yaml.safe_dump(spec(**fields)).encode(), name="agents/a.yaml")


def test_small_specification_has_limits_and_no_secrets() -> None:
    found = read()
    assert (found.limits.wall_seconds, found.limits.turns, found.limits.cost_microusd) == (3600, 50, None)
    assert (found.workspace.kind, found.permissions.mode, found.concurrency) == ("empty", "workspace-write", 1)
    assert found.secrets() == {}
    assert found.tools is None


def test_secrets_are_references_by_where_they_go() -> None:
    found = read(
        endpoints={"anthropic": {"base_url": "http://127.0.0.1:1/", "key": {"env": "TEAM_KEY"}}},
        environment={"GH_TOKEN": {"block": "gh-token"}, "LANG": {"value": "C.UTF-8"}},
    )
    assert found.secrets() == {
        "endpoints.anthropic": SecretRef(env="TEAM_KEY"),
        "environment.GH_TOKEN": SecretRef(block="gh-token"),
    }
    assert found.endpoint.base_url == "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ({"nmae": "x"}, "nmae", "unknown key"),
        ({"name": "Nightly Review"}, "name", "lower-case"),
        ({"runner": "aider"}, "runner", "another value"),
        (
            {"agent": {"id": "a", "model": "m", "provider": "mistral", "system_prompt": "s"}},
            "agent.provider",
            "expected one of",
        ),
        ({"task": {"prompt": "Use {{secrets.key}}"}}, "task", "names no declared variable"),
        ({"task": {"prompt": "{{env.HOME}}"}}, "task", "names no declared variable"),
        ({"task": {"prompt": "{{nope}}"}}, "task", "{{nope}} names no declared variable"),
        ({"task": {"prompt": "{{{repo}}}"}}, "task", "{{{repo}} names no declared variable"),
        ({"task": {"prompt": "{{}}"}}, "task", "{{}} names no declared variable"),
        ({"task": {"prompt": ""}}, "task.prompt", "at least 1"),
        (
            {"endpoints": {"anthropic": {"base_url": "http://user:pw@host/"}}},
            "endpoints.anthropic.base_url",
            "credentials",
        ),
        ({"endpoints": {"anthropic": {"key": "sk-ant-secret"}}}, "endpoints.anthropic.key", ""),
        ({"endpoints": {"anthropic": {"key": {"env": "AWS_SECRET_ACCESS_KEY"}}}}, "endpoints.anthropic.key.env", "own"),
        ({"environment": {"X": {"env": "PREFECT_API_KEY"}}}, "environment.X.env", "own"),
        ({"environment": {"LD_PRELOAD": {"value": "x.so"}}}, "environment", "not for a specification"),
        ({"environment": {"HOME": {"value": "/"}}}, "environment", "not for a specification"),
        ({"environment": {"X": {"value": "a", "env": "B"}}}, "environment.X", "not both"),
        ({"workspace": {"kind": "git", "path": "/srv/repo"}}, "workspace", "needs a ref"),
        ({"workspace": {"kind": "git", "path": "/srv/repo", "ref": "--upload-pack=x"}}, "workspace", "needs a ref"),
        ({"workspace": {"kind": "copy"}}, "workspace", "needs a path"),
        ({"workspace": {"kind": "folder", "path": ""}}, "workspace.path", "empty"),
        ({"workspace": {"kind": "folder", "path": "a\0b"}}, "workspace.path", "NUL"),
        ({"workspace": {"kind": "folder", "path": "a\nb"}}, "workspace.path", "control character"),
        ({"workspace": {"kind": "git", "path": "/srv/repo", "ref": ""}}, "workspace.ref", "empty"),
        ({"workspace": {"kind": "git", "path": "/srv/repo", "ref": "a\x1bb"}}, "workspace.ref", "control character"),
        ({"archive": ""}, "archive", "empty"),
        ({"archive": "a\x9bb"}, "archive", "control character"),
        ({"agent": spec()["agent"] | {"tools": ["Read", "B\0"]}}, "agent.tools.1", "NUL"),
        ({"environment": {"X": {"value": "a\0"}}}, "environment.X.value", "NUL"),
        ({"environment": {"X\0": {"value": "a"}}}, "environment.X\\x00", "NUL"),
        ({"schedule": {"cron": "* * * *"}}, "schedule.cron", "five fields"),
        ({"schedule": {"cron": "61 * * * *"}}, "schedule.cron", "no cron line"),
        ({"schedule": {"cron": "0 0 30 2 *"}}, "schedule.cron", ""),
        ({"schedule": {"cron": "* * * * *", "timezone": "Mars/Olympus"}}, "schedule.timezone", "no time zone"),
        ({"schedule": {"cron": "* * * * *", "late_after_seconds": 10**12}}, "schedule.late_after_seconds", "31622400"),
        ({"schedule": {"cron": "* * * * *", "jitter_seconds": 86_401}}, "schedule.jitter_seconds", "86400"),
        ({"limits": {"wall_seconds": 31_622_401}}, "limits.wall_seconds", "31622400"),
        ({"limits": {"tokens": 10**12 + 1}}, "limits.tokens", "1000000000000"),
        ({"limits": {"cost_microusd": 10**400}}, "limits.cost_microusd", "integer"),
        ({"retries": {"backoff_seconds": 86_401}}, "retries.backoff_seconds", "86400"),
        ({"concurrency": 10_001}, "concurrency", "10000"),
        ({"agent": spec()["agent"] | {"max_tokens": 1e300}}, "", "agent.max_tokens is above"),
        ({"limits": {"turns": 0}}, "limits.turns", "greater than or equal to 1"),
        ({"limits": {"turns": "10"}}, "limits.turns", "integer"),
        ({"limits": {"wall_seconds": True}}, "limits.wall_seconds", "integer"),
        ({"retries": {"on": ["tool_denied"]}}, "retries.on.0", "another value"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_its_field(fields: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(AgentSpecRejected) as refused:
        read(**fields)
    assert refused.value.field == field
    assert said in refused.value.detail
    assert "sk-ant-secret" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", [b"name: a\nname: b\n", b"- a\n", b"a: [", b"\xff", b"x: &a 1\ny: *a\n"])
def test_what_is_no_plain_mapping_is_refused(text: bytes) -> None:
    with pytest.raises(AgentSpecRejected, match=r"agents/a\.yaml"):
        read_agent_spec(text, name="agents/a.yaml")


def test_half_a_character_is_refused_like_nul() -> None:
    with pytest.raises(AgentSpecRejected, match="half a character"):
        read_agent_spec(b'name: "a\\ud800"\n', name="agents/a.yaml")


def test_tools_are_narrowed_and_never_widened() -> None:
    agent = spec()["agent"] | {"tools": ["Read", "Bash"]}
    assert read(agent=agent).tools == ["Read", "Bash"]
    assert read(agent=agent, permissions={"tools": ["Read"]}).tools == ["Read"]
    assert read(agent=agent, permissions={"tools": []}).tools == []
    with pytest.raises(AgentSpecRejected, match=r"Write, which agent\.tools has not"):
        read(agent=agent, permissions={"tools": ["Read", "Write"]})


def test_task_is_filled_once_from_declared_variables() -> None:
    task = read(
        task={"prompt": "{{a}} and {{ b }}, not {c}", "variables": {"a": {}, "b": {"default": "B"}}},
    ).task
    assert task.fill({"a": "{{b}}"}) == "{{b}} and B, not {c}"
    with pytest.raises(ValueError, match="no value for a"):
        task.fill({})
    with pytest.raises(ValueError, match="no such variable: c"):
        task.fill({"a": "1", "c": "2"})


@pytest.mark.parametrize("value", [os.fsdecode(b"a\xffb"), "a\0b"])
def test_a_value_that_no_program_takes_is_refused_by_its_name(value: str) -> None:
    with pytest.raises(ValueError, match="the value of repo holds NUL, or bytes that are not UTF-8"):
        read().task.fill({"repo": value})


def test_task_that_comes_out_empty_is_no_task() -> None:
    task = read(task={"prompt": "{{a}}", "variables": {"a": {"default": ""}}}).task
    with pytest.raises(ValueError, match="empty"):
        task.fill({"a": "  \n"})


def test_the_longest_times_that_a_specification_may_name_are_times_of_the_calendar() -> None:
    found = read(schedule={"cron": "0 0 * * *", "late_after_seconds": 31_622_400})
    skipping = read(
        schedule={"cron": "0 0 * * *", "jitter_seconds": 86_400, "late_after_seconds": 31_622_400, "late": "skip"}
    )
    due, now = datetime(2026, 7, 1, tzinfo=UTC), datetime(2026, 7, 3, 12, tzinfo=UTC)
    assert due_now(found, None, now) == Due(datetime(2026, 7, 3, tzinfo=UTC), late=False)
    assert not is_superseded(found, due, now)
    assert not is_late(skipping, due, now)
    assert is_late(skipping, due, now + timedelta(days=368))


def test_due_times_follow_the_time_zone() -> None:
    berlin = Schedule(cron="30 2 * * *", timezone="Europe/Berlin")
    assert berlin.next_due(datetime(2026, 7, 1, 0, 30, tzinfo=UTC)) == datetime(2026, 7, 2, 0, 30, tzinfo=UTC)
    assert berlin.last_due(datetime(2026, 7, 1, 0, 30, tzinfo=UTC)) == datetime(2026, 7, 1, 0, 30, tzinfo=UTC)
    assert berlin.last_due(datetime(2026, 1, 1, 0, 30, tzinfo=UTC)) == datetime(2025, 12, 31, 1, 30, tzinfo=UTC)


def test_jitter_is_the_same_wherever_it_is_asked() -> None:
    spread = Schedule(cron="0 * * * *", jitter_seconds=600)
    due = [datetime(2026, 7, 1, hour, tzinfo=UTC) for hour in range(24)]
    delays = [spread.delay("a", each) for each in due]
    assert delays == [spread.delay("a", each) for each in due]
    assert delays != [spread.delay("b", each) for each in due]
    assert len(set(delays)) == 24
    assert all(0 <= delay < 600 for delay in delays)
