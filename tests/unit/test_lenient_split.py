"""Splitting objects and lists at the C decoder's speed gives what the lenient reader gives: the same values, the same
refusals.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from unittest import mock

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas import _json_shapes, lenient_json
from schemas._json_text import _ESCAPES, _unescape, decode_string, split_object
from schemas.lenient_json import UndecodableJSON, decode, elements, members


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


KEYS = st.sampled_from(
    ["rowId", "ROWID", "inner", "Inner", "listOf", "raw", "flag", "kind", "\u212aind", "count", "more", "x"]
)
LEAVES = st.sampled_from(["null", "true", "1", "1.0", '"a"', '"\\ud800"', '""', '"\\u0041"', "[]", "{}", "-3"])


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


@given(objects(VALUES))
@example('{"inner":{"kind":"a"},"Inner":{"count":1}}')
@example('{"inner":{"kind":"a"},"inner":null,"inner":{"count":1}}')
@example('{"\\u0069nner":{"kind":"a","kind":"b"}}')
def test_objects_are_read_alike(text: str) -> None:
    data = text.encode()
    assert outcome(lambda: plain(decode(data, Outer))) == without_splitting(lambda: plain(decode(data, Outer)))
    assert list(members(data)) == without_splitting(lambda: list(members(data)))


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
