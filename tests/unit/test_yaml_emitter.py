"""The emitter: what is not in the golden scalars, and that a reader gets the value back.

Two readers: ours (`schemas.relavium_yaml_reader`, PyYAML's parser with YAML 1.2's characters and core schema), which
reads everything the emitter writes, and ruamel.yaml, a YAML 1.2 reader that shares no code with it, which reads the
text it knows. The exceptions, all of them the dialect's own, are named in the tests.
"""

from __future__ import annotations

import io
import math
import re
from typing import Any

import pytest
import ruamel.yaml
from hypothesis import example, given
from hypothesis import strategies as st

from schemas._utf16 import from_units
from schemas.relavium_yaml import write_yaml
from schemas.relavium_yaml_reader import read_yaml

SIGNS = [
    *" \na",
    "word",
    "null",
    "0x1",
    "1e3",
    "{{",
    "é",
    "日本",
    "\n\n",
    "harbour pilot ",
    " #",
    ": ",
    "- ",
    '"',
    "'",
    "\\",
]
LONG = ["p" * 90, "one two three four five six seven eight nine ten eleven twelve "]
ONLY_OURS = [*"\t#:?~\x07\x7f\x85\xa0\u2028\ufeff\uffff😀", "  ", "\x1b[31m", "\r\n", "https://example.com/" + "p" * 70]
WORDS = st.sampled_from([*SIGNS, *LONG, *ONLY_OURS])
TEXTS = st.lists(WORDS, max_size=30).map("".join)
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(TEXTS, VALUES, max_size=4)


def comes_back(value: Any) -> bool:
    """Whether every string in ``value`` is one that the dialect keeps."""
    if isinstance(value, dict):
        return all(map(comes_back, value.values()))
    if isinstance(value, list):
        return all(map(comes_back, value))
    if not isinstance(value, str):
        return True
    only_blanks = "\n" in value and not value.strip(" \t\n")
    # In double quotes with shown line feeds, a line of one space: its backslash is doubled.
    single_space_line = "\n \n" in value
    # A break without a space to break at may fall between the halves of a character.
    cut_in_half = any(ord(sign) > 0xFFFF for sign in value) and write_yaml({"k": value}).count(b"\xef\xbf\xbd") > 0
    return not (only_blanks or single_space_line or cut_in_half)


def same(left: Any, right: Any) -> bool:
    """Equality of JSON values: no boolean is a number, -0 is not 0, halves of a character are joined."""
    if isinstance(left, str) and isinstance(right, str):
        return from_units(left) == from_units(right)
    if isinstance(left, bool) or isinstance(right, bool) or left is None:
        return left is right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right and math.copysign(1, left) == math.copysign(1, right)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return False


@given(DOCUMENTS)
@example({"k": "\ud83d"})
@example({"k": "a\n\ttab first\n" + "word " * 30 + "\n\n  indented\n\nend"})
def test_our_reader_gives_the_document_back(document: dict[str, Any]) -> None:
    written = write_yaml(document)
    # A key that begins with U+FEFF, where the file begins with it, is a byte order mark to every reader.
    if comes_back(document) and not written.startswith(b"\xef\xbb\xbf"):
        assert same(read_yaml(written, name="document"), document)


@given(st.lists(st.sampled_from([*SIGNS, *LONG, "\x1b[31m", "yes", "2026-07-01"]), max_size=30).map("".join))
def test_another_yaml_1_2_reader_gives_the_text_back(text: str) -> None:
    # ruamel.yaml keeps YAML 1.1's line breaks and blanks: texts with tabs, NEL, U+2028 or C1 controls are not for it.
    if comes_back(text):
        reader = ruamel.yaml.YAML(typ="safe", pure=True)
        reader.version = (1, 2)
        document = write_yaml({"k": {"j": text}, "l": [text]})
        loaded = reader.load(io.BytesIO(b"%YAML 1.2\n---\n" + document))
        if not isinstance(loaded["l"][0], str):
            # Its resolver knows more than the core schema, such as dates.
            assert re.fullmatch(r"[0-9-]+", text)
        else:
            assert loaded == {"k": {"j": text}, "l": [text]}


