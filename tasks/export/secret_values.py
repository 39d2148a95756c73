"""Whether a value that is assigned to a secret-like name is a secret: not a template, a type, a call or a word.

For a password a literal value is one; where it could as well be code, what only code looks like stays.
"""

from __future__ import annotations

import re
from typing import Final

from tasks.export.secret_names import name_kind, words_of

__all__ = ["LONGEST_REFUSED", "is_code_at", "is_prose", "is_secret"]

LONGEST_REFUSED: Final = 64
"""A longer value is a secret whatever it looks like, so that none is looked at twice."""

_TEMPLATE = re.compile(
    r"(?>\$\{(?![^{}]*:[-=])[^{}]*\}|\$[A-Za-z_][A-Za-z0-9_]*(?::[A-Za-z_]\w*)?|\{\{[^{}]*\}\}|\{[A-Za-z_][\w.!:\[\]-]*\}"
    r"|%[A-Za-z_]\w*%|%[sdv]|%\(\w+\)s|<[^<>\d]*>|[*._/:,@#?!+=|~^&()\[\]{}-]|[xX]{3,}|…|•)++"
)
_PATH_OF_VARIABLE = re.compile(r"\$(?:\w+|\{[^{}]*\})[/:][\w.\-/$:{}]*")
_STARTS_TEMPLATE = re.compile(
    r"(?:\$\{\{?(?![^}\n]{0,200}:[-=])[^}\n]{0,200}\}\}?|\{\{[^}\n]{0,200}\}\}|"
    r"<(?i:your|my|the|insert|enter|redacted|api|token|key|password|secret|user)[^<>\d\n]{0,80}>)(?![A-Za-z0-9])|\$\(|<%"
)
_NO_SECRET = re.compile(
    r"(?:a|an|the|your|my|our|is|was|are|in|of|for|and|or|not|if|when|to)|"
    r"str|string|text|bytes|int|integer|number|bool|boolean|float|any|object|none|null|nil|true|false|undefined|void|"
    r"required|optional|unknown|redacted|hidden|masked|omitted|secret|password|token|inherit|include|omit|same-origin|"
    r"enabled|disabled|on|off|yes|no|write|read|always|never|default|invalid|expired|missing|valid|empty|"
    r"your[-_ ][a-z_ -]+|change[-_]?me",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[~≈<>]?\d[\d.,_/]*(?:[kKmMbBxX%]|ms|s)?")
_ATTRIBUTE = re.compile(r"[A-Za-z_][A-Za-z_]*(?:(?:\??\.|::|->)[A-Za-z_][A-Za-z_0-9]*)+")
_ROOT = re.compile(
    r"(?:self|this|args|config|cfg|settings|os|process|env|request|req|res|response|options|opts|params|data|user|ctx|"
    r"context|cls|props|state|app|kwargs|event|body|form|input|secrets|import)\b"
)
_TYPE = re.compile(r"&?[A-Za-z_][\w.:]*(?:<[\w<>,:&' ]*>|\[[\w\[\], .:+*'\"|-]*\])(?:\.\w+|[?!])*")
_NAME = re.compile(r"[A-Za-z_]+")
_OF_ADDRESS = re.compile(r"[@?=]|hooks|[A-Za-z0-9_-]{24}")
_CAMEL = re.compile(r"[a-z]*(?:[A-Z][a-z]+)+")
_PASCAL = re.compile(r"(?:[A-Z][a-z]+){2,}")
_CALL = re.compile(
    r"(?:await[ \t]|new[ \t]|[&*!]){0,2}[A-Za-z_][\w.:]{0,120}+!?"
    r"\((?:[ \t]*(?:[\r\n]|\Z)|[^()\r\n]{0,200}+(?:\([^()\r\n]{0,200}+\)[^()\r\n]{0,200}+){0,4}\)(?![A-Za-z0-9]))"
)
_OPENS_CODE = re.compile(r"[A-Za-z_][\w.:]*!?[(\[]|\{[\"']")
_SUBSCRIPT = re.compile(r"[A-Za-z_][A-Za-z_.]{0,120}\[(?:[\"'][^\"'\r\n]{0,80}[\"']|[\w+\-: ]{1,40})\](?![A-Za-z0-9])")
_PROSE_WORDS: Final = words_of(
    "a an the is are was be it of for to in on at and or not no never please use your you my our must should can with "
    "from that this them they when if see enter will has have required by as below here only all i"
)
_SHORTEST: Final = {"password": 1, "pass": 4, "env_key": 6}


def is_secret(kind: str, value: str, *, quoted: bool, spaced: bool = False, assigned: bool = False) -> bool:
    """Whether ``value`` of a name of the kind ``kind`` (`tasks.export.secret_names.name_kind`) is a secret.

    ``spaced`` says that white space is before it, ``assigned`` that a sign of equality is before that.
    """
    if len(value) > LONGEST_REFUSED:
        return True
    bare = value.strip()
    if len(bare) < _SHORTEST.get(kind, 4) or bare.startswith("[withheld]"):
        return False
    if _TEMPLATE.fullmatch(bare) or _NO_SECRET.fullmatch(bare) or _STARTS_TEMPLATE.match(bare):
        return False
    is_number = _NUMBER.fullmatch(bare) is not None
    if kind == "password":
        if quoted or _is_attribute(bare, spaced) or (spaced and _PASCAL.fullmatch(bare)):
            return quoted
        # "password=db_password" is code.
        return not ("_" in bare and _NAME.fullmatch(bare) and name_kind(bare) == "password")
    if kind == "pass":
        return not is_number and (quoted or not _ATTRIBUTE.fullmatch(bare))
    if is_number:
        return kind == "key" and len(bare) >= 8 and bare.isdigit()
    if _PATH_OF_VARIABLE.fullmatch(bare) or (bare.startswith(("http://", "https://")) and not _OF_ADDRESS.search(bare)):
        return False
    if quoted:
        return not (is_prose(bare) or (bare.isupper() and _NAME.fullmatch(bare) and name_kind(bare)))
    if kind == "env_key" and not any(letter.isdigit() for letter in bare) and "-" not in bare:
        return False
    if _NAME.fullmatch(bare) and (name_kind(bare) or (spaced and "_" in bare) or (assigned and bare.islower())):
        return False
    return not (_ATTRIBUTE.fullmatch(bare) or _CAMEL.fullmatch(bare))


def is_prose(words: str) -> bool:
    """Whether these are the words of a sentence, as ordinary small words show."""
    parts = words.lower().split(None, 12)[:12]
    return len(parts) > 1 and any(part.strip(".,;:!?") in _PROSE_WORDS for part in parts)


def is_code_at(text: str, start: int, value: str, kind: str) -> bool:
    """Whether a call, a subscript, a generic type or a template reference begins at ``start``."""
    if not value or len(value) > LONGEST_REFUSED:
        return False
    if value[0] in "$<{" and value[1:2] not in ("'", '"'):
        return _STARTS_TEMPLATE.match(text, start) is not None
    if kind != "password" and _OPENS_CODE.match(value):
        return True
    if "(" in value or value in ("await", "new"):
        return _CALL.match(text, start) is not None
    if "[" in value:
        return _SUBSCRIPT.match(text, start) is not None or _TYPE.fullmatch(value) is not None
    return "<" in value and _TYPE.fullmatch(value) is not None


def _is_attribute(value: str, spaced: bool) -> bool:
    return _ATTRIBUTE.fullmatch(value) is not None and (spaced or _ROOT.match(value) is not None)
