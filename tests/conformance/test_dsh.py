"""Session logs that the original programs wrote or refused: verdicts, logical events, bytes of a repair."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from schemas._dsh_frames import find_frames, open_frames
from schemas._dsh_json import write_value
from schemas.dsh import MAX_LOG_BYTES, logical_events, read_log, repair, write_batch, write_first_batch
from schemas.errors import LogEventRejected, LogRejected, LogUnsupported
from tests.dsh_logs import golden_events, keys_of, read_json, read_root, their_texts
from tests.golden import GOLDEN, golden_cases

CASES = [case for case in golden_cases("dsh") if (case / "root").is_dir()]
LATEST = golden_cases("dsh-v4")
VERDICTS = {
    case: (verdict, error)
    for case, verdict, error in (
        line.split("\t") for line in (GOLDEN / "dsh" / "verdicts.tsv").read_text().splitlines()[1:]
    )
}
ACCEPTED = [case for case in CASES if VERDICTS[case.name][0] == "accept"]
REFUSED = [case for case in CASES if VERDICTS[case.name][0] == "reject"]
REPAIRED = [case for case in CASES if (case / "root-after-load").is_dir()]

KINDS = {
    "SessionFormatUnsupportedError": LogUnsupported,
    "SessionPersistenceCorruptionError": LogEventRejected,
    "Error": LogRejected,
}
ASKED_FOR = {"073-missing-session": "absent"}
SET_TO_COMPRESSED = {"070-encoding-mismatch"}
THE_ORIGINALS_FRAMES = b"\x04\x58"
"""How its writer's frames go on after the magic number: a checksum, no content size, a window of 2 MiB."""


def test_there_are_cases_of_every_kind() -> None:
    assert ACCEPTED
    assert REFUSED
    assert REPAIRED
    assert LATEST


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_what_the_original_refuses_is_refused_as_the_same_kind_of_wrong(case: Path) -> None:
    compressed = True if case.name in SET_TO_COMPRESSED else None
    with pytest.raises(LogRejected) as refused:
        read_root(case / "root", compressed=compressed, session=ASKED_FOR.get(case.name))
    assert type(refused.value) is KINDS[VERDICTS[case.name][1]]


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.name)
def test_header_and_logical_events_are_the_original_ones(case: Path) -> None:
    logs = read_root(case / "root")
    assert logs
    for path in case.glob("events*.json"):
        golden = read_json(path)
        log = logs[golden["meta"]["id"]]
        assert log.header.as_json() == {"type": "session", **golden["meta"]}
        assert logical_events(log) == golden_events(golden["events"])


@pytest.mark.parametrize("case", LATEST, ids=lambda case: case.name)
def test_header_frames_and_events_of_the_current_generation_are_the_original_ones(case: Path) -> None:
    expected = read_json(case / "expected.json")
    logs = read_root(case / "root")
    assert logs.keys() == expected["sessions"].keys()
    for session, log in logs.items():
        name = "events.json" if session == expected["root"] else f"events-{session}.json"
        golden = read_json(case / name)
        facts = expected["sessions"][session]
        assert log.header.as_json() == golden["meta"] == facts["header"]
        assert (len(log.frames), len(log.events)) == (facts["frames"], facts["events"])
        assert log.torn is None
        assert repair(log) is None
        assert logical_events(log) == log.events == golden["events"]


@pytest.mark.parametrize("case", REPAIRED, ids=lambda case: case.name)
def test_a_repair_gives_the_original_bytes_but_for_two_texts(case: Path) -> None:
    events = read_json(case / "events.json")["events"]
    texts = their_texts(events)
    for key in keys_of(case / "root-after-load"):
        before = (case / "root" / key).read_bytes()
        golden = (case / "root-after-load" / key).read_bytes()
        mending = repair(read_log(before, name=key))
        assert mending is not None
        after = before[: mending.keep] + mending.tail
        if not texts:
            assert after == golden
        else:
            assert after[: mending.keep] == golden[: mending.keep]
            expected = _text_of(golden, key)
            for theirs, ours in texts.items():
                expected = expected.replace(write_value(theirs), write_value(ours))
            assert _text_of(after, key) == expected
        mended = read_log(after, name=key)
        assert repair(mended) is None
        assert mended.torn is None
        assert mended.events == golden_events(events)


@pytest.mark.parametrize("case", [*ACCEPTED, *LATEST], ids=lambda case: case.name)
def test_what_is_written_again_reads_the_same(case: Path) -> None:
    for log in read_root(case / "root").values():
        for packed in (True, False) if log.header.version < 2 else (False,):
            data = write_first_batch(log.header, log.events, compressed=log.compressed, packed=packed)
            again = read_log(data, name=log.file)
            assert (again.header, again.events, again.torn) == (log.header, log.events, None)


@pytest.mark.parametrize("case", [*ACCEPTED, *LATEST], ids=lambda case: case.name)
def test_each_batch_is_written_as_the_bytes_of_the_original_frame(case: Path) -> None:
    for key in keys_of(case / "root"):
        data = (case / "root" / key).read_bytes()
        log = read_log(data, name=key)
        frames = find_frames(data, key)[0] if log.compressed else []
        ends = [start for _, start in log.frames[1:]] + [log.frames_end] if log.compressed else [0]
        for frame, (start, end) in zip(frames[1:], pairwise(ends), strict=True):
            if data[frame.start + 4 : frame.start + 6] == THE_ORIGINALS_FRAMES:
                held = [line for line in log.lines if start <= line.start < end]
                events = log.events[held[0].first_seq : held[-1].first_seq + held[-1].events]
                assert write_batch(events, packed=log.header.version < 2) == data[frame.start : frame.end]


def _text_of(data: bytes, key: str) -> bytes:
    if not key.endswith(".zstd"):
        return data
    return b"".join(open_frames(data, find_frames(data, key)[0], key, MAX_LOG_BYTES))
