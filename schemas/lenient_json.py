"""Reading JSON the way both formats are read (specification, section 1.2).

`decode` is the rule; a typed C decoder is only ever a fast way to the same answer. Types are msgspec structs, which say
what each key holds. On top of standard grammar the rules are:

* unknown keys are ignored, known ones match whatever their case (U+017F matches ``s``, U+212A matches ``k``);
* a repeated key is read into what the earlier one left: objects merge field by field, lists element by element;
* ``null`` changes nothing in a string, number or object; it empties a list and whatever may be None; raw JSON keeps it;
* an integer is an integer literal within its 64 bits; every other mismatch of type is an error;
* each byte that is not UTF-8, and each unpaired surrogate escape, becomes one U+FFFD;
* a value is at most 10,000 deep.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar, cast

import msgspec

from schemas._json_shapes import RAW_STRING, Cursor, fold_key, shape_of
from schemas._json_text import (
    Token,
    UndecodableJSON,
    check,
    compact,
    compact_checked,
    decode_string,
    decode_string_checked,
    is_deeper_than,
    match_token,
    split_list,
    split_object,
)
from schemas._json_typed import typed_reader

__all__ = [
    "RAW_STRING",
    "UndecodableJSON",
    "check",
    "compact",
    "compact_checked",
    "decode",
    "decode_split",
    "decode_string",
    "decode_string_checked",
    "decode_value",
    "elements",
    "is_deeper_than",
    "members",
    "split_object",
]

S = TypeVar("S", bound=msgspec.Struct)

_decode_strict = msgspec.json.Decoder().decode


def decode(data: bytes, kind: type[S]) -> S:
    """One JSON value as ``kind``, a msgspec struct; ``null`` gives its empty value. Raises UndecodableJSON."""
    return decode_split(data, kind)[0]


def decode_split(data: bytes, kind: type[S]) -> tuple[S, dict[str, msgspec.Raw] | None]:
    """`decode`, and the object's members as they stand; None for these unless each stands in it once, under the very
    name of its field when it is for one."""
    if (plain := typed_reader(kind).read(data)) is not None:
        return plain
    check(data)
    shape = shape_of(kind)
    return cast(S, shape.build(shape.read_whole(data))), None


def decode_value(data: bytes) -> Any:
    """One JSON value as dicts, lists, strings, numbers, booleans and None; a later key replaces an earlier one.

    An integer of any size stays an integer up to Python's limit on digits and is a float beyond. Raises
    UndecodableJSON.
    """
    try:
        return _decode_strict(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        check(data)
        return _build_value(data)


def elements(data: bytes) -> Iterator[bytes]:
    """The elements of a checked JSON list, each as it stands."""
    if (split := split_list(data)) is not None:
        yield from map(bytes, split)
        return
    cursor = Cursor(data)
    cursor.next()
    while (found := cursor.next())[1] != b"]":
        if found[1] != b",":
            yield _whole(cursor, *found)


def members(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The members of a checked JSON object in order, repeated ones too: each key in lower case, its value as it is."""
    if (split := split_object(data)) is not None:
        yield from ((fold_key(key), bytes(value)) for key, value in split.items())
        return
    cursor = Cursor(data)
    cursor.next()
    while (literal := cursor.next_key()) is not None:
        yield fold_key(decode_string(literal)), _whole(cursor, *cursor.next())


def _whole(cursor: Cursor, token: int, text: bytes) -> bytes:
    start = cursor.position - len(text)
    cursor.skip(token)
    return cursor.data[start : cursor.position]


def _build_value(data: bytes) -> Any:
    root: list[Any] = []
    # The containers around the place being read, each with the key its next value belongs to (None in a list).
    open_containers: list[tuple[Any, str | None]] = [(root, None)]
    position = 0
    end = len(data.rstrip(b" \t\r\n"))
    while position < end:
        found = match_token(data, position)
        assert found is not None
        assert found.lastindex is not None
        token, text, position = found.lastindex, found[found.lastindex], found.end()
        container, key = open_containers[-1]
        if token == Token.SEPARATOR:
            continue
        if token == Token.CLOSE:
            open_containers.pop()
            continue
        if isinstance(container, dict) and key is None:
            open_containers[-1] = container, decode_string(text)
            continue
        value = _value_of(token, text)
        if key is None:
            container.append(value)
        else:
            container[key] = value
            open_containers[-1] = container, None
        if token == Token.OPEN:
            open_containers.append((value, None))
    return root[0]


def _value_of(token: int, text: bytes) -> Any:
    if token == Token.STRING:
        return decode_string(text)
    if token == Token.OPEN:
        return {} if text == b"{" else []
    if token == Token.WORD:
        return {b"true": True, b"false": False, b"null": None}[text]
    try:
        return int(text)
    except ValueError:
        return float(text)
