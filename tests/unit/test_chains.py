"""Chains: listed, folded, claimed and published; a claim decides which bytes a round number may get."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from schemas.errors import ChainRejected, RoundRejected
from schemas.input_digest import input_digest
from schemas.session_flow import round_file_name, view_json
from schemas.times import format_time, parse_time
from storage.claims import Claim
from storage.objects import open_store
from storage.zone import Zone
from tests.chain_race import publish_at_once
from tests.golden import golden_cases
from tests.small_zone import SESSION, claim_for, land, lines, publish, round_bytes, small_zone

ROUNDS = f"_conversations/{SESSION}/rounds/"


@pytest.fixture
def zone(tmp_path: Path) -> Zone:
    return Zone(open_store(tmp_path))


def rejected_rule(rejected: pytest.ExceptionInfo[ChainRejected]) -> str:
    return rejected.value.rule


def test_listing_takes_only_round_files_and_sorts_by_number(zone: Zone) -> None:
    small_zone(zone)
    for name in (
        "r000001-XYZ.sf",
        "r1-aaaaaaaaaaaa.sf",
        "r000009-aaaaaaaaaaaa.sf.bak",
        "notes.txt",
        "r000002-AAAAAAAAAAAA.sf",
    ):
        zone.store.create(ROUNDS + name, b"")
    zone.store.create(ROUNDS + "r1000000-aaaaaaaaaaaa.sf", b"")
    assert [each.number for each in zone.chain(SESSION).rounds()] == [1, 2, 3, 1000000]


def test_fold_is_the_conversation_up_to_a_round(zone: Zone) -> None:
    small_zone(zone)
    chain = zone.chain(SESSION)
    assert (chain.fold().round, chain.fold(upto=2).round, chain.fold(upto=0).round) == (3, 2, 0)
    assert list(chain.fold().nodes) == ["session/n"]


def test_fold_refuses_a_missing_round(zone: Zone) -> None:
    small_zone(zone)
    zone.store.delete(zone.chain(SESSION).rounds()[1].key)
    with pytest.raises(ChainRejected) as rejected:
        zone.chain(SESSION).fold()
    assert rejected_rule(rejected) == "order"


def test_fold_refuses_two_rounds_with_one_number(zone: Zone) -> None:
    small_zone(zone)
    zone.store.create(ROUNDS + "r000002-aaaaaaaaaaaa.sf", b"")
    with pytest.raises(ChainRejected) as rejected:
        zone.chain(SESSION).fold()
    assert rejected_rule(rejected) == "duplicate_round"


def test_fold_refuses_a_round_under_another_number(zone: Zone) -> None:
    small_zone(zone)
    third = zone.chain(SESSION).rounds()[2]
    zone.store.create(ROUNDS + "r000004-" + third.digest12 + ".sf", zone.chain(SESSION).read(third))
    with pytest.raises(ChainRejected) as rejected:
        zone.chain(SESSION).fold()
    assert rejected_rule(rejected) == "round_number"


def test_fold_refuses_a_damaged_round(zone: Zone) -> None:
    small_zone(zone)
    first = zone.chain(SESSION).rounds()[0]
    zone.store.replace(first.key, zone.store.read(first.key)[:-10])
    with pytest.raises(RoundRejected) as rejected:
        zone.chain(SESSION).fold()
    assert rejected.value.file == first.key


@pytest.mark.parametrize("case", golden_cases("session-flow"), ids=lambda case: case.name)
def test_golden_chain_folds_and_its_state_file_is_written_alike(case: Path, zone: Zone) -> None:
    original = Zone(open_store(case / "root"))
    steps = [step for step in json.loads((case / "steps.json").read_text()) if step.get("parse", True)]
    for conversation in original.conversations():
        view = original.chain(conversation).fold()
        assert view_json(view) == json.loads((case / "fold.json").read_text())
        assert view.header is not None
        state = original.store.read(f"_conversations/{conversation}/conversation.state")
        now = state.decode().split()[-1]
        assert format_time(parse_time(now)) == now
        assert now in [step["now"] for step in steps]
        zone.chain(conversation).write_state(view.header, view.digest, now)
        assert zone.store.read(f"_conversations/{conversation}/conversation.state") == state


def test_input_digest_is_over_sorted_digests_after_the_previous_one() -> None:
    assert input_digest("", []) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert input_digest("aa", ["cc", "bb"]) == input_digest("aa", iter(["bb", "cc"]))
    assert input_digest("", ["b" * 64]) != input_digest("", ["b" * 64, "b" * 64])


def test_claim_stands_until_its_round_is_published(zone: Zone) -> None:
    land(zone, 1, lines(1, 2))
    chain = zone.chain(SESSION)
    assert chain.pending_claim() is None
    header, data, digest = round_bytes(zone, 1, 1, 1)
    claim = claim_for(header, digest)
    assert chain.claim(claim) == claim
    assert chain.pending_claim() == claim
    chain.publish(1, data, digest)
    assert chain.pending_claim() is None
    assert chain.fold().digest == digest


def test_earlier_claim_stands_against_a_later_one(zone: Zone) -> None:
    land(zone, 1, lines(1, 2))
    chain = zone.chain(SESSION)
    first = claim_for(*round_bytes(zone, 1, 1, 1, node="first")[::2])
    second_header, second_data, second_digest = round_bytes(zone, 1, 1, 1, node="second")
    chain.claim(first)
    assert chain.claim(claim_for(second_header, second_digest)) == first
    with pytest.raises(ChainRejected) as rejected:
        chain.publish(1, second_data, second_digest)
    assert rejected_rule(rejected) == "claim"
    assert chain.rounds() == []


def test_claims_outlive_their_rounds_so_that_a_late_process_cannot_publish_a_second_one(zone: Zone) -> None:
    land(zone, 1, lines(1, 2))
    late_header, late_data, late_digest = round_bytes(zone, 1, 1, 1, node="late")
    key = publish(zone, 1, 1, 1)
    chain = zone.chain(SESSION)
    assert chain.claim(claim_for(late_header, late_digest)).digest != late_digest
    with pytest.raises(ChainRejected):
        chain.publish(1, late_data, late_digest)
    assert [each.key for each in chain.rounds()] == [key]


def test_publishing_the_same_bytes_again_is_success(zone: Zone) -> None:
    land(zone, 1, lines(1, 2))
    header, data, digest = round_bytes(zone, 1, 1, 1)
    chain = zone.chain(SESSION)
    chain.claim(claim_for(header, digest))
    first = chain.publish(1, data, digest)
    assert chain.publish(1, data, digest) == first
    publish(zone, 2, 2, 1)
    assert chain.publish(1, data, digest) == first
    assert [each.number for each in chain.rounds()] == [1, 2]


def test_round_without_a_claim_is_not_published(zone: Zone) -> None:
    land(zone, 1, lines(1, 2))
    _, data, digest = round_bytes(zone, 1, 1, 1)
    with pytest.raises(ChainRejected) as rejected:
        zone.chain(SESSION).publish(1, data, digest)
    assert rejected_rule(rejected) == "claim"


def test_round_that_does_not_follow_the_head_is_not_published(zone: Zone) -> None:
    small_zone(zone)
    chain = zone.chain(SESSION)
    header, data, digest = round_bytes(zone, 5, 4, 3)
    chain.claim(claim_for(header, digest))
    with pytest.raises(ChainRejected) as rejected:
        chain.publish(5, data, digest)
    assert rejected_rule(rejected) == "order"


def test_number_that_others_took_without_a_claim_is_not_published_twice(zone: Zone) -> None:
    """Programs of the original format publish without claims."""
    land(zone, 1, lines(1, 2))
    _, theirs, their_digest = round_bytes(zone, 1, 1, 1, node="theirs")
    header, data, digest = round_bytes(zone, 1, 1, 1)
    zone.store.create(ROUNDS + round_file_name(1, their_digest), theirs)
    chain = zone.chain(SESSION)
    chain.claim(claim_for(header, digest))
    with pytest.raises(ChainRejected) as rejected:
        chain.publish(1, data, digest)
    assert rejected_rule(rejected) == "duplicate_round"
    assert chain.pending_claim() is None


def test_bytes_without_the_digest_they_are_published_under_are_refused(zone: Zone) -> None:
    land(zone, 1, lines(1, 2))
    header, data, digest = round_bytes(zone, 1, 1, 1)
    chain = zone.chain(SESSION)
    chain.claim(claim_for(header, digest))
    with pytest.raises(ChainRejected) as rejected:
        chain.publish(1, data.replace(b"session/n", b"session/m"), digest)
    assert rejected_rule(rejected) == "digest"


def test_claim_is_one_line_in_a_fixed_order(zone: Zone) -> None:
    claim = Claim(
        conversation="c",
        session="s",
        round=2,
        previous="p",
        from_seq=3,
        through_seq=5,
        indexed_seq=9,
        absent=[(4, 4), (7, 9)],
        digest="0" * 64,
        parser="v1",
        policy="v1+idle=10m0s",
    )
    zone.chain("c").claim(claim)
    assert zone.store.read("_conversations/c/rounds/r000002.claim") == (
        b'{"conversation":"c","session":"s","round":2,"previous":"p","from_seq":3,"through_seq":5,"indexed_seq":9,'
        b'"absent":[[4,4],[7,9]],"digest":"%s","parser":"v1","policy":"v1+idle=10m0s"}\n' % (b"0" * 64)
    )


@pytest.mark.parametrize(
    "text",
    [b"", b"{}", b"null", b'{"round":1', b'{"round":"1"}', b"\xff"],
)
def test_claim_that_cannot_be_read_is_named(zone: Zone, text: bytes) -> None:
    zone.store.create(ROUNDS + "r000001.claim", text)
    with pytest.raises(ChainRejected) as rejected:
        zone.chain(SESSION).pending_claim()
    assert (rejected.value.file, rejected.value.rule) == (ROUNDS + "r000001.claim", "claim")


def test_claim_of_another_round_is_refused(zone: Zone) -> None:
    land(zone, 1, lines(1, 2))
    header, _, digest = round_bytes(zone, 1, 1, 1)
    zone.store.create(ROUNDS + "r000001.claim", claim_for(header, digest).model_copy(update={"round": 2}).to_bytes())
    with pytest.raises(ChainRejected, match="claims round 2"):
        zone.chain(SESSION).pending_claim()


def test_two_publishers_with_different_bytes_never_make_two_rounds(zone: Zone, tmp_path: Path) -> None:
    for seq in range(1, 101):
        land(zone, seq, lines(2 * seq - 1, 2))
    assert publish_at_once(str(tmp_path), 100) == [["claim", "published"]] * 100
    assert [each.number for each in zone.chain(SESSION).rounds()] == list(range(1, 101))
    assert zone.chain(SESSION).fold().round == 100
