"""Values of session logs: read and written as JavaScript does."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas._dsh_json import NestedTooDeep, UndecodableJSON, is_safe, read_value, write_value

TEXTS = st.text(st.characters(codec=None, exclude_categories=[]), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9007199254740991", 2**53 - 1),
        ("9007199254740993", float(2**53)),
        ("123456789012345678901234567890", 1.2345678901234568e29),
        ('{"a":1,"a":2}', {"a": 2}),
        ('"\\ud800x"', "\ud800x"),
        ('"\\ud83d\\ude00"', "\U0001f600"),
        ("[1.0,1e2]", [1, 100]),
    ],
)
def test_a_value_is_read_as_javascript_reads_it(text: str, value: Any) -> None:
    assert read_value(text.encode()) == (value, True)


@pytest.mark.parametrize("text", ['{"a":-0}', "[-0.0]", "[1e400]", "[-1e999]", "[0,-0e7]", "-0", "9" * 5000])
def test_a_number_that_no_log_can_hold_is_told(text: str) -> None:
    assert read_value(text.encode())[1] is False


@pytest.mark.parametrize("text", ['"2026-01-05"', "[-0.5]", '{"id":"a-0b"}', "[-1,10]", '":-0"'])
def test_what_only_looks_like_negative_zero_is_sound(text: str) -> None:
    assert read_value(text.encode()) == (json.loads(text), True)


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert read_value(b'"a\xffb\xe2\x82"') == ("a\ufffdb\ufffd", True)


@pytest.mark.parametrize("text", ["", "{", "[1,]", "NaN", "Infinity", "'a'", '"\t"', "01", "\ufeff{}", "{} {}"])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(UndecodableJSON):
        read_value(text.encode())


def test_depth_is_followed_to_a_limit_without_using_the_stack() -> None:
    deep = b"[" * 10_000 + b"]" * 10_000
    assert write_value(read_value(deep)[0]) == deep
    with pytest.raises(NestedTooDeep):
        read_value(b"[" + deep + b"]")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            {"b": 1, "10": 2, "9": 3, "a": 4, "01": 5, "4294967295": 6},
            '{"9":3,"10":2,"b":1,"a":4,"01":5,"4294967295":6}',
        ),
        ([1e21, 1e-7, 0.1, 5e-324, 1.2345678901234568e20, 1.0], "[1e+21,1e-7,0.1,5e-324,123456789012345680000,1]"),
        ('\ud800\u2028\x1f/"\\é', '"\\ud800\u2028\\u001f/\\"\\\\é"'),
        ([-0.0, -0, 1e16, 1.5e-7, 2**60], "[0,0,10000000000000000,1.5e-7,1152921504606847000]"),
        ({"a": [], "b": {}, "c": [None, True, False]}, '{"a":[],"b":{},"c":[null,true,false]}'),
    ],
)
def test_a_value_is_written_as_javascript_writes_it(value: Any, text: str) -> None:
    assert write_value(value) == text.encode()


@pytest.mark.parametrize("value", [math.inf, [-math.inf], {"a": math.nan}], ids=str)
def test_what_json_cannot_hold_is_not_written(value: Any) -> None:
    with pytest.raises(ValueError, match="no JSON"):
        write_value(value)


@given(VALUES)
def test_what_is_written_reads_the_same(value: Any) -> None:
    again, finite = read_value(write_value(value) if _is_finite(value) else b"0")
    assert finite
    assert again == (_joined(value) if _is_finite(value) else 0)


@pytest.mark.parametrize(("value", "safe"), [(0, True), (1.0, True), (-1, False), (1.5, False), (2**53, False)])
def test_safe_integers_are_those_of_javascript(value: Any, safe: bool) -> None:
    assert is_safe(value) is safe
    assert is_safe(True) is is_safe("1") is is_safe(None) is is_safe(math.inf) is False


def _is_finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or (math.isfinite(value) and not (value == 0 and math.copysign(1, value) < 0))


def _joined(value: Any) -> Any:
    """Surrogates that stand side by side are one character once they have been text."""
    if isinstance(value, dict):
        return {_joined(key): _joined(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_joined(each) for each in value]
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return value


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b"1234567890123456789", 1234567890123456789.0),
        (b"-1234567890123456789", -1234567890123456789.0),
        (b"[1,-1234567890123456789]", [1, -1234567890123456789.0]),
        (b'{"a": 9007199254740993}', {"a": 9007199254740992.0}),
        (b"[\t12345678901234567890123]", [12345678901234567890123.0]),
        (b'{"a":"1234567890123456 ","b":9007199254740993}', {"a": "1234567890123456 ", "b": 9007199254740992.0}),
        (b'{"a":"1234567890123456789"}', {"a": "1234567890123456789"}),
        (b"[0.84442185152504811234,123.00000000000000001]", [0.8444218515250481, 123.0]),
    ],
)
def test_long_numbers_are_doubles_wherever_they_stand(line: bytes, value: Any) -> None:
    assert repr(read_value(line)[0]) == repr(value)
