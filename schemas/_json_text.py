"""JSON grammar over bytes, as the lenient reader of specification section 1.2 sees it.

Nothing here recurses, so no input can exhaust the stack, and every pattern is possessive, so none can backtrack.
"""

from __future__ import annotations

import codecs
import re
from enum import IntEnum

import msgspec

MAX_DEPTH = 10_000

_SPACE = rb"[ \t\r\n]*+"
_STRING = rb'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"'
_NUMBER = rb"-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+"

match_token = re.compile(
    _SPACE + rb"(?:(" + _STRING + rb")|([{\[])|([}\]])|([,:])|(" + _NUMBER + rb")|(true|false|null))"
).match
"""Next token; ``lastindex`` is its `Token`, ``group(lastindex)`` its text."""

match_key = re.compile(rb"[ \t\r\n,]*+(?:(" + _STRING + rb")" + _SPACE + rb":|})").match
"""In checked JSON: the next key of an object, with what is around it up to its value, or the object's end."""

_match_to_bracket = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+([{}\[\]])', re.DOTALL).match
_match_space = re.compile(_SPACE).match
_find_token = re.compile(rb'[ \t\r\n]++|[^ \t\r\n"]++|"(?:[^"\\]++|\\.)*+"', re.DOTALL).finditer

_ESCAPES = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))", re.DOTALL
)
_SURROGATE_ESCAPES = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\.", re.DOTALL)
_NEITHER_QUOTE_NOR_BRACKET = bytes(set(range(256)) - set(b'"[]{}'))
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

_decode_raw = msgspec.json.Decoder(msgspec.Raw).decode
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode
_decode_strict_string = msgspec.json.Decoder(str).decode


class Token(IntEnum):
    """Kinds of token, numbered as the groups of `match_token`."""

    STRING = 1
    OPEN = 2
    CLOSE = 3
    SEPARATOR = 4
    NUMBER = 5
    WORD = 6


class UndecodableJSON(ValueError):
    """Bytes that are no JSON value, or not of the type they are read as."""


class NestedTooDeep(UndecodableJSON):
    """JSON whose grammar was kept up to where it is nested deeper than any reader here follows."""


def check(data: bytes) -> None:
    """Raise UndecodableJSON unless ``data`` is exactly one JSON value, at most 10,000 deep, and space around it."""
    # The C parser's yes is final where depth does not matter. Its no is not: it refuses unpaired surrogate escapes,
    # which a second try hides from it, and nesting beyond the interpreter's stack.
    if not is_deeper_than(MAX_DEPTH, data) and (
        _is_strict(data) or (b"\\u" in data and _is_strict(_SURROGATE_ESCAPES.sub(_hide_surrogate, data)))
    ):
        return
    _check_tokens(data)


def is_deeper_than(limit: int, data: bytes) -> bool:
    """Whether JSON is nested deeper than that; of other data, at least whether it is before a parser stops."""
    if len(data) <= limit or data.count(b"[") + data.count(b"{") <= limit:
        return False
    # Program text is full of brackets, so this is no rare case. Without its escapes a string ends at the next quote,
    # and strings are then every second piece.
    quotes_and_brackets = data.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _NEITHER_QUOTE_NOR_BRACKET)
    depth = 0
    for bracket in b"".join(quotes_and_brackets.split(b'"')[::2]):
        depth += 1 if bracket in b"[{" else -1
        if depth > limit:
            return True
    return False


def _is_strict(data: bytes) -> bool:
    try:
        _decode_raw(data)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _hide_surrogate(found: re.Match[bytes]) -> bytes:
    escape = found[0]
    return escape if len(escape) == 2 else b"\\u0000"