@given(DOCUMENTS)
def test_no_line_ends_in_a_carriage_return_and_the_last_ends_the_file(document: dict[str, Any]) -> None:
    written = write_yaml(document)
    assert written.endswith(b"\n")
    assert b"\r" not in written
    assert not written.startswith(b"\xef\xbb\xbf---")


@given(st.dictionaries(TEXTS, st.integers(0, 9), max_size=6))
def test_the_order_of_keys_does_not_matter(document: dict[str, int]) -> None:
    assert write_yaml(document) == write_yaml(dict(reversed(document.items())))


def test_keys_are_sorted_by_utf_16_unit() -> None:
    assert write_yaml({"\uff5e": 1, "😀": 2, "z": 3}).decode() == "z: 3\n😀: 2\n\uff5e: 1\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-0.0, "-0"),
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (123456789012345680000, "123456789012345680000"),
        (1e-6, "0.000001"),
        (1.5e-7, "1.5e-7"),
        (2**53 + 1, "9007199254740992"),
        (10**400, ".inf"),
        (5e-324, "5e-324"),
        (0.1 + 0.2, "0.30000000000000004"),
        (True, "true"),
        (None, "null"),
    ],
)
def test_numbers_and_words_are_those_of_javascript(value: Any, text: str) -> None:
    assert write_yaml({"k": value}).decode() == f"k: {text}\n"


def test_a_key_of_more_than_1024_units_is_written_with_a_question_mark() -> None:
    assert write_yaml({"k" * 1024: 1}).decode() == f"{'k' * 1024}: 1\n"
    assert write_yaml({"k" * 1025: {"a": [1]}}).decode() == f"? {'k' * 1025}\n: a:\n    - 1\n"


def test_the_first_line_is_measured_from_its_key_alone() -> None:
    words = "word " * 15 + "end"
    deep = write_yaml({"a": {"b": {"c": {"k": words}}}}).decode().splitlines()
    assert deep[3] == f"      k: {'word ' * 15}".rstrip()
    assert len(deep[3]) == 83


def test_a_long_key_moves_its_value_to_the_next_line() -> None:
    assert write_yaml({"k" * 60: "w " * 50 + "w"}).decode().splitlines()[0] == "k" * 60 + ":"


def test_a_character_cut_by_a_break_becomes_two_replacement_characters() -> None:
    written = write_yaml({"k": "\x07" + "😀" * 60}).decode()
    assert "\ufffd\\\n  \ufffd" in written


def test_text_in_which_a_quoted_line_is_one_space_is_written_as_the_original_does() -> None:
    assert write_yaml({"k": "\x07" + "a" * 40 + "\n \nb"}).decode() == f'k: "\\a{"a" * 40}\n\n  \\\\ \n\n  b"\n'


@pytest.mark.parametrize("value", [{1}, b"bytes", ("a",)])
def test_what_json_has_no_word_for_is_a_type_error(value: object) -> None:
    with pytest.raises(TypeError):
        write_yaml({"k": value})


def test_a_long_text_of_many_blank_lines_costs_linear_time() -> None:
    # Each of these made a naive port of the rules quadratic.
    text = "long " * 40 + "\n" + "\n " * 200_000 + "x"
    assert write_yaml({"k": text}).startswith(b"k: ")
    assert read_yaml(write_yaml({"k": {"j": "a\n" * 200_000}}), name="f") == {"k": {"j": "a\n" * 200_000}}


def test_values_may_be_nested_deeper_than_pythons_stack() -> None:
    document: Any = {}
    for _ in range(5_000):
        document = {"a": document}
    assert write_yaml(document).count(b"a:") == 5_000
