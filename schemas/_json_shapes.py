"""How each type is read from checked JSON: the rules of specification section 1.2, one class for each kind of value.

A shape's *state* is what was read so far, in a form that a repeated key can go on from; `build` makes the value of it.
Only objects and lists that a type names are descended into, so depth here is the type's depth, never the input's.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol

import msgspec
from msgspec import inspect

from schemas._json_text import (
    Token,
    UndecodableJSON,
    decode_string,
    end_of_container,
    match_key,
    match_token,
    split_object,
)

RAW_STRING = "raw string"
"""``Meta(title=RAW_STRING)`` marks a Raw field that holds a string: read by a string's rules, kept as it stands."""


MOST_KEYS_KNOWN, LONGEST_KEY_KNOWN = 4096, 100
"""Keys of one type that are remembered with the field they are for: few are ever met, but for hostile input."""


class Cursor:
    """A place in checked JSON; `whole` when that is one value without space around it."""

    __slots__ = ("data", "position", "whole")

    def __init__(self, data: bytes, *, whole: bool = False) -> None:
        self.data = data
        self.position = 0
        self.whole = whole

    def next(self) -> tuple[int, bytes]:
        found = match_token(self.data, self.position)
        assert found is not None
        assert found.lastindex is not None
        self.position = found.end()
        return found.lastindex, found[found.lastindex]

    def next_key(self) -> bytes | None:
        """The next key of an object, as it stands; None at its end."""
        found = match_key(self.data, self.position)
        assert found is not None
        self.position = found.end()
        key: bytes | None = found[1]
        return key

    def skip(self, token: int) -> None:
        """Go past the value that began with ``token``."""
        if token == Token.OPEN:
            self.position = end_of_container(self.data, self.position)

    def read(self, shape: Shape, state: Any) -> Any:
        token, text = self.next()
        if text == b"null":
            return shape.null(state)
        return shape.read(self, token, text, state)


class Shape(Protocol):
    """How one type is read. ``state`` is what was read so far, in a form that a repeated key can go on from."""

    def zero(self) -> Any: ...
    def null(self, state: Any) -> Any: ...
    def read(self, cursor: Cursor, token: int, text: bytes, state: Any) -> Any: ...
    def build(self, state: Any) -> Any: ...


class _Scalar:
    def zero(self) -> Any:
        raise NotImplementedError

    def null(self, state: Any) -> Any:
        return state

    def build(self, state: Any) -> Any:
        return state


class _String(_Scalar):
    def zero(self) -> str:
        return ""

    def read(self, cursor: Cursor, token: int, text: bytes, state: Any) -> str:
        if token != Token.STRING:
            raise UndecodableJSON(f"expected a string, found {text[:20]!r}")
        return decode_string(text)


class _Integer(_Scalar):
    def __init__(self, signed: bool) -> None:
        self.signed = signed
        self.lowest, self.highest = (-(2**63), 2**63 - 1) if signed else (0, 2**64 - 1)

    def zero(self) -> int:
        return 0

    def read(self, cursor: Cursor, token: int, text: bytes, state: Any) -> int:
        digits = text[1:] if self.signed and text[:1] == b"-" else text
        # No 64-bit integer has more than 20 digits; int() of a million of them would take seconds.
        if token == Token.NUMBER and digits.isdigit() and len(digits) <= 20:
            value = int(text)
            if self.lowest <= value <= self.highest:
                return value
        raise UndecodableJSON(f"expected a 64-bit integer, found {text[:30]!r}")


class _Boolean(_Scalar):
    def zero(self) -> bool:
        return False

    def read(self, cursor: Cursor, token: int, text: bytes, state: Any) -> bool:
        if token != Token.WORD:
            raise UndecodableJSON(f"expected true or false, found {text[:20]!r}")
        return text == b"true"


class _RawValue(_Scalar):
    def zero(self) -> Any:
        return msgspec.UNSET

    def null(self, state: Any) -> Any:
        return msgspec.Raw(b"null")

    def read(self, cursor: Cursor, token: int, text: bytes, state: Any) -> msgspec.Raw:
        start = cursor.position - len(text)
        if start == 0 and cursor.whole:
            cursor.position = len(cursor.data)
        else:
            cursor.skip(token)
        return msgspec.Raw(cursor.data[start : cursor.position])


class _RawString(_RawValue):
    """A string kept as it stands in the file; the reading rules are those of a string."""

    def null(self, state: Any) -> Any:
        return state

    def read(self, cursor: Cursor, token: int, text: bytes, state: Any) -> Any:
        if token != Token.STRING:
            raise UndecodableJSON(f"expected a string, found {text[:20]!r}")
        return msgspec.Raw(text)


class _Nullable:
    """A pointer in the original: null takes the value away, anything else is read into what is there."""

    def __init__(self, inner: Shape) -> None:
        self.inner = inner

    def zero(self) -> None:
        return None

    def null(self, state: Any) -> None:
        return None

    def read(self, cursor: Cursor, token: int, text: bytes, state: Any) -> Any:
        return self.inner.read(cursor, token, text, self.inner.zero() if state is None else state)

    def build(self, state: Any) -> Any:
        return None if state is None else self.inner.build(state)


