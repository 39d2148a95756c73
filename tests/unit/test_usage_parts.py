"""Candidates are dealt out whole: what there is of a call is in one part, and nothing is lost or added."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tasks.usage.candidates import CANDIDATE, KEY
from tasks.usage.parts import rows_by_part


def rows(*calls: tuple[str, str]) -> pl.DataFrame:
    named = pl.DataFrame(calls, schema={"session": pl.String, "call_key": pl.String}, orient="row")
    absent = [pl.lit(None).alias(name) for name in CANDIDATE if name not in ("session", "call_key", "family")]
    every = named.with_columns(pl.lit("codex").alias("family"), *absent)
    return every.select(pl.col(name).cast(kind) for name, kind in CANDIDATE.items())


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    tables = [rows(*((f"s{number // 4}", f"c{number % 7}") for number in range(20))), rows(("s9", "c3"), ("s9", "c8"))]
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for table, path in zip(tables, paths, strict=True):
        table.write_parquet(path, row_group_size=3)
    return paths


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("wanted", [None, ["c3", "c5"], ["c8"], ["none"]])
def test_every_candidate_of_a_wanted_call_is_in_one_part(
    files: list[Path], tmp_path: Path, parts: int, wanted: list[str] | None
) -> None:
    keys = None if wanted is None else pl.DataFrame({"family": "codex", "call_key": wanted}).select(KEY)
    found = list(rows_by_part(files, keys, parts, tmp_path, "part"))
    there = pl.read_parquet(files)
    expected = there if wanted is None else there.filter(pl.col("call_key").is_in(wanted))
    assert len(found) == parts
    assert sorted(pl.concat(found).select("session", "call_key").rows()) == sorted(
        expected.select("session", "call_key").rows()
    )
    calls = [set(table["call_key"]) for table in found]
    assert sum(map(len, calls)) == len(set[str]().union(*calls))
    assert sorted(tmp_path.glob("part-*")) == []
