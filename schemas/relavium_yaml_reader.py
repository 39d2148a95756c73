"""Reading a workflow's YAML: YAML 1.2's core schema, with nothing in it that is not plain data (Relavium notes, 3).

PyYAML parses, and only that: its events are composed here, so none of its constructors and resolvers is ever asked.
Refused are anchors and aliases (hence no alias can grow a file), tags, repeated keys, keys that are no scalars, a
second document, more than 2 Mi UTF-16 units and more than 500 levels. Keys are strings whatever they look like, and
there is no merge key.

PyYAML knows YAML 1.1's characters: it takes NEL, U+2028 and U+2029 for line breaks, refuses DEL, C1 controls, U+FFFE,
U+FFFF and escaped surrogates, and stops at a tab inside plain text, all of which are text in YAML 1.2. The text is
therefore read in disguise: each of them is replaced by a private-use character that the text does not hold, and put
back into the scalars.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final, NoReturn

import yaml

from schemas._utf16 import unit_count
from schemas.errors import WorkflowRejected
from schemas.relavium_workflow import MAX_SOURCE_UNITS

__all__ = ["read_yaml"]

MAX_DEPTH: Final = 500

_QUICK: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAB_FIRST = re.compile(r"^ *\t", re.MULTILINE)
_EXACT_INTEGER = 2**53
_STRING_TAGS = (None, "!", "tag:yaml.org,2002:str")

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_UNREADABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]|\\\\\\\\|" + _SURROGATE_ESCAPE.pattern)
_BETWEEN_WORDS = re.compile(r"(?<=[^\s:])(?<!\s[-?])[ \t]+(?=[^\s#])")
_PRIVATE = range(0x100000, 0x10FFFE)

_NULL = re.compile(r"|~|null|Null|NULL").fullmatch
_TRUE = re.compile(r"true|True|TRUE").fullmatch
_FALSE = re.compile(r"false|False|FALSE").fullmatch
_INTEGER = re.compile(r"[-+]?[0-9]+").fullmatch
_BASED = re.compile(r"0o([0-7]+)|0x([0-9a-fA-F]+)").fullmatch
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?").fullmatch
_INFINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)").fullmatch
_NAN = re.compile(r"\.nan|\.NaN|\.NAN").fullmatch


def read_yaml(data: bytes, *, name: str) -> Any:
    """The document in ``data`` as maps, lists, strings, numbers, booleans and None.

    Raises WorkflowRejected: ``encoding``, ``too_big``, ``yaml`` (not YAML), ``anchor``, ``tag``, ``duplicate_key``,
    ``key``, ``too_deep`` or ``documents``; its row is the line.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise WorkflowRejected(name, None, "encoding", "", f"not UTF-8: {error.reason}") from None
    if len(text) * 2 > MAX_SOURCE_UNITS and unit_count(text) > MAX_SOURCE_UNITS:
        raise WorkflowRejected(name, None, "too_big", "", f"longer than {MAX_SOURCE_UNITS} UTF-16 units")
    shown, masks = _disguised(text.removeprefix("\ufeff"))
    try:
        return _Composer(name, masks).compose(shown)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        detail = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
        raise WorkflowRejected(name, mark.line + 1 if mark else None, "yaml", "", f"not YAML: {detail}") from None


