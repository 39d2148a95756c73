"""Golden sessions assembled step by step: the rounds, byte for byte, and the state file beside them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from schemas.times import parse_time
from storage.objects import open_store
from storage.zone import Zone
from tasks.assemble import AssembleOptions, assemble_session
from tests.golden import golden_cases

CASES = [*golden_cases("session-flow"), *golden_cases("claude-code"), *golden_cases("claude-code-random")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
@pytest.mark.parametrize("keep", ["index", "nothing"])
def test_rounds_equal_the_golden_bytes(case: Path, keep: str, tmp_path: Path) -> None:
    """`keep`: whether the derived index is kept between steps, or each step starts from the landed files."""
    zone = Zone(open_store(tmp_path))
    for step in json.loads((case / "steps.json").read_text()):
        for name in step.get("land", step.get("lands")):
            target = tmp_path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(case / "root" / name, target)
        if not step.get("parse", True):
            continue
        options = AssembleOptions(
            now=parse_time(step.get("now") or step.get("at")), max_round_bytes=step.get("max_round_bytes", 0)
        )
        for session in zone.sessions():
            if keep == "nothing":
                shutil.rmtree(tmp_path / session / "index", ignore_errors=True)
            assemble_session(zone, session, options)
    assert _chains(tmp_path) == _chains(case / "root")


def _chains(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.glob("_conversations/*/**/*"))
        if path.suffix == ".sf" or path.name == "conversation.state"
    }
