"""Splitting and typing objects and lists at the C decoder's speed gives what the lenient reader gives: the same values,
the same refusals.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any
from unittest import mock

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas import _json_shapes, _json_typed, lenient_json
from schemas._json_text import _ESCAPES, _unescape, decode_string, split_object
from schemas.lenient_json import UndecodableJSON, decode, decode_split, elements, is_deeper_than, members


class Inner(msgspec.Struct):
    kind: str = ""
    count: int = 0
    more: list[str] | None = None


class Outer(msgspec.Struct, rename="camel"):
    row_id: str = ""
    inner: Inner | None = None
    list_of: list[Inner] = []
    raw: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    flag: bool | None = None


Bounded = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class TypedInner(msgspec.Struct):
    """Of the types that the C decoder reads alike, where `Inner` has an integer without bounds."""

    kind: str = ""
    count: Bounded = 0
    more: list[str] | None = None


class TypedOuter(msgspec.Struct, rename="camel"):
    row_id: str = ""
    inner: TypedInner | None = None
    list_of: list[TypedInner] | None = None
    raw: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    flag: bool | None = None


KEYS = st.sampled_from(
    ["rowId", "ROWID", "inner", "Inner", "listOf", "raw", "flag", "kind", "\u212aind", "count", "more", "x"]
)
LEAVES = st.sampled_from(
    ["null", "true", "1", "1.0", "9223372036854775808", '"a"', '"\\ud800"', '""', '"\\u0041"', "[]", "{}", "-3"]
)


def objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    spaced = st.lists(st.tuples(KEYS, st.sampled_from(["", "", "", " "]), values), max_size=6)
    return spaced.map(
        lambda found: "{" + ",".join(f"{json.dumps(key)}{space}:{value}" for key, space, value in found) + "}"
    )


VALUES = st.recursive(
    LEAVES, lambda inner: objects(inner) | st.lists(inner, max_size=4).map(lambda found: "[" + ",".join(found) + "]")
)


def outcome(call: Callable[[], Any]) -> object:
    try:
        return call()
    except UndecodableJSON:
        return "refused"


def without_splitting(call: Callable[[], Any]) -> object:
    with (
        mock.patch.object(_json_shapes, "split_object", return_value=None),
        mock.patch.object(_json_typed, "split_object", return_value=None),
        mock.patch.object(lenient_json, "split_object", return_value=None),
        mock.patch.object(lenient_json, "split_list", return_value=None),
    ):
        return outcome(call)


def plain(value: Any) -> Any:
    """A struct in a form that compares: raw JSON as its bytes."""
    if isinstance(value, msgspec.Raw):
        return bytes(value)
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    return [plain(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("kind", [Outer, TypedOuter])
@given(text=objects(VALUES))
@example(text='{"inner":{"kind":"a"},"Inner":{"count":1}}')
@example(text='{"inner":{"kind":"a"},"inner":null,"inner":{"count":1}}')
@example(text='{"\\u0069nner":{"kind":"a","kind":"b"}}')
@example(text='{"rowId":"a","inner":{"kind":"b","count":1},"listOf":[{"count":2},{}],"x":[{"kind":1,"kind":2}]}')
@example(text='{"listOf":[{"kind":"a","Kind":"b"}]}')
@example(text='{"count":9223372036854775808,"inner":{"count":-9223372036854775808}}')
@example(text='{"inner":{"count":9223372036854775808}}')
def test_objects_are_read_alike(kind: type[msgspec.Struct], text: str) -> None:
    data = text.encode()
    assert outcome(lambda: plain(decode(data, kind))) == without_splitting(lambda: plain(decode(data, kind)))
    assert list(members(data)) == without_splitting(lambda: list(members(data)))


@pytest.mark.parametrize(
    ("kind", "text", "typed"),
    [
        (TypedOuter, '{"rowId":"a","inner":{"count":1},"listOf":[{"kind":"b"}],"new":{"Kind":1}}', True),
        (TypedOuter, '{"rowId":"a","flag":null}\r', True),
        (Outer, '{"rowId":"a"}', False),
        (TypedOuter, '{"rowId":"a","rowId":"b"}', False),
        (TypedOuter, '{"rowID":"a"}', False),
        (TypedOuter, '{"rowId":null}', False),
        (TypedOuter, '{"inner":{"Kind":"a"}}', False),
        (TypedOuter, '{"listOf":[{"kind":"a","kind":"b"}]}', False),
    ],
)
def test_only_what_cannot_be_read_otherwise_is_read_typed(kind: type[msgspec.Struct], text: str, typed: bool) -> None:
    value, members = decode_split(text.encode(), kind)
    assert (members is not None) == typed
    assert plain(value) == without_splitting(lambda: plain(decode(text.encode(), kind)))


@given(
    st.lists(st.sampled_from([b"[", b"]", b"{", b"}", b'"', b"\\", b"a", b":", b",", b" "]), max_size=30).map(b"".join)
)
def test_depth_of_a_list_is_that_of_its_brackets_outside_strings(text: bytes) -> None:
    string = json.dumps(text.decode()).encode()
    for depth in range(1, 5):
        nested = b"[" * depth + string + b"," + string + b"]" * depth
        assert [is_deeper_than(limit, nested) for limit in range(6)] == [depth > limit for limit in range(6)]


@given(st.lists(VALUES, max_size=5).map(lambda found: "[" + " , ".join(found) + "]"))
def test_lists_are_read_alike(text: str) -> None:
    data = text.encode()
    assert list(elements(data)) == without_splitting(lambda: list(elements(data)))


@pytest.mark.parametrize("text", ['{"a":1,"a":1}', '{"\\u0061":1}', '{"a" :1}', "{ }", ' {"a":1}', '{"a":"\\ud800"}'])
def test_objects_that_are_not_written_the_short_way_are_not_split(text: str) -> None:
    assert split_object(text.encode()) is None


PIECES = [
    b"\\ud83d",
    b"\\ude00",
    b"\\uDBFF",
    b"\\u0041",
    b"a",
    b"u",
    b"\\n",
    b"\\\\",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xc3\xa9",
]


@given(st.lists(st.sampled_from(PIECES), max_size=5).map(b"".join))
def test_strings_decode_as_by_the_rules_written_out(body: bytes) -> None:
    text = body.decode("utf-8", "sessionmill.each_byte")
    assert decode_string(b'"' + body + b'"') == _ESCAPES.sub(_unescape, text)
