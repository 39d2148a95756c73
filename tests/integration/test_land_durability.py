"""What holds when landing is killed, raced, or done from S3 to S3: one sequence a session, and the bytes of the
undisturbed run.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from storage.objects import open_store
from storage.zone import Zone
from tasks.verify import verify_session
from tests.landing_race import NOW, SESSIONS, grow, land, land_at_once, landed
from tests.s3_server import S3Server

_number = itertools.count()


@pytest.fixture
def bucket(s3: S3Server) -> str:
    return f"s3://zone/landing{next(_number)}-{os.getpid()}"


def test_killed_at_any_moment_it_ends_in_the_same_bytes(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.landing_race", str(tmp_path), "60"],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    killed, between = map(int, done.stdout.split())
    assert killed == 60
    assert between >= 20


def check_race(source: str, zone: str, alone: str) -> None:
    """Three processes land a source that grows between their passes, as one does by itself."""
    for step, length in enumerate((20, 45, 60)):
        grow(open_store(source), length)
        land(source, alone, NOW + step)
        wanted = landed(alone)
        before = landed(zone)
        counts = land_at_once(source, zone, 3, NOW + step)
        assert landed(zone) == wanted
        assert sum(counts) == len(wanted) - len(before)
    opened = Zone(open_store(zone))
    assert [problem for session in SESSIONS for problem in verify_session(opened, session).problems] == []
    assert [each.files for each in land(source, zone)] == [0, 0, 0]


def test_collectors_in_a_folder_share_one_sequence(tmp_path: Path) -> None:
    check_race(str(tmp_path / "source"), str(tmp_path / "zone"), str(tmp_path / "alone"))


def test_collectors_in_s3_share_one_sequence(bucket: str, tmp_path: Path) -> None:
    check_race(f"{bucket}/source", f"{bucket}/zone", f"{bucket}/alone")


def test_what_lands_from_s3_is_what_lands_from_a_folder(bucket: str, tmp_path: Path) -> None:
    for source in (f"{bucket}/source", str(tmp_path / "source")):
        grow(open_store(source), 30)
    land(f"{bucket}/source", f"{bucket}/zone")
    land(str(tmp_path / "source"), str(tmp_path / "zone"))
    assert landed(f"{bucket}/zone") == landed(str(tmp_path / "zone"))
