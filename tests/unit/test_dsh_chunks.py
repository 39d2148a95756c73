"""Packed chunk rows: what becomes one, what one stands for, and in which generations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas._dsh_chunks import pack, unpack
from schemas.dsh import Event, read_log, write_first_batch
from tests.dsh_logs import header, text_chunks


def test_at_least_three_like_chunks_become_one_row() -> None:
    chunks = text_chunks("a", "b", "c", "d")
    assert [line["type"] for line in pack(chunks)] == ["text-chunks"]
    assert pack(chunks[:2]) == chunks[:2]
    other = {**chunks[1], "data": {**chunks[1]["data"], "turn": 2}}
    assert pack([chunks[0], other, *chunks[2:]]) == [chunks[0], other, *chunks[2:]]
    marked = {**chunks[3], "ignorable": True}
    assert [line["type"] for line in pack([*chunks[:3], marked])] == ["text-chunks", "assistant/chunk"]
    assert unpack(pack(chunks)[0]) == chunks


@pytest.mark.parametrize(
    "change",
    [
        {"dt": [1]},
        {"dt": [1, 0.5, 1]},
        {"dt": [2**53 - 1] * 3},
        {"texts": []},
        {"texts": ["a", 1, "c", "d"]},
        {"more": 1},
        {"turn": "1"},
        {"index": None},
        {"dt": [-(2**54), 1, 1]},
    ],
    ids=str,
)
def test_a_row_keeps_all_of_its_rules_or_is_none(change: Event) -> None:
    row = pack(text_chunks("a", "b", "c", "d"))[0]
    assert unpack({**row, "data": {**row["data"], **change}}) is None
    assert unpack({**row, "more": 1}) is None
    assert unpack({**row, "seq0": 2**53 - 2}) is None


def test_rows_are_read_in_the_generations_that_have_them() -> None:
    chunks = text_chunks("a", "b", "c")
    for generation, name in ((0, "session.jsonl"), (1, "session.v1.jsonl")):
        data = write_first_batch(header(generation), chunks, compressed=False)
        assert read_log(data, name=name).events == chunks
    row = write_first_batch(header(4), chunks, compressed=False)
    assert read_log(row, name="session.v4.jsonl").events == []


def test_whole_numbers_may_be_written_as_fractions() -> None:
    data = b'{"turn":1,"step":1,"index":0,"dt":[0.0],"texts":["a","b"]}'
    line = b'{"type":"text-chunks","seq0":0.0,"time0":1,"data":' + data + b"}\n"
    after = b'{"type":"todo/write","seq":2.0,"time":1,"data":{}}\n'
    log = read_log(write_first_batch(header(), [], compressed=False) + line + after, name="session.jsonl")
    assert [(event["seq"], type(event["seq"])) for event in log.events] == [(0, int), (1, int), (2, int)]


KINDS = st.sampled_from(["text-delta", "reasoning-delta", "tool-call-delta", "block-start"])


@given(st.lists(st.tuples(KINDS, st.integers(0, 1), st.integers(-5, 5), st.sampled_from([None, "n"])), max_size=20))
def test_packing_loses_nothing(made: list[tuple[str, int, int, str | None]]) -> None:
    batch: list[Event] = []
    for seq, (kind, index, step, name) in enumerate(made):
        chunk: Event = {"type": kind, "index": index}
        if kind == "tool-call-delta":
            chunk |= {"id": "c"} if name is None else {"id": "c", "name": name}
        chunk["argumentsDelta" if kind == "tool-call-delta" else "text"] = "x"
        data = {"turn": 1, "step": 1, "chunk": chunk}
        batch.append({"type": "assistant/chunk", "seq": seq, "time": 1000 + step, "data": data})
    lines = pack(batch)
    again = [event for line in lines for event in ([line] if "seq" in line else unpack(line) or [])]
    assert again == batch
    assert list(map(list, again)) == list(map(list, batch))
