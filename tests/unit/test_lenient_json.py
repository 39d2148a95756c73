"""The rules by which both formats read JSON, one test for each sentence of section 1.2."""

from __future__ import annotations

import contextlib
import json
import sys

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas import lenient_json
from schemas._json_text import MAX_DEPTH, _check_tokens
from schemas.lenient_json import (
    UndecodableJSON,
    check,
    compact,
    decode,
    decode_string,
    decode_value,
    elements,
    members,
)
from schemas.session_data import Record
from tests.lines import RECORD_KEYS, objects_with, spoiled


class Position(msgspec.Struct):
    seq: int
    row: int
    block: int | None = None


class Thing(msgspec.Struct):
    """A type with one field of every kind that the formats have."""

    id: str = ""
    count: int = 0
    kept: bool = False
    maybe: bool | None = None
    raw: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    ref: Position | None = None
    names: tuple[str, ...] = ()
    refs: list[Position] = []


def read(text: str) -> Thing:
    return decode(text.encode(), Thing)


def test_unknown_keys_are_ignored_whatever_they_hold() -> None:
    assert read('{"novel":{"id":"x","a":[1,{"b":null}]},"id":"y"}') == Thing(id="y")


@pytest.mark.parametrize("key", ["ID", "Id", "iD", "\\u0069d"])
def test_known_keys_match_in_any_case_and_spelling(key: str) -> None:
    assert read(f'{{"{key}":"x"}}') == Thing(id="x")


@pytest.mark.parametrize("key", ["\u212aept", "\\u212aEPT"])
def test_kelvin_sign_is_a_k(key: str) -> None:
    assert read(f'{{"{key}":true}}') == Thing(kept=True)


def test_long_s_is_an_s() -> None:
    assert read('{"name\u017f":["a"]}') == Thing(names=("a",))


@pytest.mark.parametrize("key", ["\u0131d", "\u0130d", "\uff49d", "i\u0307d"])
def test_letters_that_only_look_alike_do_not_match(key: str) -> None:
    assert read(f'{{"{key}":"x"}}') == Thing()


def test_the_later_of_two_keys_wins() -> None:
    assert read('{"id":"a","id":"b"}') == Thing(id="b")


def test_a_repeated_object_is_merged_field_by_field() -> None:
    assert read('{"ref":{"seq":1,"row":2,"block":0},"REF":{"row":3}}') == Thing(ref=Position(1, 3, 0))


def test_a_repeated_list_is_merged_element_by_element() -> None:
    assert read('{"refs":[{"seq":1,"row":2},{"seq":9}],"refs":[{"row":3}]}').refs == [Position(1, 3)]


def test_a_list_that_grows_again_meets_what_it_held_before() -> None:
    assert read('{"names":["a","b","c"],"names":["x"],"names":[null,null,null,null]}').names == ("x", "b", "c", "")


@pytest.mark.parametrize("between", ["[]", "null"])
def test_an_empty_list_forgets_what_it_held_before(between: str) -> None:
    assert read(f'{{"names":["a","b"],"names":{between},"names":[null]}}').names == ("",)


def test_null_leaves_strings_numbers_and_booleans_as_they_are() -> None:
    text = '{"id":"a","count":3,"kept":true,"id":null,"count":null,"kept":null}'
    assert read(text) == Thing(id="a", count=3, kept=True)


def test_null_takes_away_what_may_be_absent() -> None:
    assert read('{"ref":{"seq":1},"maybe":true,"ref":null,"maybe":null}') == Thing()


def test_an_object_read_after_null_starts_empty() -> None:
    assert read('{"ref":{"seq":1},"ref":null,"ref":{"row":2}}').ref == Position(0, 2)


def test_raw_json_keeps_null_and_the_bytes_of_its_value() -> None:
    assert bytes(read('{"raw": {"b" : 1e2 , "a":"\\/"} }').raw or b"") == b'{"b" : 1e2 , "a":"\\/"}'
    assert read('{"raw":null}').raw == msgspec.Raw(b"null")


