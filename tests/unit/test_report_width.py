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
    rows = [call("a", model="m" * 20, session_id="s" * 36, project="/home/ada/kite", **tokens)]
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
        (120, "Delegated, No price"),
        (100, "Delegated, No price, Own, Input"),
        (80, "Delegated, No price, Own, Input, Cache write"),
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
        (120, "Not completed, No cost"),
        (100, "Not completed, No cost, Turns, Input"),
        (60, "Not completed, No cost, Turns, Input, Cache write, Output, Cache read"),
        (40, "Not completed, No cost, Turns, Input, Cache write, Output, Cache read, Completed, Tokens"),
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
        "Left out for want of width: Delegated (daily, monthly); Delegated, No price (models, projects); "
        "Delegated, No price, Own, Input, Cache write (sessions); Not completed, No cost (agents). A wider"
    ) in said


def test_a_session_keeps_its_project_where_there_is_room(usage: Path) -> None:
    (head,) = (line for line in report_lines(140, str(usage), "--table", "sessions") if "Session " in line)
    assert "Project" in head
    (head,) = (line for line in report_lines(80, str(usage), "--table", "sessions") if "Session " in line)
    assert "Project" not in head


DAY, MONTH, TOKENS, COST = "2026-03-01", "2026-03", "130,493,823", "$0.0005"


@pytest.mark.parametrize(
    ("width", "rows"),
    [
        (40, [[DAY, TOKENS, COST], [MONTH, TOKENS, COST], ["m" * 14, TOKENS, COST], ["nightly-review", "1", COST]]),
        (20, [[DAY, COST], [MONTH, COST], ["m" * 12, COST], ["nightly-revi", "1", COST]]),
        (10, [[DAY, COST], [MONTH, COST], ["m" * 12, COST], ["nightly-revi", "1", COST]]),
    ],
)
def test_names_fold_and_no_figure_or_date_is_cut_on_the_narrowest_terminal(
    usage: Path, width: int, rows: list[list[str]]
) -> None:
    tables = [word for name in ("daily", "monthly", "models", "agents") for word in ("--table", name)]
    lines = report_lines(width, str(usage), *tables)
    printed = [line.split() for line in lines]
    assert [row for row in rows if row in printed] == rows
    assert "…" not in "".join(lines)
    heads = [words for words in printed if words[:1] in (["Day"], ["Month"], ["Model"], ["Agent"])]
    assert all(words[-1] == "Cost" for words in heads)
    assert ["".join(word for words in printed for word in words if set(word) == {"m"})] == ["m" * 20]


def test_how_calls_came_by_their_cost_keeps_the_number_of_calls(usage: Path) -> None:
    lines = [line.split() for line in report_lines(20, str(usage), "--table", "daily")]
    assert ["Coverage", "Calls"] in lines
    assert ["Priced", "at", "1"] in lines
    said = " ".join(word for words in lines for word in words)
    assert "Model, Tokens, Cost (coverage)" in said


def test_calls_without_a_price_stay_beside_the_cost_that_leaves_them_out(tmp_path: Path) -> None:
    row = call("a", model="m" * 30, cost_microusd=None, cost_status="unknown_model")
    write_calls(LocalStore(str(tmp_path), StoreSettings()), [row])
    (head,) = (line.split() for line in report_lines(40, str(tmp_path), "--table", "models") if "Model " in line[:8])
    assert head == ["Model", "Cost", "No", "price"]
