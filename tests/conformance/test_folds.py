"""Golden chains: read, folded and written again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from schemas.session_flow import Entity, View, build_round, read_round, round_file_name, view_json
from tests.golden import golden_cases

FOLDED = [case for case in golden_cases("session-flow") if (case / "fold.json").is_file()]
CHAINS = [
    rounds
    for kind in ("session-flow", "claude-code", "claude-code-random")
    for case in golden_cases(kind)
    for rounds in sorted(case.glob("root/_conversations/*/rounds"))
]


@pytest.mark.parametrize("case", FOLDED, ids=lambda case: case.name)
def test_fold_of_all_rounds_is_the_golden_view(case: Path) -> None:
    (rounds,) = case.glob("root/_conversations/*/rounds")
    view = View.empty(rounds.parent.name)
    for path in sorted(rounds.glob("*.sf")):
        view.apply(read_round(path.read_bytes(), name=path.name), file=path.name)
    assert view_json(view) == json.loads((case / "fold.json").read_text())


@pytest.mark.parametrize("rounds", CHAINS, ids=lambda rounds: "/".join(rounds.parts[-5:-1:3]))
def test_rounds_are_written_again_to_the_same_bytes(rounds: Path) -> None:
    def said(entities: list[Entity]) -> list[tuple[str, bytes | None]]:
        return [(entity.id, None if entity.tombstone else entity.facts) for entity in entities]

    for path in sorted(rounds.glob("*.sf")):
        round = read_round(path.read_bytes(), name=path.name)
        data, digest = build_round(round.header, said(round.nodes), said(round.relations), said(round.unresolved))
        assert data == path.read_bytes()
        assert round_file_name(round.header.round, digest) == path.name