def _check_tokens(data: bytes) -> None:
    closers = bytearray()
    # What may come next: a value, a value or the end of an empty list, a key, a key or the end of an empty object.
    expect = "value"
    position = 0
    while True:
        found = match_token(data, position)
        if found is None:
            raise UndecodableJSON(f"no JSON token at byte {_skip_space(data, position)}")
        token, position = found.lastindex, found.end()
        start = data[position - 1]
        if expect in ("key", "first key"):
            if token == Token.STRING:
                position = _expect_colon(data, position)
                expect = "value"
                continue
            if expect == "key" or start != 0x7D:
                raise UndecodableJSON(f"no object key at byte {position - 1}")
        if token == Token.OPEN:
            if len(closers) == MAX_DEPTH:
                raise NestedTooDeep(f"nested deeper than {MAX_DEPTH} at byte {position - 1}")
            closers.append(start + 2)
            expect = "first key" if start == 0x7B else "first value"
            continue
        if token == Token.CLOSE:
            if expect == "value" or not closers or closers[-1] != start:
                raise UndecodableJSON(f"bracket out of place at byte {position - 1}")
            closers.pop()
        elif token == Token.SEPARATOR:
            raise UndecodableJSON(f"separator out of place at byte {position - 1}")
        # A value ended: close what ends with it, then go on after a comma.
        while True:
            position = _skip_space(data, position)
            if not closers:
                if position != len(data):
                    raise UndecodableJSON(f"text after the value at byte {position}")
                return
            following = data[position : position + 1]
            position += 1
            if following == b",":
                expect = "key" if closers[-1] == 0x7D else "value"
                break
            if following != closers[-1:]:
                raise UndecodableJSON(f"no comma or closing bracket at byte {position - 1}")
            closers.pop()


def _skip_space(data: bytes, position: int) -> int:
    found = _match_space(data, position)
    return position if found is None else found.end()


def _expect_colon(data: bytes, position: int) -> int:
    position = _skip_space(data, position)
    if data[position : position + 1] != b":":
        raise UndecodableJSON(f"no colon at byte {position}")
    return position + 1


def end_of_container(data: bytes, position: int) -> int:
    """Position after the list or object whose opening bracket ends at ``position``; ``data`` is checked JSON."""
    depth = 1
    while depth:
        found = _match_to_bracket(data, position)
        if found is None:
            raise UndecodableJSON(f"container not closed after byte {position}")
        depth += 1 if found[1] in b"{[" else -1
        position = found.end()
    return position


def split_object(data: bytes | msgspec.Raw) -> dict[str, msgspec.Raw] | None:
    """The members of a JSON object, quickly; None where that might miss something: a repeated key, or one that is not
    written the short way. Space between the object's own tokens is enough for None."""
    try:
        found: dict[str, msgspec.Raw] = _decode_object(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return found if len(_encode(found)) == len(data) else None


def split_list(data: bytes | msgspec.Raw) -> list[msgspec.Raw] | None:
    """The elements of a JSON list, quickly; None for what only the lenient reader takes."""
    try:
        found: list[msgspec.Raw] = _decode_list(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return found


def _replace_each_byte(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd", error.start + 1


codecs.register_error("sessionmill.each_byte", _replace_each_byte)


def _unescape(found: re.Match[str]) -> str:
    high, low, unit, short = found.groups()
    if high is not None:
        return chr(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF))
    if unit is not None:
        code = int(unit, 16)
        return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)
    return _SHORT.get(short, short)


def decode_string(literal: bytes) -> str:
    """Text of a checked JSON string, quotes included in ``literal``.

    Each byte that is not UTF-8 and each surrogate escape without its partner becomes one U+FFFD.
    """
    try:
        return _decode_strict_string(literal)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = literal[1:-1].decode("utf-8", "sessionmill.each_byte")
        return _ESCAPES.sub(_unescape, text) if "\\" in text else text


def compact(data: bytes) -> bytes:
    """Checked JSON without the space between tokens; the tokens themselves stay as they are."""
    try:
        return msgspec.json.format(data, indent=-1)
    except (msgspec.DecodeError, RecursionError):
        return b"".join(found[0] for found in _find_token(data) if found[0][0] not in b" \t\r\n")


def compact_checked(data: bytes) -> bytes:
    """`compact` after `check`, in one pass for nearly all data. Raises UndecodableJSON."""
    if not is_deeper_than(MAX_DEPTH, data):
        try:
            return msgspec.json.format(data, indent=-1)
        except (msgspec.DecodeError, RecursionError):
            pass
    check(data)
    return compact(data)


def decode_string_checked(literal: bytes) -> str:
    """`decode_string` after `check`, in one pass for nearly all strings. Raises UndecodableJSON, also for what does not
    begin as a string."""
    if not literal.startswith(b'"'):
        raise UndecodableJSON(f"no JSON string: {literal[:20]!r}")
    try:
        return _decode_strict_string(literal)
    except (msgspec.DecodeError, UnicodeDecodeError):
        check(literal)
        return decode_string(literal)