def test_a_whole_null_is_an_empty_value() -> None:
    assert read(" null ") == Thing()


@pytest.mark.parametrize("value", ["1.0", "1e0", '"1"', "true", "[1]", "9223372036854775808", "-9223372036854775809"])
def test_a_signed_field_takes_only_an_integer_literal_of_64_bits(value: str) -> None:
    with pytest.raises(UndecodableJSON):
        read(f'{{"count":{value}}}')


def test_a_signed_field_takes_all_of_its_64_bits() -> None:
    assert read('{"count":-9223372036854775808}').count == -(2**63)
    assert read('{"count":-0}').count == 0


@pytest.mark.parametrize("value", ["-1", "-0", "18446744073709551616", "1" * 5000])
def test_an_unsigned_field_takes_no_sign_and_no_65th_bit(value: str) -> None:
    with pytest.raises(UndecodableJSON):
        decode(b'{"ord":%b}' % value.encode(), Record)
    assert decode(b'{"ord":18446744073709551615}', Record).ord == 2**64 - 1


@pytest.mark.parametrize(
    "text", ['{"id":1}', '{"kept":"true"}', '{"names":{}}', '{"names":[1]}', '{"ref":[]}', "[]", "1"]
)
def test_a_value_of_another_type_is_refused(text: str) -> None:
    with pytest.raises(UndecodableJSON):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" ",
        b"{",
        b"}",
        b"[1,]",
        b"[,]",
        b'{"a":1,}',
        b"{,}",
        b'{"a"}',
        b'{"a" 1}',
        b'{"a":1 "b":2}',
        b"[1 2]",
        b"[}",
        b"{]",
        b"{}x",
        b"{}{}",
        b"\xef\xbb\xbf{}",
        b"01",
        b"-",
        b"1.",
        b".5",
        b"+1",
        b"1e",
        b"NaN",
        b"nul",
        b"True",
        b"'a'",
        b"{a:1}",
        b'"\x1f"',
        b'"\x00"',
        b'"\\x"',
        b'"\\u12"',
        b'"\\u00g0"',
        b'"',
        b'"\\',
        b'"a',
        b"\x0b1",
        b"{}\x00",
        b"\xa0{}",
        b"{1:2}",
    ],
)
def test_text_outside_the_grammar_is_refused(text: bytes) -> None:
    with pytest.raises(UndecodableJSON):
        check(text)
    with pytest.raises(UndecodableJSON):
        _check_tokens(text)


@pytest.mark.parametrize(
    "text", [b" \t\r\n{} \r", b'"\x7f"', b'"\xff"', b'"\\ud800"', b"-0.5E-10", b'{"a":[{},[]]}', b"1e999"]
)
def test_text_inside_the_grammar_is_taken(text: bytes) -> None:
    check(text)
    _check_tokens(text)


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        (rb'"\b\f\n\r\t\/\\\""', '\b\f\n\r\t/\\"'),
        (rb'"\ud83d\ude00"', "😀"),
        (rb'"\ud800"', "\ufffd"),
        (rb'"\ud800\ud83d\uDE00\udc00"', "\ufffd😀\ufffd"),
        (rb'"\\ud800"', "\\ud800"),
        (b'"\xe2\x82"', "\ufffd\ufffd"),
        (b'"\xed\xa0\x80"', "\ufffd\ufffd\ufffd"),
        (b'"\xf0\x9f\x98"', "\ufffd\ufffd\ufffd"),
        (b'"\xc0\xafa\xff"', "\ufffd\ufffda\ufffd"),
        (b'"\xf4\x90\x80\x80"', "\ufffd\ufffd\ufffd\ufffd"),
    ],
)
def test_strings_decode_with_one_replacement_for_each_byte_or_escape(literal: bytes, text: str) -> None:
    assert decode_string(literal) == text


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_nesting_is_taken_to_ten_thousand_and_no_further(opening: bytes, closing: bytes) -> None:
    inner = b"1" if opening != b"[" else b""
    check(opening * MAX_DEPTH + inner + closing * MAX_DEPTH)
    with pytest.raises(UndecodableJSON, match="deeper"):
        check(opening * (MAX_DEPTH + 1) + inner + closing * (MAX_DEPTH + 1))


