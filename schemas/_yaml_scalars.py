"""How one value is printed (Relavium notes, sections 4.3 to 4.8): the styles of strings, and numbers.

`I` below is the indent of the value's continuation lines. Strings come in as code points and leave in UTF-16 units,
because folding counts those; see `schemas.relavium_yaml` for the rules in order.
"""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache

from schemas._utf16 import LONE_SURROGATE, from_units, to_units
from schemas._yaml_folding import LINE_WIDTH, fold_block, fold_flow, fold_quoted

__all__ = ["SHORT", "key_text", "number_text", "short_text", "string_text"]

SHORT = 40
"""A string up to this length is printed alike wherever it stands, unless it has several lines."""

_MULTI_LINE_JSON = 40
_EXACT_INTEGER = 2**53

_FORCES_QUOTES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_FIRST_FORBIDDEN = frozenset("\n\t ,[]{}#&*!|>'\"%@`")
_LAST_FORBIDDEN = frozenset("\n\t :")
_NOT_A_STRING = re.compile(
    r"|~|null|Null|NULL|true|True|TRUE|false|False|FALSE"
    r"|0o[0-7]+|[-+]?[0-9]+|0x[0-9a-fA-F]+"
    r"|[-+]?\.(?:inf|Inf|INF)|\.nan|\.NaN|\.NAN"
    r"|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)[eE][-+]?[0-9]+"
    r"|[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)"
).fullmatch
_DOCUMENT_MARKER = re.compile("(?:^|[\n\r\u2028\u2029])(?:%|---|\\.\\.\\.)")

_TRAILING_BLANK_LINE = re.compile(r"\n[\t ]+\Z")
_LINE_FEEDS = re.compile(r"\n(?!\n)")
_LINE_FEEDS_INSIDE = re.compile(r"\n(?!\n|\Z)")
_EACH_RUN = re.compile(r"(?<!\n)\n")
_MORE_INDENTED = re.compile("(?:^|\n)([\t ][^\n\r\u2028\u2029]*)")
_BLANKS = re.compile(r"[\n\t ]*")

_ESCAPES = re.compile(r"( ?)((?:\\n)+)|\\(?:u(....)|.)")
_NAMED_ESCAPES = {"0000": "\\0", "0007": "\\a", "000b": "\\v", "001b": "\\e"}


def number_text(value: int | float) -> str:
    """A number as JavaScript prints it: ``1``, ``1e+21``, ``-0``; an integer beyond 2^53 as the nearest double."""
    if isinstance(value, int):
        if -_EXACT_INTEGER <= value <= _EXACT_INTEGER:
            return str(value)
        try:
            value = float(value)
        except OverflowError:
            value = math.inf if value > 0 else -math.inf
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    # repr gives the same shortest digits as JavaScript; only where the point and the exponent go differs.
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    point = len(whole) + int(exponent or 0)
    significant = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(significant)
    digits = significant.rstrip("0") or "0"
    if digits == "0":
        text = "0"
    elif len(digits) <= point <= 21:
        text = digits + "0" * (point - len(digits))
    elif 0 < point <= 21:
        text = f"{digits[:point]}.{digits[point:]}"
    elif -6 < point <= 0:
        text = f"0.{'0' * -point}{digits}"
    else:
        rest = f".{digits[1:]}" if len(digits) > 1 else ""
        text = f"{digits[0]}{rest}e{point - 1:+d}"
    return f"-{text}" if math.copysign(1, value) < 0 else text


@lru_cache(maxsize=8192)
def key_text(key: str, at_top: bool) -> str:
    """A map key, never broken into lines; ``at_top`` in a document's outermost map."""
    key = from_units(key)
    if _FORCES_QUOTES.search(key):
        return to_units(_double_quoted(key, None))
    if "\n" in key or _needs_quotes(key) or (at_top and _DOCUMENT_MARKER.search(key)):
        return to_units(_single_quoted(key) if _prefers_single(key) else _double_quoted(key, None))
    return to_units(key)


@lru_cache(maxsize=8192)
def short_text(text: str) -> str | None:
    """A string of at most SHORT code points where the indent is at most SHORT; None when that is not all there is to
    say."""
    if "\n" in text:
        return None
    printed = to_units(_quoted_or_plain(from_units(text), ""))
    return printed if len(printed) <= SHORT else None


def string_text(text: str, indent: str, key_width: int | None) -> str:
    """Any string, its continuation lines starting with ``indent``. ``key_width`` is the width of ``key: `` before it,
    None for a list's item or after an explicit key.
    """
    text = from_units(text)
    if "\n" not in text or _FORCES_QUOTES.search(text) is not None or _TRAILING_BLANK_LINE.search(text) is not None:
        printed = to_units(_quoted_or_plain(text, indent))
        return (fold_quoted if printed[0] == '"' else fold_flow)(printed, indent, key_width)
    return _block(to_units(text), indent)


