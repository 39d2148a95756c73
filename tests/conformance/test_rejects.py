"""Single files and the verdict of the original reader on each."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.verdict import check_bytes
from tests.golden import GOLDEN, KEPT


def _rows(folder: Path) -> list[tuple[Path, str, str]]:
    """File, verdict and detail of every row in the folder's table."""
    table = folder / "expected.tsv"
    lines = table.read_text().splitlines()[1:] if table.is_file() else []
    return [(folder / file, verdict, detail) for file, verdict, detail in (line.split("\t") for line in lines)]


ROWS = _rows(GOLDEN / "session-flow-rejects") or _rows(KEPT / "session-flow-rejects")


@pytest.mark.parametrize(("path", "verdict", "detail"), ROWS, ids=[path.name for path, _, _ in ROWS])
def test_verdict_rule_and_detail_are_the_original_ones(path: Path, verdict: str, detail: str) -> None:
    found = check_bytes(path.name, path.read_bytes())
    assert (
        ("accept", found.detail) == (verdict, detail) if found.accepted else ("reject", found.rule) == (verdict, detail)
    )


def test_every_file_has_a_verdict_to_meet() -> None:
    assert ROWS
    assert {path for path, _, _ in ROWS} == {
        path for path in ROWS[0][0].parent.iterdir() if path.suffix in (".sd", ".sf")
    }
