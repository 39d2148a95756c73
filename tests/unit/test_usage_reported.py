"""Companions read as whole tables, and line by line where a line is odd: the answers are the same."""

from __future__ import annotations

import polars as pl
import pytest

from tasks.usage.reported import SYNTHETIC, Reports, companion_lines, record_lines, reports_in
from tests.lines import landed_file

GOOD = b'{"dialect":"claude-code/1","row":2,"call":"m2","usage":{"output_tokens":3}}\n'
CODEX = b'{"dialect":"codex/1","row":1,"call":"t#1","usage":{"output_tokens":4,"cached_input_tokens":5}}\n'


def call(usage: bytes) -> bytes:
    return b'{"dialect":"claude-code/1","row":1,"call":"m1","usage":' + usage + b"}\n"


def of_companions(*files: bytes) -> Reports:
    return reports_in([companion_lines(data) for data in files])


@pytest.mark.parametrize(
    "odd",
    [
        b"",
        b"null",
        b"[]",
        call(b'{"output_tokens":3}')[:-1] + b" more",
        call(b'{"output_tokens":3,"service_tier":"\xff"}')[:-1],
    ],
    ids=["blank", "null", "list", "trailing", "no text"],
)
def test_an_odd_line_is_told_of_and_the_others_are_read(odd: bytes) -> None:
    found = of_companions(GOOD, odd + b"\n" + GOOD, CODEX)
    rows = found.table.select("file", "row", "call", "output_tokens", "cached_input_tokens").rows()
    assert sorted(rows) == [(0, 2, "m2", 3, None), (1, 2, "m2", 3, None), (2, 1, "t#1", 4, 5)]
    assert [(file, line) for file, line, _ in found.unread] == [(1, 1)]


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (b'{"output_tokens":5,"cache_creation":7}', 5),
        (b'{"output_tokens":99999999999999999999}', None),
        (b'{"output_tokens":1e3}', None),
        (b'{"output_tokens":true}', None),
        (b'{"output_tokens":null,"input_tokens":"many"}', None),
    ],
)
def test_a_number_of_another_kind_says_nothing(usage: bytes, tokens: int | None) -> None:
    found = of_companions(call(usage) + GOOD)
    assert found.unread == ()
    assert found.table.select("call", "output_tokens").rows() == [("m1", tokens), ("m2", 3)]


@pytest.mark.parametrize("beside", [b"", b"null\n"], ids=["as a whole", "line by line"])
@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (b'{"output_tokens":5,"output_tokens":6}', 6),
        (b'{"output_tokens":5,"output_tokens":"six"}', None),
        (b'{"output_tokens":3,"x":1,"x":{"output_tokens":9}}', 3),
        (b'{"output_tokens":3,"x":' + b"[" * 9_000 + b"]" * 9_000 + b"}", 3),
        (b'{"output_tokens":4611686018427387904}', None),
        (b'{"output_tokens":3,"service_tier":"\xc3\xa9"}', 3),
        (b'{"output_tokens":3}{}', None),
        (b'{"output_tokens":3,"x":"' + b"x" * 5_000_000 + b'"}', 3),
    ],
    ids=["repeated", "repeated as text", "unknown repeated", "deep", "large", "not ASCII", "two on a line", "long"],
)
def test_a_line_says_the_same_whichever_way_it_is_read(usage: bytes, tokens: int | None, beside: bytes) -> None:
    found = of_companions(GOOD + call(usage) + beside)
    assert found.table.filter(pl.col("call") == "m1")["output_tokens"].to_list() in ([tokens], [])
    assert found.table.filter(pl.col("call") == "m2")["output_tokens"].to_list() == [3]


