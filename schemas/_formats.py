"""What the values of both formats have in common: how they are declared, and the fast and exact way to read one."""

from __future__ import annotations

import re
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct

from schemas import lenient_json

UNSIGNED_MAX = 2**64 - 1

Unsigned = Annotated[int, Meta(ge=0)]
"""0..2^64-1; msgspec cannot express the upper bound, so whoever decodes checks it."""

Signed = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]

RawString = Annotated[Raw, Meta(title=lenient_json.RAW_STRING)]
"""A JSON string as it stands in the file, quotes included."""

NOT_TYPED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for input that is wrong, or that only the lenient reader can take."""

encode = msgspec.json.Encoder().encode
encode_lines = msgspec.json.Encoder().encode_lines

_may_exceed_64_bits = re.compile(rb"[0-9]{20}").search


class Format(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Base of every value that is read from and written to one of the formats.

    A field without a default is always written, a field with one is left out when it holds it: that is "omitempty".
    Values hold no cycles, so the garbage collector need not look at them.

    Pydantic takes these types as they are, in models and in a ``TypeAdapter``: one definition serves the hot paths and
    the edges.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema  # only where pydantic asks

        def validate(value: Any) -> Any:
            if isinstance(value, cls):
                return value
            try:
                return msgspec.json.decode(encode(value), type=cls)
            except (msgspec.MsgspecError, TypeError) as error:
                raise ValueError(str(error)) from None

        serialization = core_schema.plain_serializer_function_ser_schema(
            lambda value: msgspec.json.decode(encode(value)), return_schema=core_schema.dict_schema()
        )
        return core_schema.no_info_plain_validator_function(validate, serialization=serialization)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        (found,), components = msgspec.json.schema_components([cls], ref_template="#/$defs/{name}")
        return {**components[found["$ref"].rpartition("/")[2]], "$defs": components}


F = TypeVar("F", bound=Format)


class LineDecoder(Generic[F]):
    """Reads one line as a format's value: the lenient reader's answer at the C decoder's speed.

    The typed decoder's answer stands when encoding it again gives as many bytes as the line has. The encoder writes the
    shortest form of a value, so such a line held no repeated, unknown or differently cased key, no null, no escape that
    was not needed and no space between tokens: nothing that only the lenient reader knows how to take. Types with a
    `RawString` are outside this proof.
    """

    def __init__(self, kind: type[F]) -> None:
        self._kind = kind
        self._decode = msgspec.json.Decoder(kind).decode

    def __call__(self, line: bytes) -> F:
        """The value of ``line``. Raises `lenient_json.UndecodableJSON`."""
        try:
            value = self._decode(line)
            if len(encode(value)) == len(line) and not _may_exceed_64_bits(line):
                return value
        except NOT_TYPED:
            pass
        return lenient_json.decode(line, self._kind)
