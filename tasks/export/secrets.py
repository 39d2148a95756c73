"""Withholding secrets from text that other agents wrote, before it is exported.

Four kinds are looked for: private-key blocks, keys and tokens of known shapes, passwords in addresses, and values
assigned to names that sound like a secret. What is found is replaced by ``[withheld]`` in the parsed text, never in
serialised YAML. It is a net, not a proof: a reviewer still reads the file.

The time is linear in the text: every search is for fixed text, and what is then looked at around it has a longest
length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

__all__ = ["KINDS", "WITHHELD", "Span", "secrets_in", "withhold"]

WITHHELD: Final = "[withheld]"
KINDS: Final = ("private_key", "key", "url_password", "assignment")

Span = tuple[int, int, str]
"""Start, end and kind of one secret."""

_LONGEST_BLOCK = 65_536
_BLOCK_START = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_BLOCK_END = re.compile(r"-----END [A-Z0-9 ]{0,80}-----")
_BLOCK_LINES = re.compile(r"(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{16,})*(?:(?:\s|\\[nr])*[A-Za-z0-9+/]*={1,2})?")

_SHAPES: Final = {
    start: re.compile(pattern)
    for starts, pattern in (
        (("sk-",), r"sk-(?:[a-z0-9]{1,10}-){0,2}[A-Za-z0-9_-]{16,400}"),
        (("sk_live_", "sk_test_", "rk_live_", "rk_test_"), r".{8}[A-Za-z0-9]{10,400}"),
        (("whsec_",), r"whsec_[A-Za-z0-9+/=]{16,400}"),
        (("gho_", "ghp_", "ghr_", "ghs_", "ghu_"), r".{4}[A-Za-z0-9]{20,400}"),
        (("github_pat_",), r"github_pat_[A-Za-z0-9_]{20,400}"),
        (("glpat-", "gldt-", "glrt-"), r".{6}[A-Za-z0-9_.-]{16,400}"),
        (("AKIA", "ASIA"), r".{4}[A-Z0-9]{16}(?![A-Za-z0-9])"),
        (("AIza",), r"AIza[A-Za-z0-9_-]{30,60}"),
        (("ya29.", "GOCSPX-"), r"(?:ya29\.|GOCSPX-)[A-Za-z0-9_.-]{20,2000}"),
        (("xoxa-", "xoxb-", "xoxe-", "xoxp-", "xoxr-", "xoxs-", "xapp-"), r".{5}[A-Za-z0-9.-]{10,400}"),
        (("hooks.slack.com/",), r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{10,200}"),
        (("npm_", "hf_"), r"(?:npm|hf)_[A-Za-z0-9]{30,100}"),
        (("pypi-",), r"pypi-[A-Za-z0-9_-]{40,2000}"),
        (("gsk_", "xai-", "pplx-"), r"(?:gsk_|xai-|pplx-)[A-Za-z0-9]{20,200}"),
        (("SG.",), r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,128}"),
        (("dop_v1_", "doo_v1_", "dor_v1_"), r".{7}[a-f0-9]{40,100}"),
        (("shpat_", "shpca_", "shppa_", "shpss_"), r".{6}[A-Fa-f0-9]{24,100}"),
        (("AGE-SECRET-KEY-1",), r"AGE-SECRET-KEY-1[A-Z0-9]{40,80}"),
        (("hvs.", "hvb."), r".{4}[A-Za-z0-9_-]{20,400}"),
        (("dckr_pat_",), r"dckr_pat_[A-Za-z0-9_-]{20,100}"),
        (("eyJ",), r"eyJ[A-Za-z0-9_-]{8,20000}\.[A-Za-z0-9_-]{8,60000}\.[A-Za-z0-9_-]{0,20000}"),
        (("Bearer ", "bearer "), r"[Bb]earer [A-Za-z0-9._~+/=-]{16,20000}"),
    )
    for start in starts
}
"""The shape of a key by the text it begins with."""

_USER_INFO = re.compile(r"([^\s/?#@:\"'<>`\\]{0,256}):([^\s/?#\"'<>`\\]{1,256})@(?=[A-Za-z0-9\[])")
_TOKEN_INFO = re.compile(r"([^\s/?#@:\"'<>`\\]{16,256})@(?=[A-Za-z0-9\[])")

_NAMES: Final = {
    "pass": r"pass(?:word|wd|phrase|code)?",
    "pwd": r"pwd",
    "secret": r"secrets?",
    "token": r"tokens?",
    "key": r"keys?",
    "credential": r"credentials?",
    "authorization": r"authorization",
    "connection": r"connection[_-]?string",
    "cookie": r"cookie",
}
"""Names that sound like a secret, by the text to search for."""

_REST_OF_NAME = r"((?:[_-]|[A-Z0-9])[A-Za-z0-9_-]{0,40})?"
_ASSIGN = r"\\{0,3}[\"'`]?\]?[ \t]{0,8}(?::=|=>|={1,3}|:)[ \t]{0,8}"
_ASSIGNED = {name: re.compile(f"(?i:{pattern}){_REST_OF_NAME}{_ASSIGN}") for name, pattern in _NAMES.items()}
_AFTER_FLAG = {name: re.compile(rf"(?i:{pattern}){_REST_OF_NAME}[ \t]{{1,4}}") for name, pattern in _NAMES.items()}
_FLAG = re.compile(r"(?:^|[\s'\"`])--[A-Za-z0-9_-]{0,40}\Z")
_LONGEST_FLAG = 42
_KEY_OF = re.compile(
    r"(?:api|access|private|secret|signing|encryption|auth|account|master|client|service|session|shared|storage|ssh|"
    r"deploy|webhook)[ _-]?\Z"
)
_NO_SECRET_NAME = re.compile(
    r".*[_-]?(?:types?|counts?|limits?|usage|used|names?|ids?|ur[il]s?|paths?|files?|env|fields?|len|length|size|"
    r"budget|ttl|expir\w*|policy|labels?|prefix|suffix|hint)",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"(\\{0,3}[\"'`]?)(?:bearer|basic|token|digest|apikey)[ \t]{1,4}", re.IGNORECASE)
_VALUE = re.compile(
    r"\\{0,3}\"(?P<double>[^\"\\\r\n]{1,4096})|\\{0,3}'(?P<single>[^'\\\r\n]{1,4096})|`(?P<back>[^`\r\n]{1,4096})"
    r"|(?P<bare>[^\s\"'`,;&|<>(){}\[\]\\]{1,4096})"
)
_NO_SECRET = re.compile(
    r"[$%<*{].*|\.{2,}|x{3,}|(?:process\.env|os\.environ|self|this|config|settings|args)\b.*|"
    r"(?:a|an|the|your|my|our|is|was|are|in|of|for|and|or|not)|"
    r"str|string|text|bytes|int|integer|number|bool|boolean|float|any|object|none|null|nil|true|false|undefined|"
    r"required|optional|unknown|redacted|hidden|secret|password|token",
    re.IGNORECASE | re.DOTALL,
)
_SHORTEST = 4


def withhold(text: str) -> tuple[str, dict[str, int]]:
    """``text`` with every secret as `WITHHELD`, and how many of each kind there were."""
    pieces: list[str] = []
    counts: dict[str, int] = {}
    position = 0
    for start, end, kind in sorted(secrets_in(text)):
        if start < position:
            continue
        pieces += (text[position:start], WITHHELD)
        counts[kind] = counts.get(kind, 0) + 1
        position = end
    return ("".join((*pieces, text[position:])) if pieces else text), counts


def secrets_in(text: str) -> Iterator[Span]:
    """The secrets in ``text``, kind by kind; they may overlap."""
    yield from _key_blocks(text)
    yield from _known_keys(text)
    yield from _url_passwords(text)
    yield from _assignments(text)


def _places(text: str, sought: str) -> Iterator[int]:
    place = text.find(sought)
    while place >= 0:
        yield place
        place = text.find(sought, place + len(sought))


def _key_blocks(text: str) -> Iterator[Span]:
    closing = -1
    done = 0
    for place in _places(text, "-----BEGIN "):
        start = _BLOCK_START.match(text, place)
        if start is None or place < done:
            continue
        if closing < place:
            closing = text.find("-----END ", place)
            closing = len(text) + _LONGEST_BLOCK + 1 if closing < 0 else closing
        end = _BLOCK_END.match(text, closing) if closing - place <= _LONGEST_BLOCK else None
        if end is not None:
            done = end.end()
        else:
            lines = _BLOCK_LINES.match(text, start.end(), start.end() + _LONGEST_BLOCK)
            done = lines.end() if lines else start.end()
        yield place, done, "private_key"


def _known_keys(text: str) -> Iterator[Span]:
    for start, shape in _SHAPES.items():
        done = 0
        for place in _places(text, start):
            # A letter before it makes it a part of a word: "task-" holds "sk-".
            if place < done or (place and (text[place - 1].isalnum() or text[place - 1] == "_")):
                continue
            found = shape.match(text, place)
            if found is not None:
                done = found.end()
                yield place, done, "key"


def _url_passwords(text: str) -> Iterator[Span]:
    for place in _places(text, "://"):
        found = _USER_INFO.match(text, place + 3)
        if found is not None:
            yield found.start(2), found.end(2), "url_password"
        elif (found := _TOKEN_INFO.match(text, place + 3)) is not None:
            yield found.start(1), found.end(1), "url_password"


def _assignments(text: str) -> Iterator[Span]:
    # U+0130 is the one character whose lower case is longer than itself.
    lower = text.replace("\u0130", "i").lower()
    has_flags = "--" in lower
    for name, assigned in _ASSIGNED.items():
        done = 0
        place = lower.find(name)
        while place >= 0:
            if place >= done:
                found = assigned.match(text, place)
                if found is None and has_flags and lower.rfind("--", max(0, place - _LONGEST_FLAG), place) >= 0:
                    found = _after_flag(text, name, place)
                span = _assigned_value(text, lower, name, found) if found else None
                if span is not None:
                    done = span[1]
                    yield *span, "assignment"
            place = lower.find(name, place + len(name))


def _after_flag(text: str, name: str, place: int) -> re.Match[str] | None:
    """A name with a blank after it, where it is a command line's option."""
    if _FLAG.search(text[max(0, place - _LONGEST_FLAG - 1) : place]) is None:
        return None
    return _AFTER_FLAG[name].match(text, place)


