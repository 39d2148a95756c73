"""`sessionmill report`: what it prints, writes and refuses."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from storage.local import LocalStore
from storage.objects import StoreSettings
from storage.usage_dataset import read_calls
from tests.command import Command
from tests.usage_rows import NOON, call, write_calls


@pytest.fixture
def usage(tmp_path: Path) -> Path:
    """A data set of three calls, one without a price, in two months."""
    folder = tmp_path / "usage"
    write_calls(
        LocalStore(str(folder), StoreSettings()),
        [
            call("a", cost_microusd=1_500_000, session_id="s-1"),
            call("b", call_time=NOON.replace(month=4), cost_microusd=20_000, is_subagent=True, session_id="s-1"),
            call("c", model="my-local-1", cost_status="unknown_model", session_id="s-2", project=None),
        ],
    )
    return folder


def line(out: str, start: str) -> list[str]:
    (found,) = (each.split() for each in out.splitlines() if each.strip().startswith(start))
    return found


def test_tables_are_printed_with_totals_and_what_has_no_price(sessionmill: Command, usage: Path) -> None:
    done = sessionmill("report", usage)
    assert done.code == 0
    assert line(done.out, "2026-03-01")[-3:] == ["$1.50", "$1.50", "1"]
    assert line(done.out, "my-local-1")[-2:] == ["–", "1"]  # noqa: RUF001
    assert line(done.out, "s-1")[-3:] == ["$1.50", "$0.02", "$1.52"]
    assert "No price: the model is in no price table" in done.out
    assert done.out.splitlines()[-1] == (
        "3 calls from 2026-03-01 to 2026-04-01 (time zone UTC): 330 tokens, $1.52; 1 call without a price, in no cost."
    )


def test_one_table_alone_and_no_more_lines_than_wanted(sessionmill: Command, usage: Path) -> None:
    out = sessionmill("report", usage, "--table", "sessions", "--limit", "1").out
    assert "Day" not in out
    assert line(out, "1 more")[-2:] == ["–", "1"]  # noqa: RUF001


def test_table_of_agents_without_runs_says_so_where_it_was_asked_for(sessionmill: Command, usage: Path) -> None:
    said = "No runs of agents in scope."
    assert sessionmill("report", usage, "--table", "agents").out.startswith(f"{said}\n")
    assert said not in sessionmill("report", usage).out


def test_tables_come_in_the_order_asked_for_and_once(sessionmill: Command, usage: Path) -> None:
    out = sessionmill("report", usage, "--table", "models", "--table", "daily", "--table", "models").out
    assert re.findall(r"^ *(Day|Model|Month|Project|Session) ", out, re.MULTILINE) == ["Model", "Day"]


def test_json_goes_by_table_and_scope(sessionmill: Command, usage: Path) -> None:
    options = ["--table", "daily", "--zone", "Pacific/Kiritimati", "--model", "claude*", "--json"]
    found = sessionmill("report", usage, *options).json
    assert [(day["date"], day["totalCost"]) for day in found["daily"]] == [("2026-03-02", 1.5), ("2026-04-02", 0.02)]
    assert (found["totals"]["totalCost"], found["zone"]) == (1.52, "Pacific/Kiritimati")
    assert "monthly" not in found


def test_nothing_in_scope_is_said_and_no_failure(sessionmill: Command, usage: Path) -> None:
    done = sessionmill("report", usage, "--since", "2030-01-01")
    assert (done.code, done.out) == (0, "No calls in scope (time zone UTC).\n")


def test_names_from_the_data_steer_no_terminal_and_are_no_markup(sessionmill: Command, tmp_path: Path) -> None:
    hostile = "[red]\x1b[31mx\u202ey[/red]\n"
    write_calls(LocalStore(str(tmp_path / "usage"), StoreSettings()), [call(session_id=hostile)])
    out = sessionmill("report", tmp_path / "usage").out
    assert r"[red]\x1b[31mx\u202ey[/red]\n" in out
    assert "\x1b" not in out


def test_long_names_are_shortened_in_tables_and_whole_in_json(sessionmill: Command, tmp_path: Path) -> None:
    name = "/srv/" + "x" * 5_000
    write_calls(LocalStore(str(tmp_path / "usage"), StoreSettings()), [call(project=name)])
    assert max(map(len, sessionmill("report", tmp_path / "usage").out.splitlines())) < 400
    assert sessionmill("report", tmp_path / "usage", "--json").json["projects"][0]["project"] == name


def test_letters_that_the_terminal_has_not_are_shown_as_escapes(usage: Path) -> None:
    command = [sys.executable, "-m", "flows", "report", str(usage), "--table", "models"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert r"\u2013" in done.stdout


def test_page_is_written_and_the_same_every_time(sessionmill: Command, usage: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "a.html", tmp_path / "b.html"
    done = sessionmill("report", usage, "-o", first)
    assert (done.code, done.out.startswith(f"{first}: 3 calls from 2026-03-01 to 2026-04-01")) == (0, True)
    assert sessionmill("report", usage, "-o", second, "--json").json["file"] == str(second)
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes().startswith(b"<!DOCTYPE html>")


def test_damaged_data_set_is_a_problem_in_the_data(sessionmill: Command, usage: Path) -> None:
    file = next(usage.glob("date=2026-04-01/*/*.parquet"))
    file.write_bytes(b"PAR1")
    done = sessionmill("report", usage)
    assert done.code == 1
    assert f"{file.relative_to(usage)}: digest: its bytes are not those that the manifest names" in done.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "nowhere"),
        (["empty"], "empty: no usage data set here"),
        ([""], "USAGE is empty"),
        (["empty", "--table", "weekly"], "--table 'weekly' is no table: there are daily, monthly"),
        (["empty", "--zone", "Nowhere"], "is no time zone"),
        (["empty", "--since", "yesterday"], "--since 'yesterday' is no date"),
        (["empty", "--limit", "-1"], "--limit"),
    ],
)
def test_wrong_use_is_said_in_a_sentence(sessionmill: Command, arguments: list[str], sentence: str) -> None:
    Path("empty").mkdir()
    done = sessionmill("report", *arguments)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err


def test_json_and_page_cannot_both_be_standard_output(sessionmill: Command, usage: Path) -> None:
    done = sessionmill("report", usage, "-o", "-", "--json")
    assert done.code == 2
    assert "would both write to standard output" in done.json["message"]


def test_report_adds_up_what_a_zone_was_counted_to(sessionmill: Command, tmp_path: Path) -> None:
    sources = Path(__file__).parents[1] / "conformance/data/codex"
    for name in ("counter-regress", "new-fork-base", "old-client"):
        assert sessionmill("land", sources / name, tmp_path / "zone", "--kind", "codex").code == 0
    assert sessionmill("usage", tmp_path / "zone", "--to", tmp_path / "usage").code == 0
    rows = read_calls(LocalStore(str(tmp_path / "usage"), StoreSettings())).to_pylist()
    found = sessionmill("report", tmp_path / "usage", "--json").json
    assert len(rows) > 5
    assert found["totals"]["calls"] == len(rows)
    assert found["totals"]["totalTokens"] == sum(row["input_total"] + row["output"] for row in rows)
    assert found["totals"]["totalCostMicroUsd"] == sum(row["cost_microusd"] for row in rows)
    assert {line["sessionId"] for line in found["sessions"]} == {row["session_id"] for row in rows}