def test_a_number_that_cannot_be_is_told_of_with_its_line_wherever_that_is() -> None:
    large, hour = (
        call(b'{"output_tokens":281474976710656}'),
        call(b'{"cache_creation":{"ephemeral_1h_input_tokens":-281474976710656}}'),
    )
    found = of_companions(GOOD * 3_000, GOOD + b"null\n" + large + GOOD, CODEX, hour, GOOD)
    assert found.beyond == ((1, 3, "usage.output_tokens"), (3, 1, "usage.cache_creation.ephemeral_1h_input_tokens"))
    assert found.table.filter("beyond").select("file", "call").rows() == [(1, "m1"), (3, "m1")]
    assert [(file, line) for file, line, _ in found.unread] == [(1, 2)]


def test_two_objects_on_a_line_beside_a_blank_line_are_no_two_lines() -> None:
    found = of_companions(GOOD, GOOD[:-1] + GOOD + b"\n")
    assert found.table.rows() == of_companions(GOOD).table.rows()
    assert [(file, line) for file, line, _ in found.unread] == [(1, 1), (1, 2)]


def test_nothing_reported_is_an_empty_table() -> None:
    assert of_companions().table.height == of_companions(b"", b"").table.height == 0


def record(number: int, more: bytes) -> bytes:
    return b'{"ord":%d,"off":0,"sha":"","bytes":1,%b}' % (number, more)


def test_landed_files_read_together_say_what_each_says_by_itself() -> None:
    used = b'"call":"c%d","model":"m","flags":[%b],"usage":{"in":%d,"out":2}'
    files = [
        landed_file(record(1, used % (1, b'"finished"', 10)), record(2, b'"id":"a"'), record(3, used % (2, b"", 20))),
        landed_file(record(1, b'"parts":[{"k":"data","data":{"usage":1}}]')),
        landed_file(record(1, used % (3, b'"x","synthetic"', 30))),
    ]
    together = reports_in([record_lines(f"{number}.sd", data) for number, data in enumerate(files)])
    assert together.table.select("file", "row", "call", "model", "finished", "sd.in", "sd.out").rows() == [
        (0, 1, "c1", "m", True, 10, 2),
        (0, 3, "c2", "m", False, 20, 2),
        (1, 1, None, None, False, None, None),
        (2, 1, "c3", SYNTHETIC, False, 30, 2),
    ]
    alone = [reports_in([record_lines("one.sd", data)]).table for data in files]
    assert [table.drop("file").rows() for table in alone] == [
        together.table.filter(pl.col("file") == number).drop("file").rows() for number in range(3)
    ]


def test_a_line_that_only_the_reader_of_landed_files_takes_counts_and_another_is_told_of_by_its_row() -> None:
    good = b'"call":"c","usage":{"in":1}'
    odd = record(2, b'"id":"\\ud800",' + good)
    data = landed_file(record(1, b'"id":"a"'), odd, record(3, good), record(4, good)[:-1], record(5, good))
    found = reports_in([record_lines("0.sd", data)])
    assert found.table.select("row", "sd.in").rows() == [(2, 1), (3, 1), (5, 1)]
    assert [(file, row) for file, row, _ in found.unread] == [(0, 4)]


def test_a_records_row_is_where_it_stands_whatever_it_says_itself() -> None:
    used = b'"call":"c","usage":{"in":1},"row":99'
    files = [
        landed_file(record(1, b'"id":"a"'), record(2, used), record(3, used)[:-1], record(4, used)),
        landed_file(record(1, b'"row":7,' + used)),
    ]
    found = reports_in([record_lines(f"{number}.sd", data) for number, data in enumerate(files)])
    assert found.table.select("file", "row").rows() == [(0, 2), (0, 4), (1, 1)]
    assert [(file, row) for file, row, _ in found.unread] == [(0, 3)]


def test_a_number_of_a_landed_file_that_cannot_be_is_told_of_by_its_row() -> None:
    data = landed_file(record(1, b'"id":"a"'), record(2, b'"call":"c","usage":{"in":281474976710656,"out":5}'))
    found = reports_in([record_lines("0.sd", data)])
    assert found.table.select("row", "sd.in", "sd.out", "beyond").rows() == [(2, None, 5, True)]
    assert found.beyond == ((0, 2, "usage.in"),)