def test_depth_counts_from_the_line_not_from_the_value() -> None:
    deep = MAX_DEPTH - 1
    assert read('{"raw":' + "[" * deep + "]" * deep + "}").raw == msgspec.Raw(b"[" * deep + b"]" * deep)
    with pytest.raises(UndecodableJSON):
        read('{"raw":' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}")


def test_depth_is_refused_whatever_the_interpreter_would_bear() -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(50_000)
    try:
        with pytest.raises(UndecodableJSON):
            check(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1))
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize("line", [b"[" * 3_000_000, b'{"a":' * 600_000, b'{"id":"' + b'\\"' * 1_500_000])
def test_millions_of_open_brackets_or_quotes_are_refused_without_a_crash(line: bytes) -> None:
    with pytest.raises(UndecodableJSON):
        decode(line, Thing)


def test_compact_drops_space_between_tokens_and_nothing_else() -> None:
    assert (
        compact(b' { "a b" : [ 1 , 2.50e+1 , "\\u003c \xff" ] , "c":{ } } ')
        == b'{"a b":[1,2.50e+1,"\\u003c \xff"],"c":{}}'
    )


def test_compact_takes_what_is_too_deep_for_the_stack() -> None:
    assert compact(b"[ " * 5000 + b'"\\ud800 x"' + b" ]" * 5000) == b"[" * 5000 + b'"\\ud800 x"' + b"]" * 5000


def test_decode_value_gives_plain_values_and_replaces_what_is_no_text() -> None:
    text = b' {"a":[1,-2.5,true,null,{"b":"\\ud800"}],"a2":{},"c":[]} '
    assert decode_value(text) == {"a": [1, -2.5, True, None, {"b": "\ufffd"}], "a2": {}, "c": []}


def test_decode_value_takes_what_is_too_deep_for_the_stack() -> None:
    value = decode_value(b"[" * 5000 + b"]" * 5000)
    for _ in range(4999):
        (value,) = value
    assert value == []


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_decode_value_agrees_with_the_standard_library(value: object) -> None:
    text = json.dumps(value).encode()
    assert decode_value(text) == lenient_json._build_value(text) == json.loads(text)


@given(spoiled(objects_with(RECORD_KEYS)))
@example(b'{"a":"\\ud800\\\\u12"}')
@example(b'{"a":\\ud800}')
def test_the_fast_check_and_the_token_check_agree(line: bytes) -> None:
    def verdict(checks: object) -> bool:
        try:
            checks(line)  # type: ignore[operator]
        except UndecodableJSON:
            return False
        return True

    assert verdict(check) == verdict(_check_tokens)


@given(st.binary(max_size=60) | spoiled(objects_with(("id", "count", "ref", "refs", "names", "raw", "seq", "row"))))
def test_nothing_but_undecodable_is_ever_raised(line: bytes) -> None:
    with contextlib.suppress(UndecodableJSON):
        decode(line, Thing)


def test_keys_with_capitals_match_in_any_case() -> None:
    class Row(msgspec.Struct, rename="camel"):
        parent_uuid: str = ""

    assert decode(b'{"PARENTUUID":"a"}', Row).parent_uuid == "a"
    assert decode(b'{"parentuuid":"a","parentUuid":"b"}', Row).parent_uuid == "b"


def test_members_keep_their_order_their_repetitions_and_their_bytes() -> None:
    assert list(members(b' { "A" : [1, 2] , "b":"x", "a":null}')) == [("a", b"[1, 2]"), ("b", b'"x"'), ("a", b"null")]
    assert list(members(b"{}")) == []


def test_elements_keep_their_bytes() -> None:
    assert list(elements(b'[ {"a": 1} ,",", 1e2]')) == [b'{"a": 1}', b'","', b"1e2"]
    assert list(elements(b"[]")) == []