class _Sequence:
    """State is (elements ever read, how many count): a longer list after a shorter one meets the elements of the one
    before.
    """

    def __init__(self, item: Shape, container: type[tuple[Any, ...]] | type[list[Any]]) -> None:
        self.item = item
        self.container = container

    def zero(self) -> tuple[list[Any], int]:
        return [], 0

    def null(self, state: Any) -> tuple[list[Any], int]:
        return [], 0

    def read(self, cursor: Cursor, token: int, text: bytes, state: Any) -> tuple[list[Any], int]:
        if text != b"[":
            raise UndecodableJSON(f"expected a list, found {text[:20]!r}")
        elements: list[Any] = state[0]
        count = 0
        token, text = cursor.next()
        while text != b"]":
            if text != b",":
                if count == len(elements):
                    elements.append(self.item.zero())
                element = elements[count]
                if text == b"null":
                    elements[count] = self.item.null(element)
                else:
                    elements[count] = self.item.read(cursor, token, text, element)
                count += 1
            token, text = cursor.next()
        return (elements, count) if count else ([], 0)

    def build(self, state: Any) -> Any:
        elements, count = state
        return self.container(self.item.build(element) for element in elements[:count])


class ObjectShape:
    """State is a dict from key to the state of that field."""

    def __init__(self, kind: type[msgspec.Struct], fields: dict[str, tuple[str, Shape]]) -> None:
        self.kind = kind
        self.fields = fields
        self.spelling = {fold_key(key): key for key in reversed(fields)}
        self.known: dict[bytes, str] = {}
        self.named: dict[str, str] = {}

    def zero(self) -> dict[str, Any]:
        return {key: shape.zero() for key, (_, shape) in self.fields.items()}

    def null(self, state: Any) -> Any:
        return state

    def read(self, cursor: Cursor, token: int, text: bytes, state: Any) -> dict[str, Any]:
        if text != b"{":
            raise UndecodableJSON(f"expected an object, found {text[:20]!r}")
        fields: dict[str, Any] = state
        while (literal := cursor.next_key()) is not None:
            key = self.known.get(literal)
            if key is None:
                key = self.field(literal)
            if key:
                fields[key] = cursor.read(self.fields[key][1], fields[key])
            else:
                cursor.skip(cursor.next()[0])
        return fields

    def read_whole(self, data: bytes) -> dict[str, Any]:
        """The state after `data`, a checked object or null: members are split off at the C decoder's speed where that
        is safe."""
        return self._read_members(data, self.zero())

    def _read_members(self, data: bytes, state: Any) -> dict[str, Any]:
        members = split_object(data)
        if members is None:
            fields: dict[str, Any] = Cursor(data).read(self, state)
            return fields
        fields = state
        for name, raw in members.items():
            key = self.named.get(name)
            if key is None:
                key = self.named_field(name)
            if not key:
                continue
            shape, value = self.fields[key][1], bytes(raw)
            if isinstance(shape, _String) and value.startswith(b'"'):
                fields[key] = decode_string(value)
            elif isinstance(shape, _Nullable) and isinstance(shape.inner, ObjectShape) and value.startswith(b"{"):
                inner = shape.inner
                fields[key] = inner._read_members(value, inner.zero() if fields[key] is None else fields[key])
            else:
                fields[key] = Cursor(value, whole=True).read(shape, fields[key])
        return fields

    def field(self, literal: bytes) -> str:
        """The field that a key, as it stands, is for; "" when it is for none."""
        key = self.named_field(decode_string(literal))
        if len(self.known) < MOST_KEYS_KNOWN and len(literal) < LONGEST_KEY_KNOWN:
            self.known[literal] = key
        return key

    def named_field(self, name: str) -> str:
        """The field that a key is for; "" when it is for none."""
        key = name if name in self.fields else self.spelling.get(fold_key(name), "")
        if len(self.named) < MOST_KEYS_KNOWN and len(name) < LONGEST_KEY_KNOWN:
            self.named[name] = key
        return key

    def build(self, state: Any) -> Any:
        return self.kind(**{name: shape.build(state[key]) for key, (name, shape) in self.fields.items()})


def fold_key(key: str) -> str:
    """``key`` under the simple case folding by which known keys match; every known key is ASCII."""
    folded = key.replace("\u017f", "s").replace("\u212a", "k")
    return folded.lower() if folded.isascii() else folded


@cache
def shape_of(kind: type[msgspec.Struct]) -> ObjectShape:
    """The reading rules of a struct type."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return ObjectShape(kind, {field.encode_name: (field.name, _shape(field.type)) for field in info.fields})


def _shape(info: inspect.Type) -> Shape:
    match info:
        case inspect.Metadata(type=inspect.RawType(), extra_json_schema={"title": title}) if title == RAW_STRING:
            return _RawString()
        case inspect.StrType():
            return _String()
        case inspect.IntType():
            return _Integer(signed=info.ge is None or info.ge < 0)
        case inspect.BoolType():
            return _Boolean()
        case inspect.RawType():
            return _RawValue()
        case inspect.StructType():
            return shape_of(info.cls)
        case inspect.VarTupleType(item_type=item):
            return _Sequence(_shape(item), tuple)
        case inspect.ListType(item_type=item):
            return _Sequence(_shape(item), list)
        case inspect.UnionType(types=types):
            named = [each for each in types if not isinstance(each, inspect.NoneType)]
            if len(named) == 1:
                return _Nullable(_shape(named[0]))
    raise TypeError(f"no reading rule for {info}")
