"""Landed files: what the reader takes, what it refuses and by which rule, and what the writer writes."""

from __future__ import annotations

import contextlib
from hashlib import sha256

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from schemas import lenient_json
from schemas._sd_reader import _read_record, _read_records
from schemas.errors import SessionDataRejected
from schemas.lenient_json import UndecodableJSON
from schemas.session_data import (
    Dropped,
    Part,
    Record,
    SessionDataHeader,
    Usage,
    encode_record,
    encode_text,
    read_session_data,
    text_of,
    write_session_data,
)
from tests.lines import RECORD_KEYS, SD_HEADER, landed_file, objects_with, spoiled

RECORD = (
    b'{"ord":1,"off":0,"sha":"ab","bytes":9,"id":"u1","from":"external","parts":[{"k":"text","text":"hi","bytes":2}]}'
)
HEADER = SessionDataHeader(
    h=1, schema="sd/1", seq=7, at="2026-08-07T09:01:00.5Z", kind="transcript", adapter="a/1", dialect="d/1",
    src="log.jsonl", session="s1", stream="main",
)  # fmt: skip


def rejected(data: bytes) -> SessionDataRejected:
    with pytest.raises(SessionDataRejected) as caught:
        read_session_data(data, name="x.sd")
    return caught.value


def test_a_landed_file_gives_header_records_and_the_digest_of_the_whole_file() -> None:
    data = landed_file(RECORD)
    landed = read_session_data(data, name="x.sd")
    assert landed.header == HEADER
    assert landed.records == [
        Record(ord=1, off=0, sha="ab", bytes=9, id="u1", from_="external",
               parts=(Part(k="text", text=Raw(b'"hi"'), bytes=2),)),
    ]  # fmt: skip
    assert (landed.name, landed.digest, landed.size) == ("x.sd", sha256(data).hexdigest(), len(data))


def test_nothing_after_the_end_line_is_read_but_the_file_digest_covers_it() -> None:
    data = landed_file(RECORD) + b"\xff not a line\n{"
    landed = read_session_data(data, name="x.sd")
    assert len(landed.records) == 1
    assert landed.digest == sha256(data).hexdigest()


def test_the_last_line_may_lack_its_newline() -> None:
    assert len(read_session_data(landed_file(RECORD)[:-1], name="x.sd").records) == 1


def test_an_end_line_is_known_by_its_first_nine_bytes() -> None:
    data = landed_file(RECORD).replace(b'{"t":"end"', b'{"t":"ending"')
    assert len(read_session_data(data, name="x.sd").records) == 1


def test_records_of_every_generation_keep_what_they_say() -> None:
    line = (
        b'{"ord":3,"off":44,"sha":"x","bytes":7,"usage":{},"model":"m","flags":["error","a b"],"parts":[{"k":"result",'
        b'"data":{"b" : [1.50]},"of":"t1","server":"s","server_tool":{"x":1},"failed":false}],'
        b'"dropped":[{"what":"signature","bytes":4}]}'
    )
    (record,) = read_session_data(landed_file(line), name="x.sd").records
    assert record.usage == Usage()
    assert record.flags == ("error", "a b")
    assert record.parts[0].failed is False
    assert record.parts[0].data == Raw(b'{"b" : [1.50]}')
    assert record.dropped == (Dropped(what="signature", bytes=4),)


def test_text_is_decoded_when_it_is_asked_for() -> None:
    line = b'{"parts":[{"text":"a\\u003cb \xff"},{"k":"call"}]}'
    (record,) = read_session_data(landed_file(line), name="x.sd").records
    assert [text_of(part) for part in record.parts] == ["a<b \ufffd", ""]


@pytest.mark.parametrize("line", [b"{}", b"null", b" null\t"])
def test_an_empty_record_is_a_record(line: bytes) -> None:
    (record,) = read_session_data(landed_file(line), name="x.sd").records
    assert record == Record(ord=0, off=0, sha="", bytes=0)


def test_a_lenient_line_does_not_change_how_its_neighbours_read() -> None:
    odd = b'{"ORD":2,"off":1,"off":5,"sha":"ab","bytes":9,"novel":{"x":[]}}'
    records = read_session_data(landed_file(RECORD, odd, RECORD), name="x.sd").records
    assert records[0] == records[2] == read_session_data(landed_file(RECORD), name="x.sd").records[0]
    assert records[1] == Record(ord=2, off=5, sha="ab", bytes=9)


