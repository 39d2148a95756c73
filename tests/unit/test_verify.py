"""Verification: an undamaged zone is clean, and every kind of damage is named with file, row and rule."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from schemas.session_flow import NodeFacts, Ref, build_round, encode_facts
from storage.objects import StoreSettings, open_store
from storage.zone import Zone
from tasks.verify import Problem, SessionVerification, verifiable, verify_session
from tasks.verify.rounds import check_claims
from tests.golden import golden_cases
from tests.small_zone import SESSION, land, landed_bytes, landed_key, lines, publish, round_bytes, small_zone

GOLDEN = [*golden_cases("session-flow"), *golden_cases("claude-code"), *golden_cases("claude-code-random")]


@pytest.fixture
def zone(tmp_path: Path) -> Zone:
    return Zone(open_store(tmp_path))


@pytest.fixture
def sound(zone: Zone) -> Zone:
    return small_zone(zone)


def found(zone: Zone) -> list[tuple[str, int | None, str]]:
    """File (its name alone), row and rule of each problem."""
    problems = verify_session(zone, SESSION).problems
    return [(problem.file.rsplit("/", 1)[-1], problem.row, problem.rule) for problem in problems]


def rules(zone: Zone) -> list[str]:
    return [problem.rule for problem in verify_session(zone, SESSION).problems]


def name(seq: int, **where: str) -> str:
    return landed_key(seq, **where).rsplit("/", 1)[-1]


def round_name(zone: Zone, number: int) -> str:
    return next(each.name for each in zone.chain(SESSION).rounds() if each.number == number)


def forge(zone: Zone, number: int, from_seq: int, through_seq: int, **changes: Any) -> str:
    """A round that no publisher would write, put beside the others; its name."""
    _, data, digest = round_bytes(zone, number, from_seq, through_seq, **changes)
    forged = f"r{number:06d}-{digest[:12]}.sf"
    zone.store.create(f"_conversations/{SESSION}/rounds/{forged}", data)
    return forged


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_golden_zone_is_clean(case: Path) -> None:
    zone = Zone(open_store(case / "root"))
    for session in verifiable(zone):
        verification = verify_session(zone, session)
        assert verification.problems == []
        assert verification.rounds == len(list((case / "root/_conversations" / session / "rounds").glob("*.sf")))


def test_sound_zone_is_counted(sound: Zone) -> None:
    land(sound, 4, lines(1, 2), folder="runs/wf_1", prefix="journal")
    assert verify_session(sound, SESSION) == SessionVerification(
        session=SESSION, streams=2, records=8, relanded=0, rounds=3, problems=[]
    )


def test_session_with_nothing_is_clean_and_empty(zone: Zone) -> None:
    assert verify_session(zone, "nobody") == SessionVerification("nobody", 0, 0, 0, 0, [])


class TestContinuity:
    """Lines and bytes of a source between its landed records."""

    def test_lines_landed_again_are_counted_and_no_problem(self, zone: Zone) -> None:
        land(zone, 1, lines(1, 3))
        land(zone, 2, lines(2, 3))
        verification = verify_session(zone, SESSION)
        assert (verification.relanded, verification.records, verification.problems) == (2, 6, [])

    def test_missing_line_is_an_ord_gap_and_a_byte_gap(self, zone: Zone) -> None:
        land(zone, 1, lines(1, 2))
        key = land(zone, 2, lines(4, 2))
        assert verify_session(zone, SESSION).problems == [
            Problem(key, 1, "ord_gap", "expected 3, got 4"),
            Problem(key, 1, "byte_gap", "expected 200, got 300"),
        ]

    def test_the_two_gaps_are_independent(self, zone: Zone) -> None:
        land(zone, 1, lines(1, 2))
        land(zone, 2, [*lines(4, 1, off=200), *lines(5, 1, off=307), *lines(6, 1, off=407)])
        assert found(zone) == [(name(2), 1, "ord_gap"), (name(2), 2, "byte_gap")]

    def test_counting_starts_at_line_one_byte_zero(self, zone: Zone) -> None:
        land(zone, 1, lines(3, 2))
        assert found(zone) == [(name(1), 1, "ord_gap"), (name(1), 1, "byte_gap")]

    def test_kinds_and_folders_are_separate_sources(self, zone: Zone) -> None:
        land(zone, 1, lines(1, 2))
        land(zone, 2, lines(1, 1), folder="streams/ag1", prefix="meta")
        land(zone, 3, lines(1, 2), folder="streams/ag1")
        land(zone, 4, lines(1, 1), prefix="changes")
        land(zone, 5, lines(1, 1), folder="runs/wf_1", prefix="manifest")
        land(zone, 6, lines(3, 2))
        assert found(zone) == []

    def test_kinds_of_later_generations_are_not_compared(self, zone: Zone) -> None:
        land(zone, 1, lines(7, 1), prefix="execution")
        land(zone, 2, lines(7, 1), folder="runs/wf_1", prefix="transcript")
        assert found(zone) == []

    def test_append_cursor_ahead_of_the_records_is_an_end_gap(self, zone: Zone) -> None:
        land(zone, 1, lines(1, 2))
        cursor = f"{SESSION}/streams/main/transcript.cursor"
        zone.store.replace(cursor, b"kind          append\nord           2\noffset        200\n")
        assert found(zone) == []
        zone.store.replace(cursor, b"kind          append\nord           5\noffset        500\n")
        (problem,) = verify_session(zone, SESSION).problems
        assert (problem.file, problem.row, problem.rule) == (cursor, None, "end_gap")
        assert problem.detail == "read to line 5, byte 500, but landed to line 2, byte 200"

    def test_append_cursor_without_any_landed_file_is_an_end_gap(self, zone: Zone) -> None:
        zone.store.replace(f"{SESSION}/runs/wf_1/journal.cursor", b"kind append\nord 1\noffset 10\n")
        assert rules(zone) == ["end_gap"]

    @pytest.mark.parametrize("text", [b"kind snapshot\nord 9\n", b"", b"kind append\nord 1\n"])
    def test_other_cursors_are_no_problem(self, zone: Zone, text: bytes) -> None:
        land(zone, 1, lines(1, 2))
        zone.store.replace(f"{SESSION}/streams/main/transcript.cursor", text)
        assert found(zone) == []

    def test_cursor_that_is_no_number_is_named(self, zone: Zone) -> None:
        zone.store.replace(f"{SESSION}/streams/main/transcript.cursor", b"kind append\nord many\n")
        assert rules(zone) == ["cursor"]


class TestDamagedLandedFile:
    """One bad file is named, and never stops the rest."""

    def test_changed_byte_breaks_the_file_and_the_round_that_consumed_it(self, sound: Zone) -> None:
        key = landed_key(2)
        sound.store.replace(key, sound.store.read(key).replace(b'"u3"', b'"u9"'))
        assert found(sound) == [(name(2), None, "digest"), (round_name(sound, 2), None, "input_digest")]

    def test_truncated_file_has_no_end(self, sound: Zone) -> None:
        key = landed_key(3)
        sound.store.replace(key, sound.store.read(key).rsplit(b"\n", 2)[0] + b"\n")
        assert found(sound) == [(name(3), None, "no_end"), (round_name(sound, 2), None, "input_digest")]

    def test_bad_record_is_named_by_its_row(self, sound: Zone) -> None:
        key = landed_key(1)
        sound.store.replace(key, sound.store.read(key).replace(b'"ord":2', b'"ord":x'))
        assert found(sound)[0] == (name(1), 2, "undecodable")

    def test_resealed_file_is_still_caught_by_the_round(self, sound: Zone) -> None:
        changed = lines(1, 2)
        changed[0]["id"] = "forged"
        sound.store.replace(landed_key(1), landed_bytes(1, changed))
        assert found(sound) == [(round_name(sound, 1), None, "input_digest")]

    def test_deleted_file_leaves_a_gap_and_a_missing_sequence(self, sound: Zone) -> None:
        sound.store.delete(landed_key(2))
        assert found(sound) == [
            (name(3), 1, "ord_gap"),
            (name(3), 1, "byte_gap"),
            (round_name(sound, 2), None, "missing_landed"),
        ]

    def test_second_file_of_one_sequence_changes_the_input(self, sound: Zone) -> None:
        land(sound, 3, lines(7, 1), folder="streams/other")
        assert (round_name(sound, 2), None, "input_digest") in found(sound)

    def test_position_after_an_unreadable_file_is_unknown_not_a_gap(self, sound: Zone) -> None:
        sound.store.replace(landed_key(2), b"")
        assert [rule for _, _, rule in found(sound)] == ["no_header", "input_digest"]

    def test_file_whose_bytes_cannot_be_had_is_unreadable(self, sound: Zone, tmp_path: Path) -> None:
        os.unlink(tmp_path / landed_key(2))
        (tmp_path / landed_key(2)).symlink_to(tmp_path / "gone")
        assert [rule for _, _, rule in found(sound)] == ["unreadable", "input_digest"]

    def test_file_above_the_size_limit_is_unreadable(self, sound: Zone, tmp_path: Path) -> None:
        land(sound, 4, [{**lines(7, 1)[0], "label": "x" * 5000}])
        small = Zone(open_store(tmp_path, settings=StoreSettings(max_object_bytes=4000)))
        assert [(problem.file, problem.rule) for problem in verify_session(small, SESSION).problems] == [
            (landed_key(4), "unreadable")
        ]

    def test_session_whose_name_cannot_be_a_key_is_unreadable(self, zone: Zone) -> None:
        assert [problem.rule for problem in verify_session(zone, "a\\b").problems] == ["unreadable"]


class TestDamagedChain:
    """The six checks of every round."""

    def test_missing_round(self, sound: Zone) -> None:
        sound.store.delete(sound.chain(SESSION).rounds()[1].key)
        assert found(sound) == [(round_name(sound, 3), None, "missing_round")]

    def test_missing_first_rounds_are_one_problem(self, sound: Zone) -> None:
        for each in sound.chain(SESSION).rounds()[:2]:
            sound.store.delete(each.key)
        (problem,) = verify_session(sound, SESSION).problems
        assert (problem.rule, problem.detail) == ("missing_round", "rounds 1 to 2 are missing before round 3")

    @pytest.mark.parametrize(
        ("gone", "claim", "which"),
        [([3], 3, "round 3"), ([2, 3], 2, "rounds 2 to 3"), ([1, 2, 3], 1, "rounds 1 to 3")],
    )
    def test_newest_rounds_that_are_gone_are_known_by_their_claims(
        self, sound: Zone, gone: list[int], claim: int, which: str
    ) -> None:
        for number in gone:
            sound.store.delete(f"_conversations/{SESSION}/rounds/{round_name(sound, number)}")
        (problem,) = verify_session(sound, SESSION).problems
        assert problem.file == f"_conversations/{SESSION}/rounds/r{claim:06d}.claim"
        assert problem.rule == "missing_round"
        assert problem.detail.startswith(f"{which} claimed, and not there; ")

    def test_a_claim_that_is_fulfilled_while_the_chain_is_read_is_no_problem(self, sound: Zone) -> None:
        chain = sound.chain(SESSION)
        newest = chain.rounds()[2]
        data = chain.read(newest)
        sound.store.delete(newest.key)
        rounds, claimed = chain.rounds_and_claims()
        assert claimed == [3]
        sound.store.create(newest.key, data)
        assert check_claims(chain, rounds, claimed) == []

    def test_damaged_round_is_named_once_and_the_next_starts_anew(self, sound: Zone) -> None:
        second = sound.chain(SESSION).rounds()[1]
        sound.store.replace(second.key, sound.store.read(second.key).replace(b'"session/n"', b'"session/m"'))
        assert found(sound) == [(second.name, None, "digest")]

    def test_rejected_frame_is_named_by_its_row(self, sound: Zone) -> None:
        second = sound.chain(SESSION).rounds()[1]
        sound.store.replace(second.key, sound.store.read(second.key).replace(b'"t":"node"', b'"t":"knot"'))
        assert found(sound) == [(second.name, 2, "frame_type")]

    def test_previous_that_is_not_the_digest_of_the_round_before(self, sound: Zone) -> None:
        forged = forge(sound, 4, 4, 3, previous="0" * 64)
        assert found(sound) == [(forged, None, "previous")]

    def test_skipped_evidence(self, sound: Zone) -> None:
        for seq in (4, 5):
            land(sound, seq, lines(2 * seq - 1, 2))
        forged = forge(sound, 4, 5, 5)
        assert found(sound) == [(forged, None, "from_seq")]

    def test_first_round_that_skips_evidence(self, zone: Zone) -> None:
        land(zone, 1, lines(1, 2))
        land(zone, 2, lines(3, 2))
        forged = forge(zone, 1, 2, 2)
        assert found(zone) == [(forged, None, "from_seq")]

    def test_every_missing_landed_file_is_listed(self, sound: Zone) -> None:
        forged = forge(sound, 4, 4, 6)
        assert found(sound) == [(forged, None, "missing_landed")] * 3

    def test_absurd_range_is_bounded(self, sound: Zone) -> None:
        forge(sound, 4, 4, 2**64 - 1)
        problems = verify_session(sound, SESSION).problems
        assert len(problems) == 1001
        assert problems[-1].detail == f"round 4: {2**64 - 1 - 1003} more landed files up to seq {2**64 - 1} are missing"

    def test_input_digest_that_is_not_that_of_the_files(self, sound: Zone) -> None:
        forged = forge(sound, 4, 4, 3, input_digest="0" * 64)
        assert found(sound) == [(forged, None, "input_digest")]

    def test_two_rounds_with_one_number(self, sound: Zone) -> None:
        third = sound.chain(SESSION).rounds()[2]
        sound.store.create(third.key[: -len("000000000000.sf")] + "ffffffffffff.sf", sound.store.read(third.key))
        assert found(sound) == [("r000003-ffffffffffff.sf", None, "duplicate_round")]

    def test_round_under_another_number(self, sound: Zone) -> None:
        third = sound.chain(SESSION).rounds()[2]
        renamed = third.name.replace("r000003", "r000004")
        sound.store.create(f"_conversations/{SESSION}/rounds/{renamed}", sound.store.read(third.key))
        assert found(sound) == [(renamed, None, "round_number")]

    @pytest.mark.parametrize(
        ("field", "value"), [("conversation", "c2"), ("session", "s2"), ("parser", "v2"), ("policy", "v1+idle=1m0s")]
    )
    def test_chain_is_one_interpretation_of_one_session(self, sound: Zone, field: str, value: str) -> None:
        forged = forge(sound, 4, 4, 3, **{field: value})
        assert found(sound) == [(forged, None, field)]

    def test_claims_and_foreign_files_are_left_alone(self, sound: Zone) -> None:
        for foreign in ("r4.claim", "notes.txt", "r4-x.sf"):
            sound.store.create(f"_conversations/{SESSION}/rounds/{foreign}", b"anything")
        assert found(sound) == []

    def test_chain_whose_session_is_gone_is_still_verifiable(self, sound: Zone) -> None:
        for seq in (1, 2, 3):
            sound.store.delete(landed_key(seq))
        (Path(sound.store.url) / SESSION / "streams/main").rmdir()
        (Path(sound.store.url) / SESSION / "streams").rmdir()
        (Path(sound.store.url) / SESSION).rmdir()
        assert sound.sessions() == []
        assert verifiable(sound) == [SESSION]
        assert rules(sound) == ["missing_landed"] * 3

    def test_evidence_not_yet_consumed_is_no_problem(self, sound: Zone) -> None:
        land(sound, 4, lines(7, 2))
        assert found(sound) == []

    def test_round_with_a_reference_past_its_range(self, sound: Zone) -> None:
        header, _, _ = round_bytes(sound, 4, 4, 3)
        facts = encode_facts(NodeFacts(kind="talk", ref=Ref(seq=9, row=1)))
        data, digest = build_round(header, [("talk/x", facts)], [], [])
        forged = f"r000004-{digest[:12]}.sf"
        sound.store.create(f"_conversations/{SESSION}/rounds/{forged}", data)
        assert found(sound) == [(forged, 2, "reference")]


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


Segments = list[dict[str, Any]]


def body_record(id: str, body: bytes, cut: Segments, parts: Segments, **changes: Any) -> dict[str, Any]:
    manifest = {
        "schema": "provider_body/1",
        "role": "request",
        "sha256": sha(body),
        "bytes": len(body),
        "segments": cut,
    }
    data = [{"k": "data", "state": "available", "bytes": 0, **part} for part in parts]
    last = {"k": "data", "data": manifest | changes, "state": "available", "bytes": 0}
    return {"ord": 1, "off": 0, "sha": "0", "bytes": 0, "id": id, "parts": [*data, last]}


class TestProviderBodies:
    """Every body comes together again from what its session holds."""

    PIECE = '"a long prompt, kept once"'
    BODY = b'{"system":' + PIECE.encode() + b',"n":1}'
    SECOND = BODY[:-4] + b':2,"again":' + PIECE.encode() + b"}"

    def first(self, **changes: Any) -> dict[str, Any]:
        segments: Segments = [{"lit": '{"system":'}, {"part": 0}, {"lit": ',"n":1}'}]
        return body_record("req_1", self.BODY, segments, [{"data": json.loads(self.PIECE)}], **changes)

    def second(self, **copy: Any) -> dict[str, Any]:
        copied = {"from": "req_1", "sha256": sha(self.BODY), "len": len(self.BODY) - 4} | copy
        segments: Segments = [
            {"copy": copied},
            {"lit": ':2,"again":'},
            {"piece": sha(self.PIECE.encode())},
            {"lit": "}"},
        ]
        return body_record("req_2", self.SECOND, segments, [])

    def check(self, zone: Zone, *records: dict[str, Any]) -> list[tuple[str, int | None, str]]:
        for seq, record in enumerate(records, 1):
            land(zone, seq, [record], folder="provider_body", prefix="provider_body")
        return found(zone)

    def test_pieces_and_copies_rebuild(self, zone: Zone) -> None:
        assert self.check(zone, self.first(), self.second(), self.first()) == []

    def test_body_kept_whole_is_text_or_base64(self, zone: Zone) -> None:
        for id, raw in (("b1", b"no json"), ("b2", b"\xff\x00")):
            text = raw.decode() if id == "b1" else base64.b64encode(raw).decode()
            part = {"k": "unknown", "data": text} | ({} if id == "b1" else {"encoding": "base64"})
            land(
                zone,
                int(id[1]),
                [body_record(id, raw, [{"part": 0}], [part])],
                folder="provider_body",
                prefix="provider_body",
            )
        assert found(zone) == []

    def test_records_without_a_manifest_hold_no_body(self, zone: Zone) -> None:
        plain = {
            "ord": 1,
            "off": 0,
            "sha": "0",
            "bytes": 0,
            "id": "x",
            "parts": [{"k": "data", "data": [1], "state": "", "bytes": 0}],
        }
        assert self.check(zone, plain, lines(1, 1)[0]) == []

    @pytest.mark.parametrize(
        ("changes", "why"),
        [
            ({"sha256": "0" * 64}, "do not match its digest"),
            ({"bytes": 3}, "more than the 3 bytes"),
            ({"bytes": 10**12}, "at most"),
            ({"segments": [{"part": 7}]}, "part 7"),
            ({"segments": [{"piece": "ab" * 32}]}, "no earlier record holds piece"),
            ({"segments": [{}]}, "not exactly one of"),
            ({"segments": [{"lit": "a", "part": 0}]}, "not exactly one of"),
            ({"segments": "all of it"}, "not the shape"),
            ({"segments": [{"copy": {"from": "req_1", "sha256": "", "len": 1}}]}, "copies from req_1"),
        ],
    )
    def test_body_that_does_not_come_together_is_named(self, zone: Zone, changes: dict[str, Any], why: str) -> None:
        key = land(zone, 1, [self.first(**changes)], folder="provider_body", prefix="provider_body")
        (problem,) = verify_session(zone, SESSION).problems
        assert (problem.file, problem.row, problem.rule) == (key, 1, "provider_body")
        assert why in problem.detail

    @pytest.mark.parametrize("copy", [{"sha256": "0" * 64}, {"len": 10**6}, {"len": -1}, {"from": "req_9"}])
    def test_copy_of_another_body_is_named(self, zone: Zone, copy: dict[str, Any]) -> None:
        assert self.check(zone, self.first(), self.second(**copy)) == [
            (name(2, prefix="provider_body"), 1, "provider_body")
        ]

    @pytest.mark.parametrize(("copies", "expected"), [(32, []), (33, ["provider_body"])])
    def test_copies_of_copies_are_bounded(self, zone: Zone, copies: int, expected: list[str]) -> None:
        body = b"x" * 10
        records = [body_record("b0", body, [{"lit": body.decode()}], [])]
        for number in range(1, copies + 1):
            copied = {"from": f"b{number - 1}", "sha256": sha(body), "len": len(body)}
            records.append(body_record(f"b{number}", body, [{"copy": copied}], []))
        land(zone, 1, records, folder="provider_body", prefix="provider_body")
        assert rules(zone) == expected

    def test_body_that_was_let_go_is_rebuilt_for_its_copy(self, zone: Zone, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tasks.verify.bodies.KEPT_BYTES", 0)
        between = body_record("other", b"other", [{"lit": "other"}], [])
        assert self.check(zone, self.first(), between, self.second()) == []

    def test_body_that_landed_later_cannot_be_copied_from(self, zone: Zone) -> None:
        assert self.check(zone, self.second(), self.first()) == [(name(1, prefix="provider_body"), 1, "provider_body")]


def test_importing_verify_does_not_import_prefect_or_a_store_client() -> None:
    heavy = "('prefect', 's3fs', 'fsspec', 'aiobotocore', 'polars', 'pyarrow')"
    code = f"import sys, tasks.verify, storage.s3, storage.zone; print([m for m in {heavy} if m in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_publish_keeps_a_zone_clean(sound: Zone) -> None:
    land(sound, 4, lines(7, 2))
    publish(sound, 4, 4, 4, node="later")
    assert verify_session(sound, SESSION).problems == []
