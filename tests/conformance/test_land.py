"""Golden Claude Code sources: each landed file's records, made again from the bytes it names, are the golden ones; and
landing the source step by step gives the golden files and no others, which assemble into the golden rounds and verify.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from schemas.session_data import SessionDataHeader, read_session_data, write_session_data
from schemas.times import parse_time
from storage.objects import open_store
from storage.zone import Zone
from tasks.assemble import AssembleOptions, assemble_session
from tasks.land.archive import land_archive
from tasks.land.claude_code import ClaudeCode
from tasks.land.claude_code.discover import source_file
from tasks.land.outcome import MAX_DELTA_BYTES, LandOptions, SessionLanding
from tasks.land.source import Line, SourceFile
from tasks.verify import verify_session
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
            lines = _lines(source, file, landed.records[0].ord, len(landed.records))
            records = [dialect.convert(line, file).record for line in lines]
            assert write_session_data(_header(landed.header, file), records) == golden


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
@pytest.mark.parametrize("seen", ["all", "nothing"])
def test_landed_files_equal_the_golden_bytes(case: Path, seen: str, tmp_path: Path) -> None:
    """`seen`: whether what the collector remembers for speed is kept between steps."""
    zone = Zone(open_store(tmp_path / "zone"))
    for step in json.loads((case / "steps.json").read_text()):
        grow(tmp_path / "projects", case / step["source"])
        options = LandOptions(now=parse_time(step["at"]), max_delta_bytes=step.get("max_delta_bytes", MAX_DELTA_BYTES))
        before = _written(tmp_path / "zone", "*.sd").keys()
        done = land(zone, tmp_path / "projects", options)
        assert sorted(_written(tmp_path / "zone", "*.sd").keys() - before) == sorted(step["lands"])
        assert sum(each.files for each in done) == len(step["lands"])
        for session in zone.sessions():
            assemble_session(zone, session, AssembleOptions(now=options.now, max_round_bytes=0))
        again = land(zone, tmp_path / "projects", options)
        assert not any(each.files for each in again)
        if seen == "nothing":
            shutil.rmtree(tmp_path / "zone" / "_landing", ignore_errors=True)
    assert _written(tmp_path / "zone", "*.sd") == _written(case / "root", "*.sd")
    assert _written(tmp_path / "zone", "*.sf") == _written(case / "root", "*.sf")
    assert [problem for session in zone.sessions() for problem in verify_session(zone, session).problems] == []


def grow(folder: Path, wanted: Path) -> None:
    """Make `folder` hold what `wanted` holds, files growing in place."""
    names = {path.relative_to(wanted) for path in wanted.rglob("*")}
    for name in sorted(names):
        if (wanted / name).is_dir():
            (folder / name).mkdir(parents=True, exist_ok=True)
        else:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((wanted / name).read_bytes())
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.relative_to(folder) not in names:
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink()


def land(zone: Zone, source: Path, options: LandOptions) -> list[SessionLanding]:
    dialect, store = ClaudeCode(), open_store(source)
    return list(land_archive(zone, store, dialect, dialect.discover(store), options))


def _written(root: Path, pattern: str) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob(pattern))}


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
