"""Session logs: containers, torn tails, interrupted turns and their repair."""

from __future__ import annotations

import pytest
import zstandard

from schemas._dsh_frames import compress
from schemas._dsh_json import write_value
from schemas.dsh import (
    Event,
    StoredLog,
    closing_events,
    logical_events,
    read_log,
    repair,
    write_batch,
    write_event,
    write_first_batch,
)
from schemas.errors import LogEventRejected, LogRejected, LogUnsupported
from tests.dsh_logs import answer, header, mark, numbered, result, text_chunks, turn, user

ZSTD, PLAIN, LATEST = "session.jsonl.zstd", "session.jsonl", "session.v4.jsonl.zstd"
TWO_TURNS = numbered(
    *turn(1, user("a"), answer("b", "c1"), mark("tool/call", turn=1, step=1, callId="c1"), result("c1", "out")),
    *turn(2, user("d"), answer("e", turn=2)),
)


def in_frames(events: list[Event], size: int = 3, *, generation: int = 0, compressed: bool = True) -> bytes:
    """A log whose batches have ``size`` events."""
    made = write_first_batch(header(generation), events[:size], compressed=compressed)
    batches = (events[start : start + size] for start in range(size, len(events), size))
    return made + b"".join(write_batch(batch, compressed=compressed) for batch in batches)


def mended(data: bytes, name: str) -> StoredLog:
    mending = repair(read_log(data, name=name))
    return read_log(data if mending is None else data[: mending.keep] + mending.tail, name=name)


@pytest.mark.parametrize(("name", "compressed"), [(ZSTD, True), (PLAIN, False)])
def test_a_log_cut_anywhere_keeps_its_whole_lines_and_can_be_mended(name: str, compressed: bool) -> None:
    data = in_frames(TWO_TURNS, compressed=compressed)
    first = len(write_first_batch(header(), [], compressed=compressed))
    sound = read_log(data, name=name)
    for cut in range(len(data)):
        if cut < first:
            with pytest.raises(LogRejected, match="empty"):
                read_log(data[:cut], name=name)
            continue
        log = read_log(data[:cut], name=name)
        assert log.events == TWO_TURNS[: len(log.events)]
        assert len(log.events) >= sum(line.end <= log.frames_end for line in sound.lines if compressed)
        after = mended(data[:cut], name)
        assert after.events == logical_events(log)
        assert (after.torn, repair(after)) == (None, None)


def test_what_a_torn_frame_still_holds_is_kept() -> None:
    long = numbered(*turn(1, *(user(f"{number:01000}") for number in range(300))))
    data = in_frames(long[:2]) + compress(b"".join(map(write_event, long[2:])))[:-40]
    log = read_log(data, name=ZSTD)
    assert 100 < len(log.events) < len(long)
    assert log.torn == "the last frame is cut short"
    assert mended(data, ZSTD).events == logical_events(log)


def test_lines_say_where_they_stand_in_the_text() -> None:
    events = numbered(mark("turn/start", turn=1)) + text_chunks("a", "b", "c", "d", first_seq=1)
    log = read_log(write_first_batch(header(), events, compressed=False), name=PLAIN)
    data = write_first_batch(header(), events, compressed=False)
    assert [(line.first_seq, line.events) for line in log.lines] == [(0, 1), (1, 4)]
    assert b"".join(data[line.start : line.end] for line in log.lines) == data.partition(b"\n")[2]
    assert b"text-chunks" in data[log.lines[1].start : log.lines[1].end]
    assert log.events == events


def test_a_bad_line_with_no_turn_ended_after_it_is_a_torn_tail() -> None:
    data = in_frames(TWO_TURNS, compressed=False)
    log = read_log(data + b"nonsense\n" + write_event(mark("todo/write")), name=PLAIN)
    assert (log.events, log.text_end) == (TWO_TURNS, len(data))
    assert log.torn is not None
    assert mended(data + b"nonsense\n", PLAIN).events == TWO_TURNS