def _quoted_or_plain(text: str, indent: str) -> str:
    """A string that is no block, not yet folded."""
    if _FORCES_QUOTES.search(text) is not None:
        return _double_quoted(text, indent)
    if "\n" in text:
        # The only text of several lines that is no block ends in a line of blanks, which single quotes cannot keep.
        return _double_quoted(text, indent)
    if _needs_quotes(text):
        return _single_quoted(text) if _prefers_single(text) else _double_quoted(text, indent)
    return text


def _needs_quotes(line: str) -> bool:
    """Whether a text of one line, written plain, would be read as something else."""
    return (
        not line
        or line[0] in _FIRST_FORBIDDEN
        or line[-1] in _LAST_FORBIDDEN
        or ": " in line
        or " #" in line
        or ":\t" in line
        or "\t#" in line
        or (line[0] in "?-" and line[1:2] in ("", " ", "\t"))
        or _NOT_A_STRING(line) is not None
    )


def _prefers_single(text: str) -> bool:
    return '"' in text and "'" not in text and "\n" not in text


def _single_quoted(line: str) -> str:
    # Without an apostrophe in it, see `_prefers_single`.
    return f"'{line}'"


def _double_quoted(text: str, indent: str | None) -> str:
    """Double quotes as JSON has them, with YAML's shorter escapes. Long text (``indent`` is None for a key, which is
    never long) shows its line feeds as blank lines.
    """
    quoted = json.dumps(text, ensure_ascii=False)
    if not text.isascii():
        quoted = LONE_SURROGATE.sub(lambda lone: f"\\u{ord(lone[0]):04x}", quoted)
    if "\\" not in quoted:
        return quoted
    break_lines = indent is not None and len(to_units(quoted)) >= _MULTI_LINE_JSON

    def rewrite(found: re.Match[str]) -> str:
        space, run, code = found.groups()
        if run is None:
            if code is None:
                return found[0]
            return _NAMED_ESCAPES.get(code) or (f"\\x{code[2:]}" if code.startswith("00") else found[0])
        if space:
            space = "\\ "
        count = len(run) // 2
        following = quoted[found.end()]
        if not break_lines or (count == 1 and following == '"'):
            return space + run
        if following == '"':
            return space + "\n" * count + f"{indent}\\n"
        return space + "\n" * (count + 1) + f"{indent}" + ("\\" if following == " " else "")

    return _ESCAPES.sub(rewrite, quoted)


def _block(text: str, indent: str) -> str:
    """A literal or folded block: text of several lines that does not end in a line of blanks."""
    body = text.rstrip("\n\t ")
    tail = text[len(body) :]
    first_feed = tail.find("\n")
    if first_feed < 0:
        chomping = "-"
    elif not body or first_feed != len(tail) - 1:
        chomping = "+"
    else:
        chomping = ""
    tail = _LINE_FEEDS_INSIDE.sub("\n" + indent, tail[:-1] if tail.endswith("\n") else tail)
    lead = body[: len(body) - len(body.lstrip(" \n"))]
    head = lead[: lead.rfind("\n") + 1]
    body = body[len(head) :]
    head = _LINE_FEEDS.sub("\n" + indent, head)
    header = ("2" if " " in lead else "") + chomping
    if max(map(len, text.split("\n"))) > LINE_WIDTH - len(indent):
        spread = _LINE_FEEDS.sub("\n" + indent, _spread(body))
        folded = fold_block(head + spread + tail, indent)
        if folded is not None:
            return f">{header}\n{indent}{folded}"
    literal = _LINE_FEEDS.sub("\n" + indent, body)
    return f"|{header}\n{indent}{head}{literal}{tail}"


def _spread(body: str) -> str:
    """The lines of a folded block before it is folded: each run of line feeds gets one more, except around
    more-indented lines, which keep theirs.

    A more-indented line gives back the line feed added before it, and, when an ordinary line follows its blank lines,
    the one added after it. Such a line ends early at U+2028 and U+2029, and then gives back only the first.
    """
    doubled = _EACH_RUN.sub("\n\n", body)
    pieces = []
    position = 0
    run_end = -1
    while (found := _MORE_INDENTED.search(doubled, position)) is not None:
        pieces.append(doubled[position : found.start()])
        pieces.append(found[1])
        position = found.end()
        if doubled.startswith("\n", position):
            if position >= run_end:
                run_end = _end_of_blanks(doubled, position)
            if doubled[run_end - 1] == "\n":
                pieces.append(doubled[position : run_end - 1])
                position = run_end
    pieces.append(doubled[position:])
    return "".join(pieces)


def _end_of_blanks(text: str, position: int) -> int:
    found = _BLANKS.match(text, position)
    return found.end() if found else position
