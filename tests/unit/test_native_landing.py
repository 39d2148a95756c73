"""A native session's log is an archive like any other: it lands, assembles, verifies, exports and is counted."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from schemas.relavium_yaml_reader import read_yaml
from storage.session_logs import JsonlSessions
from tests.command import Command
from tests.native_sessions import Driven, played, stored_header


@pytest.fixture
def driven(tmp_path: Path) -> Driven:
    driven = played()
    with JsonlSessions(tmp_path / "sessions") as kept:
        kept.create(stored_header())
        for batch in driven.batches:
            kept.append("session-1", batch)
    return driven


def test_it_lands_assembles_verifies_and_exports(driven: Driven, tmp_path: Path, sessionmill: Command) -> None:
    zone, exports = tmp_path / "zone", tmp_path / "exports"
    assert sessionmill("land", tmp_path / "sessions", zone).code == 0
    assert sessionmill("assemble", zone).code == 0
    assert sessionmill("verify", zone).code == 0
    assert sessionmill("export", zone, "--to", exports, "--as-of", "now").code == 0
    [file] = exports.rglob("*.relavium.yaml")
    assert sessionmill("check", file).code == 0
    nodes = read_yaml(file.read_bytes(), name=file.name)["workflow"]["nodes"]
    assert [node["prompt_template"][:4] for node in nodes if node["type"] == "agent"] == [
        "Read",
        "One ",
        "Two ",
        "Thre",
        "Four",
    ]


def test_every_call_whose_usage_was_told_is_one_row_and_the_figures_are_exact(
    driven: Driven, tmp_path: Path, sessionmill: Command
) -> None:
    zone, usage = tmp_path / "zone", tmp_path / "usage"
    assert sessionmill("land", tmp_path / "sessions", zone).code == 0
    assert sessionmill("usage", zone, "--to", usage).code == 0
    rows = pl.scan_parquet(usage / "date=*/source=*/*.parquet", hive_partitioning=True).collect()
    run = driven.session.run
    assert run.unknown == 2
    assert len(rows) == run.calls - run.unknown == 8
    told = (run.input_uncached, run.cache_read, run.cache_write, run.output)
    columns = ("input_uncached", "cache_read", "cache_write_unknown", "output")
    assert tuple(int(rows[column].sum()) for column in columns) == told
    assert sorted(rows["model"].unique()) == ["claude-haiku-5-5", "gpt-5-mini"]
    assert rows["call_key"].n_unique() == len(rows)
    assert rows["source"].unique().to_list() == ["native"]


def test_the_log_is_listed_and_shown(driven: Driven, tmp_path: Path, sessionmill: Command) -> None:
    shown = sessionmill("log", tmp_path / "sessions", "session-1")
    assert shown.code == 0
    assert [json.loads(line)["type"] for line in shown.out.splitlines()] == driven.kinds()