@pytest.mark.parametrize(
    "bad", [b"nonsense\n", b"5\n", b'{"type":"text-chunks"}\n', b'{"type":"todo/write","seq":3}\n']
)
def test_a_bad_line_with_a_turn_ended_after_it_is_damage(bad: bytes) -> None:
    data = in_frames(TWO_TURNS[:-1], compressed=False)
    with pytest.raises(LogRejected, match="a turn ends after it"):
        read_log(data + bad + write_event(TWO_TURNS[-1]), name=PLAIN)
    with pytest.raises(LogRejected, match="a turn ends after it"):
        read_log(data + bad + b'{"type":"turn\\u002fend"}\n', name=PLAIN)


def test_a_turns_end_with_a_wrong_number_is_damage() -> None:
    with pytest.raises(LogRejected, match="the event's number is 13, expected was 14"):
        read_log(in_frames(TWO_TURNS, compressed=False) + write_event(TWO_TURNS[-1]), name=PLAIN)


@pytest.mark.parametrize("generation", [0, 4])
@pytest.mark.parametrize("line", [b"nonsense", b'{"type":"todo/write","seq":90,"time":1,"data":{}}', b"5"])
def test_a_bad_line_in_a_whole_frame_is_damage_whatever_comes_after_it(line: bytes, generation: int) -> None:
    begun = numbered(mark("turn/start", turn=1))
    data = write_first_batch(header(generation), begun) + compress(line + b"\n")
    with pytest.raises(LogRejected, match="in a whole frame") as refused:
        read_log(data, name=LATEST if generation else ZSTD)
    assert refused.value.row == 3


def test_the_version_is_looked_at_before_the_frames_behind_it() -> None:
    data = write_first_batch(header(4), []) + compress(b"{}\n")[:-1] + b"?"
    with pytest.raises(LogUnsupported, match="version 4"):
        read_log(data, name=ZSTD)


@pytest.mark.parametrize(
    ("tail", "rule"),
    [
        (b"junk", "frame"),
        (b"(\xb5/\xfe", "frame"),
        (b"\x50\x2a\x4d\x18\x01\x00\x00\x00x", "frame"),
        (b"(\xb5/\xfd\x0c\x58", "frame"),
        (b"(\xb5/\xfd\x04\x58\x07\x00\x00", "frame"),
        (compress(b"{}\n")[:-1] + b"\x00", "frame"),
        (compress(b'{"type"'), "frame"),
    ],
)
def test_what_is_no_clean_frame_is_damage(tail: bytes, rule: str) -> None:
    with pytest.raises(LogRejected) as refused:
        read_log(in_frames(TWO_TURNS) + tail, name=ZSTD)
    assert refused.value.rule == rule


@pytest.mark.parametrize(("level", "checksum", "size"), [(1, False, True), (19, True, True), (3, False, False)])
def test_frames_of_any_writer_are_read(level: int, checksum: bool, size: bool) -> None:
    writer = zstandard.ZstdCompressor(level=level, write_checksum=checksum, write_content_size=size)
    lines = [write_value(header().as_json()) + b"\n", b"".join(map(write_event, TWO_TURNS))]
    data = b"".join(map(writer.compress, lines)) + writer.compress(b"")
    assert read_log(data, name=ZSTD).events == TWO_TURNS


@pytest.mark.parametrize("torn", [False, True])
def test_a_decompression_bomb_meets_the_limit(torn: bool) -> None:
    bomb = compress(b" " * 50_000_000)
    assert len(bomb) < 10_000
    data = in_frames(TWO_TURNS) + (bomb[:-1] if torn else bomb)
    with pytest.raises(LogRejected) as refused:
        read_log(data, name=ZSTD, limit=10_000_000)
    assert refused.value.rule == "too_large"
    with pytest.raises(LogRejected, match="above the limit"):
        read_log(in_frames(TWO_TURNS, compressed=False), name=PLAIN, limit=100)


