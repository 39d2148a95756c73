"""`sessionmill report` on terminals of several widths: what does not fit goes column by column, and is named."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from flows.report_agents import AGENT_COLUMNS
from storage.local import LocalStore
from storage.objects import StoreSettings
from storage.usage_dataset import write_run
from tests.terminal import on_terminal
from tests.usage_rows import call, headless_run, write_calls


@pytest.fixture(scope="module")
def usage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("usage")
    tokens: dict[str, Any] = {
        "input_uncached": 1_234_567,
        "cache_read": 123_456_789,
        "cache_write_5m": 2_345_678,
        "output": 3_456_789,
    }
    rows = [call("a", model="m" * 20, session_id="s" * 36, project="/home/ada/work/app", **tokens)]
    store = LocalStore(str(folder), StoreSettings())
    write_calls(store, rows)
    tokens["cache_write"] = tokens.pop("cache_write_5m")
    write_run(store, headless_run(agent="nightly-review", turns=1_234, **tokens))
    return folder


def report_lines(width: int, *arguments: str) -> list[str]:
    """The lines that the command prints on a terminal of this width, without its colours."""
    printed = on_terminal(width, "-m", "flows", "report", *arguments)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", printed.decode()).splitlines()


@pytest.mark.parametrize(
    ("width", "left_out"),
    [
        (160, ""),
        (120, "Own, Input"),
        (100, "Own, Input, Cache write, Output"),
        (80, "Own, Input, Cache write, Output, Cache read"),
    ],
)
def test_a_table_leaves_out_no_more_columns_than_it_must_and_names_them(usage: Path, width: int, left_out: str) -> None:
    lines = report_lines(width, str(usage), "--table", "models")
    (head,) = (line for line in lines if line.strip().startswith("Model "))
    found = re.split(r" {2,}", head.strip())
    columns = [
        "Calls",
        "Input",
        "Cache write",
        "Cache read",
        "Output",
        "Tokens",
        "Own",
        "Delegated",
        "Cost",
        "No price",
    ]
    assert found == ["Model", *(column for column in columns if column not in left_out.split(", "))]
    said = " ".join(" ".join(lines).split())
    note = f"Left out for want of width: {left_out}. A wider terminal, a pipe or --json has them."
    assert (note in said) == bool(left_out)
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize(
    ("width", "left_out"),
    [
        (160, ""),
        (112, "Turns, Input, Cache write"),
        (100, "Turns, Input, Cache write, Output"),
        (60, "Turns, Input, Cache write, Output, Cache read, Not completed"),
    ],
)
def test_a_table_of_agents_leaves_out_no_more_columns_than_it_must(usage: Path, width: int, left_out: str) -> None:
    lines = report_lines(width, str(usage), "--table", "agents")
    (head,) = (line for line in lines if line.strip().startswith("Agent "))
    found = re.split(r" {2,}", head.strip())
    assert found == ["Agent", *(column for column in AGENT_COLUMNS if column not in left_out.split(", "))]
    said = " ".join(" ".join(lines).split())
    assert (f"Left out for want of width: {left_out}. A wider" in said) == bool(left_out)
    assert max(map(len, lines)) <= width


def test_the_note_says_which_table_leaves_out_what_where_they_differ(usage: Path) -> None:
    said = " ".join(" ".join(report_lines(120, str(usage))).split())
    assert (
        "Left out for want of width: Own (daily, monthly); Own, Input (models, projects); "
        "Own, Input, Cache write, Output, Cache read (sessions); Turns, Input, Cache write (agents). A wider"
    ) in said


def test_a_session_keeps_its_project_where_there_is_room(usage: Path) -> None:
    (head,) = (line for line in report_lines(140, str(usage), "--table", "sessions") if "Session " in line)
    assert "Project" in head
    (head,) = (line for line in report_lines(80, str(usage), "--table", "sessions") if "Session " in line)
    assert "Project" not in head
