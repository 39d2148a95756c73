"""The lenient reader's answer at the typed C decoder's speed, for objects over which the two cannot differ.

The C decoder drops what it does not know and takes the last of a repeated key, where the lenient reader folds case and
merges (specification, section 1.2). So the keys of every object that a type descends into are looked at first; all else
that only the lenient reader takes, a null or a byte that is not UTF-8 say, makes the C decoder refuse.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import msgspec
from msgspec import NODEFAULT, Raw, inspect

from schemas._json_shapes import LONGEST_KEY_KNOWN, MOST_KEYS_KNOWN, ObjectShape, shape_of
from schemas._json_text import MAX_DEPTH, is_deeper_than, split_list, split_object

_NULL = Raw(b"null")
_INT64 = (-(2**63), 2**63 - 1)


class Plain(NamedTuple):
    """An object that was read fast, and its members, each of which stands in it once."""

    value: Any
    members: dict[str, Raw]


class TypedReader:
    """Reads objects of one struct type."""

    def __init__(self, kind: type[msgspec.Struct]) -> None:
        self._shape: ObjectShape = shape_of(kind)
        self._decode = msgspec.json.Decoder(kind).decode
        # Members that are objects of a type themselves, or (True) lists of such.
        self._inner: list[tuple[str, TypedReader, bool]] = []
        self._harmless: set[str] = set()
        info = inspect.type_info(kind)
        assert isinstance(info, inspect.StructType)
        self._is_exact = all(map(self._takes, info.fields))

    def read(self, data: bytes) -> Plain | None:
        """The object; None when the lenient reader has to be asked."""
        if not self._is_exact or is_deeper_than(MAX_DEPTH, data):
            return None
        members = self._plain_members(data.strip(b" \t\r\n"))
        if members is None:
            return None
        try:
            return Plain(self._decode(data), members)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def _takes(self, field: inspect.Field) -> bool:
        """Whether both readers read the field alike; what it descends into is noted."""
        _, shape = self._shape.fields[field.encode_name]
        if field.default_factory is not NODEFAULT or field.default not in (NODEFAULT, shape.build(shape.zero())):
            return False  # the lenient reader knows no defaults
        types = field.type.types if isinstance(field.type, inspect.UnionType) else (field.type,)
        return all(self._takes_type(field.encode_name, each) for each in types)

    def _takes_type(self, key: str, kind: inspect.Type) -> bool:
        match kind:
            case inspect.StructType(cls=cls) | inspect.ListType(item_type=inspect.StructType(cls=cls)):
                reader = typed_reader(cls)
                self._inner.append((key, reader, isinstance(kind, inspect.ListType)))
                return reader._is_exact
            case inspect.IntType(ge=ge, le=le):
                return (ge, le) == _INT64
            case inspect.ListType(item_type=inspect.StrType()):
                return True
        return isinstance(kind, (inspect.StrType, inspect.BoolType, inspect.RawType, inspect.NoneType))

    def _plain_members(self, data: bytes | Raw) -> dict[str, Raw] | None:
        """The members of an object without a key that could mean something else to the lenient reader."""
        members = split_object(data)
        if members is None or not (self._harmless.issuperset(members) or all(map(self._is_harmless, members))):
            return None
        for key, reader, is_list in self._inner:
            value = members.get(key)
            # A value that is no object, or no list, is refused later if it is not null.
            if value is None or value == _NULL:
                continue
            if not is_list:
                if reader._plain_members(value) is None:
                    return None
            elif any(reader._plain_members(each) is None for each in split_list(value) or ()):
                return None
        return members

    def _is_harmless(self, key: str) -> bool:
        """Whether a key is for the field of that very name, or for none."""
        harmless = self._shape.named_field(key) in ("", key)
        if harmless and len(self._harmless) < MOST_KEYS_KNOWN and len(key) < LONGEST_KEY_KNOWN:
            self._harmless.add(key)
        return harmless


@cache
def typed_reader(kind: type[msgspec.Struct]) -> TypedReader:
    return TypedReader(kind)