def _assigned_value(text: str, lower: str, name: str, found: re.Match[str]) -> tuple[int, int] | None:
    """Where the value is that a name and a sign of assignment, ``found``, stand before; None when it is no secret."""
    before = lower[max(0, found.start() - 20) : found.start()]
    if name == "key" and _KEY_OF.search(before) is None:
        return None
    if name == "pass" and before[-1:].isalpha() and not lower.startswith(("passw", "passp", "passc"), found.start()):
        return None
    if found[1] and _NO_SECRET_NAME.fullmatch(found[1]):
        return None
    scheme = _SCHEME.match(text, found.end())
    value = _VALUE.match(text, scheme.end() if scheme else found.end())
    if value is None or value.lastgroup is None:
        return None
    said = value[value.lastgroup]
    if len(said) < _SHORTEST or _NO_SECRET.fullmatch(said):
        return None
    if said.isdigit() and name in ("token", "key", "cookie"):
        return None
    if value.lastgroup == "bare" and _is_code_or_prose(text, value.end(), said):
        return None
    return value.span(value.lastgroup)


def _is_code_or_prose(text: str, end: int, value: str) -> bool:
    """Whether an unquoted value is a call (``get_token(``) or the first word of a sentence."""
    if text[end : end + 1] == "(":
        return True
    following = text[end : end + 2]
    return value.isalpha() and (value.islower() or value.istitle()) and following[:1] == " " and following[1:].isalpha()


def withhold_value(name: str, value: str) -> tuple[str, dict[str, int]]:
    """A map's ``value`` under the key ``name``: withheld whole when the name sounds like a secret."""
    if len(value) >= _SHORTEST and _NO_SECRET.fullmatch(value) is None and _is_secret_name(name):
        return WITHHELD, {"assignment": 1}
    return withhold(value)


def _is_secret_name(name: str) -> bool:
    return any(kind == "assignment" for _, _, kind in secrets_in(f"{name}=x9x9"))
