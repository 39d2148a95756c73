"""What holds when assembly is killed, raced, or moved to S3: one chain, and the bytes of the undisturbed run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import ClaimUnbuildable, RoundRejected, SessionDataRejected
from storage.claims import Claim
from storage.objects import open_store
from storage.zone import Zone
from tasks.assemble import AssembleOptions, SessionAssembly, assemble_session
from tasks.verify import verify_session
from tests.assembly_race import assemble_at_once
from tests.invented import SESSION, land_session
from tests.s3_server import S3Server

OPTIONS = AssembleOptions(now=1, max_round_bytes=6_000)


def contents(zone: Zone) -> dict[str, bytes]:
    return {stat.key: zone.store.read(stat.key) for stat in zone.store.list("")}


def test_killed_at_any_moment_it_ends_in_the_same_bytes(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.killed", str(tmp_path), "200"],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    killed, between = map(int, done.stdout.split())
    assert killed == 200
    assert between >= 20  # the others were killed before the first round, or after the last


def check_race(zones: list[Zone], said: list[tuple[SessionAssembly, SessionAssembly]]) -> None:
    for zone, (one, other) in zip(zones, said, strict=True):
        rounds = zone.chain(SESSION).rounds()
        assert [each.number for each in rounds] == list(range(1, len(rounds) + 1))
        assert len(rounds) > 2
        assert (one.digest, one.round, one.nodes) == (other.digest, other.round, other.nodes)
        assert one.rounds_written + other.rounds_written >= len(rounds)
        view = zone.chain(SESSION).fold()
        assert (view.digest, view.round) == (one.digest, len(rounds))
        assert verify_session(zone, SESSION).problems == []


def test_two_processes_never_fork_a_chain(tmp_path: Path) -> None:
    zones = []
    for number in range(50):
        (tmp_path / str(number)).mkdir()
        zones.append(Zone(open_store(tmp_path / str(number))))
        land_session(zones[-1], 9)
    check_race(zones, assemble_at_once([str(tmp_path / str(number)) for number in range(50)]))


def test_two_processes_never_fork_a_chain_in_s3(s3: S3Server) -> None:
    zones = [Zone(open_store(f"s3://zone/race-{os.getpid()}-{number}")) for number in range(5)]
    for zone in zones:
        land_session(zone, 6)
    check_race(zones, assemble_at_once([zone.store.url for zone in zones]))


def test_s3_and_a_folder_hold_the_same_keys_and_bytes(s3: S3Server, tmp_path: Path) -> None:
    local = Zone(open_store(tmp_path))
    remote = Zone(open_store(f"s3://zone/same-{os.getpid()}"))
    for zone in (local, remote):
        land_session(zone, 6)
        first = assemble_session(zone, SESSION, OPTIONS)
        land_session(zone, 4, first=7)
        second = assemble_session(zone, SESSION, OPTIONS)
        assert (first.rounds_written > 1, second.rounds_written > 0) == (True, True)
        assert assemble_session(zone, SESSION, OPTIONS).rounds_written == 0
    assert contents(local) == contents(remote)
    assert verify_session(remote, SESSION).problems == []


def interrupted(zone: Zone) -> Claim:
    """A zone whose newest round was claimed and never written."""
    land_session(zone, 5)
    assemble_session(zone, SESSION, OPTIONS)
    chain = zone.chain(SESSION)
    zone.store.delete(chain.rounds()[-1].key)
    claim = chain.pending_claim()
    assert claim is not None
    return claim


@pytest.mark.parametrize("later", [0, 3])
def test_a_claimed_round_is_made_from_the_evidence_of_its_claim(tmp_path: Path, later: int) -> None:
    """Also when more has landed since, behind which the claimed round must not reach."""
    zone = Zone(open_store(tmp_path))
    claim = interrupted(zone)
    land_session(zone, later, first=6)
    assemble_session(zone, SESSION, AssembleOptions(now=1, max_round_bytes=0))
    completed = zone.chain(SESSION).fold(claim.round)
    assert (completed.digest, completed.round) == (claim.digest, claim.round)
    assert verify_session(zone, SESSION).problems == []


def test_a_claim_whose_evidence_is_gone_is_named(tmp_path: Path) -> None:
    zone = Zone(open_store(tmp_path))
    claim = interrupted(zone)
    zone.store.delete(zone.landed_files(SESSION)[2].key)
    with pytest.raises(ClaimUnbuildable, match="missing: sequence 3") as caught:
        assemble_session(zone, SESSION, OPTIONS)
    assert (caught.value.conversation, caught.value.round) == (SESSION, claim.round)


def test_a_file_that_landed_behind_the_claim_is_left_out_of_its_round(tmp_path: Path) -> None:
    zone = Zone(open_store(tmp_path))
    land_session(zone, 3)
    land_session(zone, 2, first=5)
    assemble_session(zone, SESSION, AssembleOptions(now=1))
    chain = zone.chain(SESSION)
    zone.store.delete(chain.rounds()[-1].key)
    claim = chain.pending_claim()
    assert claim is not None
    assert claim.absent == [(4, 4)]
    land_session(zone, 1, first=4)
    assemble_session(zone, SESSION, AssembleOptions(now=1))
    assert chain.fold(1).digest == claim.digest


@pytest.mark.parametrize("number", [1, 2, -1])
def test_a_round_that_went_missing_comes_back_from_its_claim(tmp_path: Path, number: int) -> None:
    zone = Zone(open_store(tmp_path))
    land_session(zone, 6)
    assemble_session(zone, SESSION, OPTIONS)
    before = contents(zone)
    zone.store.delete(zone.chain(SESSION).rounds()[number].key)
    assemble_session(zone, SESSION, OPTIONS)
    chain = f"_conversations/{SESSION}/rounds/"
    assert {key: data for key, data in contents(zone).items() if key.startswith(chain)} == {
        key: data for key, data in before.items() if key.startswith(chain)
    }


@pytest.mark.parametrize("damage", [lambda data: data[:-20], lambda data: data.replace(b"main", b"maim")])
def test_no_round_is_put_on_top_of_a_damaged_one(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    zone = Zone(open_store(tmp_path))
    land_session(zone, 3)
    assemble_session(zone, SESSION, OPTIONS)
    rounds = zone.chain(SESSION).rounds()
    zone.store.replace(rounds[-1].key, damage(zone.store.read(rounds[-1].key)))
    for more in (0, 1):
        land_session(zone, more, first=4)
        with pytest.raises(RoundRejected):
            assemble_session(zone, SESSION, OPTIONS)
    assert len(zone.chain(SESSION).rounds()) == len(rounds)


@pytest.mark.parametrize(
    "change", [{"through_seq": 2}, {"through_seq": 10**6, "indexed_seq": 10**6}, {"previous": "0" * 64}]
)
def test_a_claim_that_lies_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    zone = Zone(open_store(tmp_path))
    claim = interrupted(zone)
    key = f"_conversations/{SESSION}/rounds/r{claim.round:06d}.claim"
    zone.store.replace(key, claim.model_copy(update=change).to_bytes())
    before = zone.chain(SESSION).rounds()
    with pytest.raises(ClaimUnbuildable):
        assemble_session(zone, SESSION, OPTIONS)
    assert zone.chain(SESSION).rounds() == before


def test_a_sequence_that_fits_no_round_is_named_before_anything_is_published(tmp_path: Path) -> None:
    zone = Zone(open_store(tmp_path))
    land_session(zone, 2)
    key = f"{SESSION}/streams/main/transcript-20260901T000000.000000000Z-{2**63}.sd"
    zone.store.create(key, zone.read(zone.landed_files(SESSION)[0]))
    with pytest.raises(SessionDataRejected) as caught:
        assemble_session(zone, SESSION, OPTIONS)
    assert (caught.value.file, caught.value.rule) == (key, "sequence")
    assert zone.chain(SESSION).rounds() == []


@pytest.mark.parametrize(
    "cache", [f"{SESSION}/index/sessionmill.state", f"_conversations/{SESSION}/conversation.state"]
)
def test_a_cache_that_cannot_be_used_costs_nothing_but_work(
    tmp_path: Path, cache: str, caplog: pytest.LogCaptureFixture
) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    good, hindered = (Zone(open_store(tmp_path / name)) for name in "ab")
    (tmp_path / "b" / cache / "folder").mkdir(parents=True)
    for first in (1, 4):
        for zone in (good, hindered):
            land_session(zone, 3, first=first)
            assemble_session(zone, SESSION, OPTIONS)
    assert zone_rounds(good) == zone_rounds(hindered)
    assert "cache cannot be written" in caplog.text


def zone_rounds(zone: Zone) -> dict[str, bytes]:
    return {each.name: zone.chain(SESSION).read(each) for each in zone.chain(SESSION).rounds()}


def test_neither_index_nor_state_is_needed(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    zone, forgetful = (Zone(open_store(tmp_path / name)) for name in "ab")
    for first in (1, 4, 7):
        for each in (zone, forgetful):
            land_session(each, 3, first=first)
            assemble_session(each, SESSION, OPTIONS)
        for key in (f"{SESSION}/index/sessionmill.state", f"_conversations/{SESSION}/conversation.state"):
            forgetful.store.delete(key)
    chain = f"_conversations/{SESSION}/rounds/"
    assert [stat.key for stat in zone.store.list(chain)] == [stat.key for stat in forgetful.store.list(chain)]
    assert all(zone.store.read(stat.key) == forgetful.store.read(stat.key) for stat in zone.store.list(chain))
