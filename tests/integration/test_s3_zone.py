"""A zone in S3 is the zone in a folder: same listing, same verdicts, and chains that two processes cannot fork."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from flows.direct import check_files
from storage.objects import ObjectStore, open_store
from storage.zone import Zone
from tasks.verify import verifiable, verify_session
from tests.chain_race import publish_at_once
from tests.golden import golden_cases
from tests.s3_server import S3Server
from tests.small_zone import SESSION, land, landed_key, lines, small_zone

_number = itertools.count()


@pytest.fixture
def zone(s3: S3Server) -> Zone:
    return Zone(open_store(f"s3://zone/z{next(_number)}-{os.getpid()}"))


def copy(source: ObjectStore, target: ObjectStore) -> None:
    for stat in source.list(""):
        target.create(stat.key, source.read(stat.key))


@pytest.mark.parametrize("case", golden_cases("session-flow")[:12], ids=lambda case: case.name)
def test_golden_zone_is_the_same_in_s3(case: Path, zone: Zone) -> None:
    local = Zone(open_store(case / "root"))
    copy(local.store, zone.store)
    assert [(stat.key, stat.size) for stat in zone.store.list("")] == [
        (stat.key, stat.size) for stat in local.store.list("")
    ]
    assert (zone.sessions(), zone.conversations()) == (local.sessions(), local.conversations())
    for session in verifiable(local):
        assert zone.landed_files(session) == local.landed_files(session)
        assert [data for _, data in zone.read_many(zone.landed_files(session))] == [
            data for _, data in local.read_many(local.landed_files(session))
        ]
        assert verify_session(zone, session) == verify_session(local, session)
        assert verify_session(zone, session).problems == []
        assert zone.chain(session).fold().digest == local.chain(session).fold().digest


def test_damage_is_named_alike_in_s3(zone: Zone, tmp_path: Path) -> None:
    found = []
    for each in (zone, Zone(open_store(tmp_path))):
        small_zone(each)
        each.store.delete(landed_key(2))
        key = landed_key(3)
        each.store.replace(key, each.store.read(key)[:-20])
        found.append(verify_session(each, SESSION))
    assert found[0] == found[1]
    assert [problem.rule for problem in found[0].problems] == ["undecodable", "missing_landed"]


def test_check_reads_an_object_and_says_which_is_not_there(zone: Zone, capsys: pytest.CaptureFixture[str]) -> None:
    small_zone(zone)
    there = f"{zone.store.url}/{landed_key(1)}"
    assert check_files([there, f"{zone.store.url}/other.sf", "s3://nowhere/x.sf"], json=False) == 2
    out, err = capsys.readouterr()
    assert out.startswith(f"{there}: accept: ")
    assert f"{zone.store.url}/other.sf: no such object" in err
    assert "s3://nowhere" in err


def test_two_publishers_with_different_bytes_never_make_two_rounds_in_s3(zone: Zone) -> None:
    for seq in range(1, 11):
        land(zone, seq, lines(2 * seq - 1, 2))
    assert publish_at_once(zone.store.url, 10) == [["claim", "published"]] * 10
    assert [each.number for each in zone.chain(SESSION).rounds()] == list(range(1, 11))
    assert zone.chain(SESSION).fold().round == 10