@pytest.mark.parametrize(
    ("header", "rule"),
    [
        (b"", "undecodable"),
        (b"{", "undecodable"),
        (SD_HEADER.replace(b'"seq":7', b'"seq":"7"'), "undecodable"),
        (SD_HEADER.replace(b'"h":1', b'"h":2'), "envelope"),
        (SD_HEADER.replace(b'"h":1,', b""), "envelope"),
        (SD_HEADER.replace(b"sd/1", b"sd/2"), "schema"),
        (SD_HEADER.replace(b'"transcript"', b'""'), "header_field"),
        (SD_HEADER.replace(b'"session":"s1"', b'"session":null'), "header_field"),
        (SD_HEADER.replace(b'"src"', b'"source"'), "header_field"),
        (SD_HEADER.replace(b'"dialect":"d/1",', b""), "header_field"),
    ],
)
def test_headers_are_refused_by_the_first_rule_they_break(header: bytes, rule: str) -> None:
    error = rejected(landed_file(b"not json", header=header))
    assert (error.rule, error.row) == (rule, None)


@pytest.mark.parametrize(
    "field", [b'"seq":7,', b'"at":"2026-08-07T09:01:00.5Z",', b'"adapter":"a/1",', b',"stream":"main"']
)
def test_headers_may_lack_what_no_rule_asks_for(field: bytes) -> None:
    header = SD_HEADER.replace(field, b"")
    assert header != SD_HEADER
    assert read_session_data(landed_file(header=header), name="x.sd").records == []


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b" ",
        b"[]",
        b"{",
        b'{"ord":-1}',
        b'{"ord":1.0}',
        b'{"ord":18446744073709551616}',
        b'{"parts":[{"text":1}]}',
        b'{"bytes":9223372036854775808}',
        b'{"flags":"a"}',
        b'{"usage":[]}',
        b'{"ord":1}{"ord":2}',
        b'{ "t":"end"',
    ],
)
def test_a_record_that_does_not_decode_is_named_by_its_row(line: bytes) -> None:
    error = rejected(landed_file(RECORD, line, RECORD))
    assert (error.file, error.rule, error.row) == ("x.sd", "undecodable", 2)


def test_two_lines_cannot_make_up_for_each_other() -> None:
    # One value across two lines and two values on one line, with spaces to make every total come out even.
    lines = b'{"ord":1, "off":0,"sha":"","bytes":0,"parts":[{"k":"","data":[\n1]}]}{"ord":2,"off":0,"sha":"","bytes":0}'
    assert rejected(landed_file(lines)).rule == "undecodable"


@pytest.mark.parametrize("text", [b"null", b"1", b"true", b"{}", b"[]"])
def test_text_is_a_string_or_null(text: bytes) -> None:
    data = landed_file(RECORD.replace(b'"hi"', text))
    if text == b"null":
        assert read_session_data(data, name="x.sd").records[0].parts[0].text is UNSET
    else:
        assert rejected(data).rule == "undecodable"


def test_a_wrong_digest_is_found_before_a_wrong_count() -> None:
    data = landed_file(RECORD)
    assert rejected(data.replace(b'"records":1', b'"records":2')).rule == "record_count"
    assert rejected(data.replace(b'"records":1', b'"records":2').replace(b'"id":"u1"', b'"id":"u2"')).rule == "digest"


def test_an_end_line_that_does_not_decode_is_refused() -> None:
    assert rejected(landed_file().replace(b'"records":0', b'"records":"0"')).rule == "undecodable"


def test_a_file_without_a_first_line_has_no_header() -> None:
    assert rejected(b"").rule == "no_header"


def test_a_file_without_an_end_line_is_incomplete() -> None:
    assert rejected(SD_HEADER).rule == "no_end"
    assert rejected(landed_file(RECORD).replace(b'{"t":', b'{ "t":')).rule == "no_end"


def test_a_carriage_return_belongs_to_its_line() -> None:
    (record,) = read_session_data(landed_file(RECORD + b"\r"), name="x.sd").records
    assert record.id == "u1"


# --- both ways of reading --------------------------------------------------------------------------------------------

LINES = spoiled(objects_with(RECORD_KEYS) | st.just(RECORD))


def leniently(line: bytes) -> Record | None:
    try:
        return lenient_json.decode(line, Record)
    except UndecodableJSON:
        return None


@given(LINES)
def test_the_fast_way_and_the_lenient_way_read_the_same(line: bytes) -> None:
    try:
        record = _read_record(line, 1, "x.sd")
    except SessionDataRejected:
        assert leniently(line) is None
    else:
        assert record == leniently(line)


@given(st.lists(LINES, max_size=5))
def test_many_lines_read_as_each_line_by_itself(lines: list[bytes]) -> None:
    expected = [leniently(line) for line in lines]
    if None not in expected:
        assert _read_records(lines, "x.sd") == expected
        return
    with pytest.raises(SessionDataRejected) as caught:
        _read_records(lines, "x.sd")
    assert caught.value.row == expected.index(None) + 1


