"""Relavium's own exporter and its YAML library, byte for byte; and its validator's refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import AgentSessionRejected
from schemas.relavium import AgentSessionRecord, SessionMessage, read_messages, read_record, read_workflow, write_yaml
from schemas.verdict import check_bytes
from storage.objects import open_store
from storage.zone import Zone
from tasks.export import scaffold
from tests.golden import GOLDEN, KEPT, golden_cases
from tests.relavium_archive import assemble, export, land, problems

EXPORTED = [*golden_cases("relavium"), *golden_cases("relavium-random")]
REFUSED = golden_cases("relavium-invalid")
SCALARS: list[dict[str, Any]] = json.loads(
    next(path for root in (GOLDEN, KEPT) if (path := root / "yaml-scalars.json").is_file()).read_bytes()
)


def session(case: Path) -> tuple[AgentSessionRecord, list[SessionMessage]]:
    record = read_record((case / "record.json").read_bytes(), name="record.json")
    return record, read_messages((case / "messages.json").read_bytes(), name="messages.json")


def place_refused(case: Path) -> tuple[int | None, str]:
    """The row (from 1) and the path of the original's first complaint; a path "" is the whole row."""
    said = re.match(r"(?:record|messages\[(\d+)\]): ([^:]*):", (case / "verdict.txt").read_text())
    assert said is not None
    return None if said[1] is None else int(said[1]) + 1, said[2]


def test_there_are_cases_of_every_kind() -> None:
    assert EXPORTED
    assert REFUSED
    assert SCALARS


@pytest.mark.parametrize("case", EXPORTED, ids=lambda case: case.name)
def test_a_session_becomes_the_file_the_original_writes(case: Path) -> None:
    assert scaffold(*session(case)).data == (case / "expected.relavium.yaml").read_bytes()


@pytest.mark.parametrize("case", EXPORTED, ids=lambda case: case.name)
def test_the_original_file_is_accepted_and_serialises_to_itself(case: Path) -> None:
    data = (case / "expected.relavium.yaml").read_bytes()
    verdict = check_bytes("expected.relavium.yaml", data)
    assert (verdict.accepted, verdict.rule) == (True, None)
    assert verdict.detail.endswith("; serialises to the same bytes")
    assert read_workflow(data, name=case.name).workflow.id == scaffold(*session(case)).workflow_id


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_what_the_original_refuses_is_refused_by_field_and_rule(case: Path) -> None:
    with pytest.raises(AgentSessionRejected) as refused:
        session(case)
    error = refused.value
    assert error.file == f"{'record' if error.row is None else 'messages'}.json"
    row, path = place_refused(case)
    assert error.row == row
    assert f"{error.field}.".startswith(f"{path}." if path else "")
    assert error.field
    assert f": {error.rule}: {error.field}: " in str(error)
    assert str(error).isprintable()


@pytest.mark.parametrize("case", SCALARS, ids=lambda case: case["name"])
def test_a_value_is_printed_as_the_original_library_prints_it(case: dict[str, Any]) -> None:
    assert write_yaml({"k": case["value"]}).decode() == case["yaml"]


@pytest.mark.parametrize("case", EXPORTED, ids=lambda case: case.name)
def test_a_landed_session_is_exported_as_the_original_writes_it(case: Path, tmp_path: Path) -> None:
    (tmp_path / "zone").mkdir()
    zone, exports = Zone(open_store(tmp_path / "zone")), open_store(tmp_path / "exports")
    assert problems(land(case, zone, "auto")) == []
    assemble(zone)
    (outcome,) = export(zone, exports)
    assert outcome.state == "written"
    assert exports.read(outcome.name) == (case / "expected.relavium.yaml").read_bytes()


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_what_the_original_refuses_lands_as_it_is_and_is_named_and_not_exported(case: Path, tmp_path: Path) -> None:
    (tmp_path / "zone").mkdir()
    zone, exports = Zone(open_store(tmp_path / "zone")), open_store(tmp_path / "exports")
    row, path = place_refused(case)
    (problem,) = problems(land(case, zone))
    assert (problem.rule, problem.row) == ("not_understood", row or 1)
    assert problem.file.endswith("/record" if row is None else "/messages")
    assert f" {path}" in problem.detail
    assemble(zone)
    (outcome,) = export(zone, exports)
    assert (outcome.state, outcome.rule) == ("rejected", "not_understood")
    assert exports.list("") == []
