"""Which names sound like a secret, and how much so."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

__all__ = ["LONGEST_NAME", "name_kind", "words_of"]


def words_of(text: str) -> frozenset[str]:
    """The words of ``text`` as a set."""
    return frozenset(text.split())


LONGEST_NAME: Final = 80
"""Of a longer name its end is judged."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PASSWORD = re.compile(r"(?:password|passwd|passphrase|passwort|passcode|pwd)s?\Z")
_NO_PASS: Final = words_of("compass bypass encompass trespass surpass overpass underpass subpass multipass")
_KEY_OF: Final = words_of(
    "api access private secret signing encryption auth account master client service session shared storage ssh deploy "
    "webhook license admin"
)
_NO_KEY_OF: Final = words_of(
    "public primary foreign cache sort partition hot index group map dict object row column field registry shortcut "
    "unique composite lookup routing translation i18n storage lock idempotency no any press"
)
_NO_TOKEN_OF: Final = words_of("page cancel cancellation continuation stop eos bos pad unk mask sep cls")
_NO_SECRET_ENDS: Final = words_of(
    "type types count counts limit limits usage name names id ids url urls uri uris path paths file files env field "
    "fields len length size budget ttl expiry expires expiration expire policy label labels prefix suffix hint rate "
    "rates endpoint class kind format index pattern regex error errors message reset through"
)


@lru_cache(maxsize=8192)
def name_kind(name: str) -> str:
    """``password``, ``pass``, ``secret``, ``token``, ``key``, ``env_key``, ``header``, or nothing."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or words[-1] in _NO_SECRET_ENDS:
        return ""
    for place in range(len(words) - 1, -1, -1):
        kind = _word_kind(words[place], words[place - 1] if place else "", name, place == len(words) - 1)
        if kind:
            return "pass" if kind == "pass" and len(words) == 1 else "password" if kind == "pass" else kind
    return ""


def _word_kind(word: str, before: str, name: str, is_last: bool) -> str:
    if _PASSWORD.search(word):
        return "password"
    if word.endswith("pass") and word not in _NO_PASS and is_last:
        return "pass" if word == "pass" else "password"
    if word.endswith(("secret", "secrets", "credential", "credentials")):
        return "secret"
    if word.endswith(("token", "tokens")) and before not in _NO_TOKEN_OF:
        return "token"
    if word in ("key", "keys"):
        if before in _KEY_OF:
            return "key"
        return "env_key" if is_last and name.isupper() and word == "key" and before not in _NO_KEY_OF else ""
    if word.endswith("key") and word[:-3] in _KEY_OF:
        return "key"
    if is_last and word in ("authorization", "cookie", "cookies"):
        return "header" if word == "authorization" or name.lower() in ("cookie", "set-cookie") else "token"
    if word == "connectionstring" or (word == "string" and before == "connection"):
        return "secret"
    return "token" if word == "auth" and is_last and name.startswith("_") else ""
