"""Golden Claude Code sources: each landed file's records, made again from the bytes it names, are the golden ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from schemas.session_data import SessionDataHeader, read_session_data, write_session_data
from tasks.land.claude_code import ClaudeCode
from tasks.land.claude_code.discover import source_file
from tasks.land.source import Line, SourceFile
from tests.golden import golden_cases

CASES = [
    case
    for kind in ("claude-code", "claude-code-random")
    for case in golden_cases(kind)
    if (case / "source.step1").is_dir()
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_records_equal_the_golden_ones(case: Path) -> None:
    dialect = ClaudeCode()
    for step in json.loads((case / "steps.json").read_text()):
        for name in step["lands"]:
            golden = (case / "root" / name).read_bytes()
            landed = read_session_data(golden, name=name)
            file = source_file(landed.header.src)
            assert file is not None
            assert Path(name).parent == Path(file.target).parent
            source = (case / step["source"] / file.key).read_bytes()
            records = [
                dialect.convert(line, file) for line in _lines(source, file, landed.records[0].ord, len(landed.records))
            ]
            assert write_session_data(_header(landed.header, file), records) == golden


def _lines(source: bytes, file: SourceFile, first: int, count: int) -> list[Line]:
    if not file.grows:
        return [Line(1, 0, source.rstrip(b"\r\n"))]
    lines: list[Line] = []
    off = 0
    for number, body in enumerate(source.split(b"\n"), 1):
        lines.append(Line(number, off, body))
        off += len(body) + 1
    return lines[first - 1 : first - 1 + count]


def _header(golden: SessionDataHeader, file: SourceFile) -> SessionDataHeader:
    dialect = ClaudeCode()
    return SessionDataHeader(
        h=1,
        schema="sd/1",
        seq=golden.seq,
        at=golden.at,
        kind=file.kind,
        adapter=dialect.adapter,
        dialect=dialect.name,
        src=file.key,
        session=file.session,
        stream=file.stream,
        batch=file.batch,
    )