def test_nesting_beyond_the_limit_is_named_and_not_taken_for_a_torn_tail() -> None:
    with pytest.raises(LogRejected, match="too_deep"):
        read_log(in_frames(TWO_TURNS, compressed=False) + b"[" * 20_000 + b"\n", name=PLAIN)


def test_a_generation_that_is_not_known_is_refused_by_name() -> None:
    with pytest.raises(LogUnsupported, match="generation 5"):
        read_log(b"", name="session.v5.jsonl.zstd")
    with pytest.raises(LogRejected, match="no session log's name"):
        read_log(b"", name="notes.jsonl")


@pytest.mark.parametrize("generation", range(5))
def test_a_turn_that_a_crash_left_open_is_closed_in_memory(generation: int) -> None:
    turn_start, step_start = mark("turn/start", turn=1), mark("step/start", turn=1, step=1)
    called = mark("tool/call", turn=1, step=1, callId="c2", name="bash", arguments="{}")
    events = numbered(
        turn_start, step_start, answer("a", "c1", "c2", "c3"), called, result("c1", "x", generation=generation)
    )
    closing = closing_events(events, generation)
    assert [(event["type"], event["seq"], event["time"]) for event in closing] == [
        ("tool/result", 5, events[-1]["time"]),
        ("tool/result", 6, events[-1]["time"]),
        ("step/end", 7, events[-1]["time"]),
        ("turn/end", 8, events[-1]["time"]),
    ]
    assert [event["data"]["error"]["code"] for event in closing[:2]] == ["TOOL_OUTCOME_UNKNOWN", "TOOL_NOT_STARTED"]
    assert [event.get("sourceEventSeqs") for event in closing[:2]] == [[3], None]
    assert closing[0]["data"]["message"]["role"] == ("tool" if generation == 4 else "user")
    assert closing[3]["data"]["reason"] == {"kind": "interrupted"}
    assert closing_events(events + closing, generation) == []


def test_what_an_event_does_not_say_is_not_made_up_for_it() -> None:
    closing = closing_events(numbered(mark("turn/start"), mark("step/start")), 0)
    assert [event["data"] for event in closing] == [{}, {"reason": {"kind": "interrupted"}}]
    assert closing_events(numbered(mark("turn/start", turn=None)), 0) == []
    assert len(closing_events(numbered(mark("turn/start", turn=1), mark("step/start", step=None)), 0)) == 1


@pytest.mark.parametrize(
    "begun", [mark("turn/start", turn=0), mark("turn/start", turn="1"), mark("turn/start")], ids=str
)
def test_a_turn_that_nothing_could_end_readably_is_not_mended(begun: Event) -> None:
    log = read_log(write_first_batch(header(), numbered(begun)), name=ZSTD)
    assert len(logical_events(log)) == 2
    with pytest.raises(LogEventRejected, match="unrepairable"):
        repair(log)


def test_a_call_without_an_id_is_not_answered_in_the_file() -> None:
    log = read_log(write_first_batch(header(), numbered(mark("turn/start", turn=1), answer("a", ""))), name=ZSTD)
    with pytest.raises(LogEventRejected, match="does not name its call"):
        repair(log)


def test_what_stands_outside_turns_needs_no_closing() -> None:
    assert closing_events(numbered(*turn(), mark("todo/write")), 0) == []
    assert closing_events([], 4) == []


def test_generation_4_mends_in_two_frames_and_generation_0_in_one() -> None:
    begun = numbered(mark("turn/start", turn=1), *(mark("todo/write", todos=[f"{n:0900}"]) for n in range(400)))
    for generation, name, frames in ((0, ZSTD, 1), (4, LATEST, 2)):
        whole = write_first_batch(header(generation), begun[:1])
        data = whole + compress(b"".join(map(write_event, begun[1:])))[:-30]
        assert len(read_log(data, name=name).events) > 1
        after = mended(data, name)
        assert len(after.frames) == 2 + frames
        assert after.events[-1]["data"]["reason"] == {"kind": "interrupted"}