@given(st.binary(max_size=200) | spoiled(st.just(landed_file(RECORD, b"{}", RECORD))))
def test_nothing_but_rejections_is_ever_raised(data: bytes) -> None:
    with contextlib.suppress(SessionDataRejected):
        assert read_session_data(data, name="x.sd").digest == sha256(data).hexdigest()


# --- writing ---------------------------------------------------------------------------------------------------------


def test_a_header_and_no_record_is_a_file() -> None:
    assert write_session_data(HEADER, []) == landed_file()


def test_fields_are_written_in_order_and_left_out_when_empty() -> None:
    record = Record(
        ord=0, off=0, sha="", bytes=0, from_="agent", usage=Usage(), flags=("finished",),
        parts=(Part(k="call", data=Raw(b'{"a":1}'), failed=False), Part(k="", text=encode_text(""))),
        dropped=(Dropped(what="w", bytes=0),),
    )  # fmt: skip
    assert encode_record(record) == (
        b'{"ord":0,"off":0,"sha":"","bytes":0,"from":"agent","flags":["finished"],"usage":{},'
        b'"parts":[{"k":"call","data":{"a":1},"failed":false},{"k":""}],"dropped":[{"what":"w","bytes":0}]}'
    )


def test_strings_are_escaped_as_the_format_says() -> None:
    record = Record(ord=1, off=2, sha='<>&/\x7f"\\', bytes=3, label="\b\f\n\r\t\x1f\u2028\u2029é😀")
    assert encode_record(record) == (
        rb'{"ord":1,"off":2,"sha":"<>&/%b\"\\","bytes":3,"label":"\b\f\n\r\t\u001f\u2028\u2029%b"}'
        % (b"\x7f", "é😀".encode())
    )


def test_data_keeps_its_tokens_and_loses_the_space_between_them() -> None:
    data = '{"a" : "\\u003c\\/\u2028",\t"b":1.50E+1 , "data":"\u2029" }'.encode()
    parts = (Part(k="\u2028", text=encode_text("\u2029"), data=Raw(data)), Part(k="x", data=Raw('"\u2028"'.encode())))
    line = encode_record(Record(ord=1, off=2, sha="", bytes=3, label='"data":"\u2028"', parts=parts))
    assert '"data":{"a":"\\u003c\\/\u2028","b":1.50E+1,"data":"\u2029"}'.encode() in line
    assert line.endswith('"data":"\u2028"}]}'.encode())
    assert b'"label":"\\"data\\":\\"\\u2028\\""' in line
    assert b'"k":"\\u2028","text":"\\u2029"' in line


def test_text_read_in_any_spelling_is_written_in_one() -> None:
    part = Part(k="text", text=Raw(b'"\\u00e9\\/\\ud800\xff"'))
    assert b'"text":"\xc3\xa9/\xef\xbf\xbd\xef\xbf\xbd"' in encode_record(
        Record(ord=1, off=2, sha="", bytes=3, parts=(part,))
    )


@pytest.mark.parametrize("part", [Part(k="", text=Raw(b"1")), Part(k="", data=Raw(b"{")), Part(k="", text=Raw(b'"'))])
def test_a_part_that_is_no_json_is_never_written(part: Part) -> None:
    with pytest.raises(UndecodableJSON):
        write_session_data(HEADER, [Record(ord=1, off=2, sha="", bytes=3, parts=(part,))])


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
DATA = st.recursive(st.none() | st.integers(-5, 5) | TEXT, lambda inner: st.lists(inner, max_size=3), max_leaves=4)
PARTS = st.builds(
    Part,
    k=TEXT,
    text=st.just(UNSET) | TEXT.filter(bool).map(encode_text),
    data=st.just(UNSET) | DATA.map(msgspec.json.encode).map(Raw),
    id=TEXT,
    failed=st.none() | st.booleans(),
    bytes=st.integers(-(2**63), 2**63 - 1),
)
RECORDS = st.builds(
    Record, ord=st.integers(0, 2**64 - 1), off=st.integers(0, 2**64 - 1), sha=TEXT, bytes=st.integers(0, 9), label=TEXT,
    from_=TEXT, flags=st.lists(TEXT, max_size=2).map(tuple), usage=st.none() | st.builds(Usage, in_=st.integers(-3, 3)),
    parts=st.lists(PARTS, max_size=2).map(tuple),
)  # fmt: skip


@given(st.lists(RECORDS, max_size=4))
def test_what_is_written_reads_back(records: list[Record]) -> None:
    data = write_session_data(HEADER, records)
    landed = read_session_data(data, name="x.sd")
    assert landed.header == HEADER
    assert landed.records == records
    assert write_session_data(landed.header, landed.records) == data
