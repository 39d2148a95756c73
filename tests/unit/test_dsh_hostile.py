"""Session logs nobody wrote in good faith: whatever the bytes are, they are read or refused as what they are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas._dsh_catalogue import known_types
from schemas._dsh_frames import compress
from schemas._dsh_json import write_value
from schemas.dsh import Event, StoredLog, logical_events, read_log, repair, write_batch, write_event, write_first_batch
from schemas.dsh_facts import facts_of
from schemas.dsh_lineage import delegations
from schemas.errors import LogRejected
from tests.dsh_logs import answer, header, mark, numbered, result, text_chunks, turn, user

LIMIT = 1_000_000
NAMES = ["session.jsonl", "session.v1.jsonl", "session.v2.jsonl.zstd", "session.v3.jsonl", "session.v4.jsonl.zstd"]
SMALL = st.none() | st.booleans() | st.integers(-3, 9) | st.floats() | st.text(max_size=3)
NAMES_OF_KEYS = """
    type seq time data surfaceOp sourceEventSeqs ignorable message content source role id kind turn step reason callId
    toolCallId op start end startSeq endSeq header config adapterDefaults trigger provenance texts dt args seq0 time0
    index chunk provider model isError error
"""
KEYS = st.sampled_from(NAMES_OF_KEYS.split())
KINDS = st.sampled_from(sorted(known_types(0) | known_types(4) | {"steering/message", "text-chunks", "x"}))
JSON = st.recursive(
    SMALL | KINDS | st.sampled_from(["append", "replace", "user", "tool", "model", "text", "tool-call", "tool-result"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=15,
)
WHOLE = numbered(
    *turn(1, user("a"), answer("b", "c1"), mark("tool/call", turn=1, step=1, callId="c1"), result("c1", "out")),
    mark("turn/start", turn=2),
    mark("step/start", turn=2, step=1),
    answer("d", "c2", "c3", turn=2),
)


def read_or_refuse(data: bytes, name: str) -> StoredLog | None:
    """The log, if it is one; all that can be done with it is done."""
    try:
        log = read_log(data, name=name, limit=LIMIT)
    except LogRejected:
        return None
    logical = logical_events(log)
    assert [event["seq"] for event in logical] == list(range(len(logical)))
    assert facts_of(log.header, logical).events == len(logical)
    delegations(log, [log])
    try:
        mending = repair(log)
    except LogRejected:
        return log
    if mending is not None:
        after = read_log(data[: mending.keep] + mending.tail, name=name, limit=2 * LIMIT)
        assert after.events == logical
        assert repair(after) is None
    return log


@given(st.binary(max_size=200), st.sampled_from(NAMES))
@example(b"(\xb5/\xfd", "session.jsonl.zstd")
@example(b"\n", "session.jsonl")
@example(b"{}\n", "session.jsonl")
def test_any_bytes_are_refused_or_read(data: bytes, name: str) -> None:
    read_or_refuse(data, name)


@given(
    st.lists(st.binary(max_size=40) | JSON.map(lambda value: write_value(_finite(value))), max_size=6),
    st.integers(0, 4),
)
def test_any_lines_after_a_header_are_refused_or_read(lines: list[bytes], generation: int) -> None:
    head, text = write_first_batch(header(generation), [], compressed=False), b"\n".join([*lines, b""])
    name = f"session.v{generation}.jsonl" if generation else "session.jsonl"
    plain = read_or_refuse(head + text, name)
    framed = read_or_refuse(compress(head) + (compress(text) if text else b""), name + ".zstd")
    if framed is not None:
        assert plain is not None
        assert framed.events == plain.events


@given(st.integers(0, len(WHOLE) - 1), KEYS, JSON, st.integers(0, 4), st.booleans())
def test_an_event_with_anything_in_it_is_refused_or_read(
    place: int, key: str, value: Any, generation: int, inner: bool
) -> None:
    event = WHOLE[place]
    changed = {**event, "data": {**event["data"], key: value}} if inner else {**event, key: value}
    events = [*WHOLE[:place], _finite(changed), *WHOLE[place + 1 :]]
    name = f"session.v{generation}.jsonl" if generation else "session.jsonl"
    head = write_first_batch(header(generation), [], compressed=False)
    read_or_refuse(head + b"".join(map(write_event, events)), name)


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4), st.booleans())
def test_a_log_with_spoiled_bytes_is_refused_or_read(changes: list[tuple[int, int]], compressed: bool) -> None:
    data = bytearray(write_first_batch(header(), WHOLE[:5], compressed=compressed))
    data += write_batch(WHOLE[5:], compressed=compressed)
    for place, value in changes:
        data[place % len(data)] = value
    read_or_refuse(bytes(data), "session.jsonl" + ".zstd" * compressed)


@given(st.data())
def test_a_torn_log_never_tells_of_an_event_that_was_not_written(data: st.DataObject) -> None:
    chunks = [
        {**event, "data": {**event["data"], "turn": 2}} for event in text_chunks(*"abcdefgh", first_seq=len(WHOLE))
    ]
    events = [*WHOLE, *chunks]
    sizes = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=8))
    whole, start = write_first_batch(header(), []), 0
    for size in sizes:
        whole += write_batch(events[start : start + size])
        start += size
    cut = data.draw(st.integers(0, len(whole)))
    log = read_or_refuse(whole[:cut], "session.jsonl.zstd")
    if log is not None:
        assert log.events == events[: len(log.events)]


@pytest.mark.parametrize("generation", [1, 4])
def test_ranges_that_name_more_events_than_any_log_has_meet_a_limit(generation: int) -> None:
    citing: list[Event] = [mark("todo/write")] * 3000
    citing += [{**user(str(number)), "sourceEventSeqs": [[0, 2900]]} for number in range(1500)]
    lines = b"".join(write_value(event) + b"\n" for event in numbered(*citing))
    data = write_first_batch(header(generation), [], compressed=False) + lines
    with pytest.raises(LogRejected, match="too_large"):
        read_log(data, name=f"session.v{generation}.jsonl")


def test_replacing_a_long_surface_over_and_over_takes_time_for_what_is_replaced_only() -> None:
    messages = [user(str(number)) for number in range(3000)]
    for seq in range(3000, 6000):
        operation = {"op": "replace", "startSeq": seq - 1, "endSeq": seq - 1}
        messages.append({**user(str(seq)), "sourceEventSeqs": [seq - 1], "surfaceOp": operation})
    data = write_first_batch(header(4), numbered(*messages), compressed=False, packed=False)
    assert len(read_log(data, name="session.v4.jsonl").events) == 6000


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not abs(value) < 1e300:
        return 1.5
    return value