class _Composer:
    """Builds the value of a document from PyYAML's events."""

    def __init__(self, name: str, masks: dict[str, str]) -> None:
        self._name = name
        self._as_written = {ord(mask): real for mask, real in masks.items()}
        # Only double quotes have escapes; everywhere else a backslash is a letter.
        self._unescaped = {
            ord(mask): chr(int(real[2:], 16)) if real.startswith("\\") else real for mask, real in masks.items()
        }

    def compose(self, text: str) -> Any:
        """The one document's value; None for a stream without a document."""
        root: list[Any] = []
        open_containers: list[tuple[Any, str | None]] = [(root, None)]
        # Only PyYAML's own parser takes a block whose first line starts with a tab; libyaml is 20 times faster.
        loader = yaml.SafeLoader if _TAB_FIRST.search(text) else _QUICK
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.DocumentStartEvent) and root:
                self._refuse(event, "documents", "a second document")
            if getattr(event, "anchor", None) is not None:
                self._refuse(event, "anchor", "anchors and aliases are not taken")
            if isinstance(event, yaml.CollectionEndEvent):
                open_containers.pop()
                continue
            if not isinstance(event, yaml.NodeEvent):
                continue
            container, key = open_containers[-1]
            if isinstance(container, dict) and key is None:
                open_containers[-1] = container, self._key(event, container)
                continue
            value = self._value(event)
            if key is None:
                container.append(value)
            else:
                container[key] = value
                open_containers[-1] = container, None
            if isinstance(event, yaml.CollectionStartEvent):
                if len(open_containers) > MAX_DEPTH:
                    self._refuse(event, "too_deep", f"more than {MAX_DEPTH} levels")
                open_containers.append((value, None))
        return root[0] if root else None

    def _key(self, event: yaml.NodeEvent, container: dict[str, Any]) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            self._refuse(event, "key", "a key that is no string")
        self._check_tag(event)
        key = self._text(event)
        if key in container:
            self._refuse(event, "duplicate_key", "a key that is there already")
        return key

    def _value(self, event: yaml.NodeEvent) -> Any:
        self._check_tag(event)
        if isinstance(event, yaml.MappingStartEvent):
            return {}
        if isinstance(event, yaml.SequenceStartEvent):
            return []
        assert isinstance(event, yaml.ScalarEvent)
        text = self._text(event)
        return _resolved(text) if event.implicit[0] and event.tag is None else text

    def _text(self, event: yaml.ScalarEvent) -> str:
        return str(event.value).translate(self._unescaped if event.style == '"' else self._as_written)

    def _check_tag(self, event: yaml.NodeEvent) -> None:
        if getattr(event, "tag", None) not in _STRING_TAGS:
            self._refuse(event, "tag", "tags are not taken")

    def _refuse(self, event: yaml.Event, rule: str, detail: str) -> NoReturn:
        row = event.start_mark.line + 1 if event.start_mark else None
        raise WorkflowRejected(self._name, row, rule, "", detail)


def _resolved(text: str) -> Any:
    """What a plain scalar means in the core schema."""
    if _NULL(text):
        return None
    if _TRUE(text):
        return True
    if _FALSE(text):
        return False
    if _INTEGER(text):
        return _as_double(text, 10, text.startswith("-"))
    if based := _BASED(text):
        return _as_double(based[1] or based[2], 8 if based[1] else 16, False)
    if _FLOAT(text):
        return float(text)
    if _INFINITE(text):
        return -math.inf if text.startswith("-") else math.inf
    return math.nan if _NAN(text) else text


def _as_double(digits: str, base: int, negative: bool) -> int | float:
    infinite = -math.inf if negative else math.inf
    significant = digits.lstrip("+-").lstrip("0") or "0"
    if len(significant) > 1100:  # beyond every double in every base
        return infinite
    value = int(significant, base) * (-1 if negative else 1)
    if value == 0 and negative:
        return -0.0
    if abs(value) <= _EXACT_INTEGER:
        return value
    try:
        return float(value)
    except OverflowError:
        return infinite


def _disguised(text: str) -> tuple[str, dict[str, str]]:
    """The text with what PyYAML misreads replaced, and what each replacement stands for."""
    if text.isascii() and not any(sign in text for sign in ("\t", "\x7f", "\\u")):
        return text, {}
    unreadable = sorted({"\t", *_UNREADABLE.findall(text)} - {"\\\\"})
    held = set(text)
    free = (chr(code) for code in _PRIVATE if chr(code) not in held)
    masks = dict(zip(unreadable, free, strict=False))
    if "\t" in text:
        text = _BETWEEN_WORDS.sub(lambda found: found[0].replace("\t", masks["\t"]), text)
    text = _UNREADABLE.sub(lambda found: masks.get(found[0], found[0]), text)
    return text, {mask: real for real, mask in masks.items()}
