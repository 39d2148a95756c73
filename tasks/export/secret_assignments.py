"""Values assigned to names that sound like a secret: ``NAME=value``, JSON, YAML, headers, options of commands.

A quoted value reaches to its own closing quote, a header's to the end of the line, any other to white space or to what
closes around the whole assignment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tasks.export.secret_keys import Span
from tasks.export.secret_names import LONGEST_NAME, name_kind
from tasks.export.secret_values import LONGEST_REFUSED, is_code_at, is_prose, is_secret

__all__ = ["assignments"]

_LONGEST = 4096
_WINDOW = 2 * LONGEST_REFUSED
_WORDS: Final = ("pass", "pwd", "secret", "token", "key", "credential", "authorization", "cookie", "connection", "auth")

_ASSIGNED = re.compile(
    r"(?<![A-Za-z0-9_-])([A-Za-z0-9_-]++)\\{0,7}[\"'`]?\]?[ \t]{0,8}"
    r"(?:(===?)|:=|=>|->|[=:\uff1a])(?:\*\*)?[ \t]{0,8}"
)
_FLAG = re.compile(r"(?<![A-Za-z0-9_-])--?([A-Za-z][A-Za-z0-9_-]*+)[ \t]{1,4}(?=[^\s-])")
_IN_QUERY = re.compile(
    r"=(?i:(?<=[?&]sig=)|(?<=[?&]signature=)|(?<=x-amz-signature=))([^\s&#\"'<>`\\]{6,4096}+)",
)
_LOGIN = re.compile(r"-(?<![A-Za-z0-9_-]-)(?:u|-(?:proxy-)?user)[ \t=]{0,4}[\"']?[^\s:\"'$]{1,64}+:([^\s\"']{1,256})")
_SSHPASS = re.compile(r"sshpass[ \t]{1,4}-p[ \t]{0,4}[\"']?([^\s\"']{1,256})")
_CLIENTS: Final = ("curl ", "wget ")
_LONGEST_COMMAND = 300

_OPENING = re.compile(r"(?:[fbruFBRU]{1,2}(?=[\"']))?(\\{0,7})([\"'`])")
_QUOTES: Final = {mark: re.compile(rf"(\\*+){mark}") for mark in "\"'`"}
_PLAIN = {mark: re.compile(rf"(?:[^{mark}\\]++|\\.)*+{mark}", re.DOTALL) for mark in "\"'`"}
_PLAIN |= {
    mark * 3: re.compile(rf"(?:[^{mark}\\]++|\\.|{mark}(?!{mark}{mark}))*+{mark}{mark}{mark}", re.DOTALL)
    for mark in "\"'"
}
_ITEMS = re.compile(r"\[\s{0,8}\"([^\"\\\r\n]{1,400}+)(?:\",\s{0,40}+\"[^\"\\\r\n]{1,400}+){0,20}+(?=\"\s{0,40}+\])")
_LINE = re.compile(r"(?:[^\r\n\\]++|\\(?![nr]))*+")
_BARE = re.compile(r"(?:[^\s\"'`\\]++|[\"'`](?![\s,;:)}\]>\\]|\Z)|\\(?![\"'`nrt]))*+")
_NEXT = re.compile(r"[,;&](?=[A-Za-z_][A-Za-z0-9_.-]{1,40}+[=:])|&&")
_AFTER_QUOTE = frozenset(" \t\r\n,;)}]\\")
_SCHEME = re.compile(
    r"(?:bearer|basic|token|digest|apikey|negotiate|hmac|signature|aws4-hmac-sha256)(?:[ \t]|\\t){1,4}", re.IGNORECASE
)
_BLOCK_VALUE = re.compile(r"(?:[|>][+-]?)?[ \t]*\r?\n[ \t]+([^\s:#-][^\s:]*)[ \t]*(?=\r?\n|\Z)")
_START_OF_LINE = re.compile(
    r"(?:\A|[\r\n])[ \t]*(?:(?:[-*>+]|export|set|const|let|var)[ \t]+)?[A-Za-z0-9_.-]*[\"'`*]{0,2}\Z"
)
_PAIR = re.compile(r"[^\s=]=")
_LONG = re.compile(r"(?=.*\d)[^\s]{8}")
_BRACKETED = re.compile(r"[(\[](?=[^\s\d]{0,40}\d)[^\s\"',]{5}")
_DIGIT = re.compile(r"\d")
_CLOSER = re.compile(r"[)\]}>]")
_LONGEST_BEFORE = 100
_CLOSERS: Final = {")": "(", "]": "[", "}": "{", ">": "<"}


def assignments(text: str) -> Iterator[Span]:
    """The values; none begins before the one found before it ends."""
    lower = text.lower()
    if "sig" in lower:
        for found in _IN_QUERY.finditer(text):
            yield *found.span(1), "assignment"
    logins = _LOGIN.finditer(text) if "-u" in text else ()
    passes = _SSHPASS.finditer(text) if "sshpass" in text else ()
    for found in (*(login for login in logins if _is_of_client(text, login.start())), *passes):
        if not found[1].isdigit() and not found[1].startswith(("$", "{", "<")):
            yield *found.span(1), "assignment"
    if not any(word in lower for word in _WORDS):
        return
    done = 0
    for found in _ASSIGNED.finditer(text):
        kind = name_kind(found[1][-LONGEST_NAME:])
        if found.start(1) < done or (not kind and found[1].lower() not in ("key", "string")):
            continue
        span = _value(text, found, kind or _kind_of_two_words(text, found))
        if span is not None:
            done = span[1]
            yield *span, "assignment"
    if "-" in text:
        done = 0
        for found in _FLAG.finditer(text):
            kind = name_kind(found[1][-LONGEST_NAME:])
            if kind and kind != "header" and found.start() >= done:
                span = _value(text, found, kind)
                if span is not None:
                    done = span[1]
                    yield *span, "assignment"


def _is_of_client(text: str, place: int) -> bool:
    """Whether the command that the option at ``place`` belongs to talks HTTP."""
    start = max(text.rfind("\n", max(0, place - _LONGEST_COMMAND), place) + 1, place - _LONGEST_COMMAND, 0)
    return any(text.find(client, start, place) >= 0 for client in _CLIENTS)


def _kind_of_two_words(text: str, found: re.Match[str]) -> str:
    """Of "api key" and "connection string"."""
    start = found.start()
    if start < 2 or text[start - 1] != " " or text[start - 2] == " ":
        return ""
    before = text[max(0, start - 20) : start].split()[-1].strip("\"'`(*-_").lower()
    if found[1].lower() == "string":
        return "secret" if before == "connection" else ""
    return name_kind(f"{before}_key")


def _value(text: str, found: re.Match[str], kind: str) -> tuple[int, int] | None:
    """Where the value is that a name and a sign of assignment, ``found``, stand before; None when it is no secret."""
    if not kind:
        return None
    start = found.end()
    compares = found.re is _ASSIGNED and found[2] is not None
    opening = _OPENING.match(text, start)
    if opening is not None:
        return _quoted(text, opening, kind)
    if compares:
        return None
    items = _ITEMS.match(text, start)
    if items is not None and is_secret(kind, items[1], quoted=True) and (kind == "password" or _LONG.match(items[1])):
        return items.start(1), items.end()
    if kind == "header":
        sign = text[found.end(1) : start]
        return _header(text, found.start(), start) if ":" in sign else _bare(text, found, "token")
    if kind == "password" and text[start : start + 1] in ("", "\r", "\n", "|", ">") and ":" in found[0]:
        block = _BLOCK_VALUE.match(text, start, start + _LONGEST)
        if block is not None and is_secret(kind, block[1], quoted=False):
            return block.span(1)
    return _bare(text, found, kind)


def _quoted(text: str, opening: re.Match[str], kind: str) -> tuple[int, int] | None:
    start = opening.end()
    mark = opening[2]
    if not opening[1] and text.startswith(mark * 2, start) and mark != "`":
        start, mark = start + 2, mark * 3
    end = _closing(text, start, len(opening[1]), mark)
    line = _LINE.match(text, start, start + _LONGEST) if end is None else None
    end = line.end() if line is not None else (start if end is None else end)
    if kind == "header":
        scheme = _SCHEME.match(text, start, end)
        start = scheme.end() if scheme else start
        kind = "token"
    return (start, end) if end > start and is_secret(kind, text[start:end], quoted=True) else None


def _closing(text: str, start: int, escapes: int, mark: str) -> int | None:
    """Where the value ends that ``mark`` opened behind so many backslashes: before a mark that is not in the value."""
    limit = start + _LONGEST
    if escapes == 0:
        plain = _PLAIN[mark].match(text, start, limit)
        end = plain.end() - len(mark) if plain else None
    else:
        end = next(
            (
                found.end() - 1 - min(escapes, len(found[1]))
                for found in _QUOTES[mark].finditer(text, start, limit)
                if len(found[1]) <= escapes or len(found[1]) % (2 * (escapes + 1)) == escapes
            ),
            None,
        )
    if end is None or text.find("\n", start, end) < 0:
        return end
    # Over a line's end only where it looks like one value: the opening mark of the next one is none that closes.
    following = text[end + len(mark) : end + len(mark) + 1]
    return end if text[start] != "\n" and (not following or following in _AFTER_QUOTE) else None


def _header(text: str, name: int, start: int) -> tuple[int, int] | None:
    """A header's value: to the end of the line, or of the quotes that the header is in."""
    around = text[name - 1 : name] if name else ""
    quote = around if around and around in "\"'`" else ""
    scheme = _SCHEME.match(text, start, start + _LONGEST)
    start = scheme.end() if scheme else start
    value = text[start : _end_of_line(text, start, LONGEST_REFUSED, quote)].rstrip()
    if len(value) < 4:
        return None
    first = value.split(None, 1)[0].rstrip(",;")
    if text[name : name + 14].lower().removeprefix("set-").startswith("cookie"):
        # "Cookie: enabled" is none.
        kept = not _PAIR.search(value) and (len(first) < 8 or not _DIGIT.search(first))
        kept = kept or (first == value and not is_secret("token", value.partition("=")[2] or value, quoted=True))
    else:
        kept = is_code_at(text, start, first, "token") or not is_secret("token", first, quoted=False)
        kept = (kept and "=" not in value[len(first) :]) or (scheme is None and is_prose(value))
    if kept:
        return None
    end = _end_of_line(text, start, _LONGEST, quote)
    return start, start + len(text[start:end].rstrip())


def _end_of_line(text: str, start: int, longest: int, quote: str) -> int:
    line = _LINE.match(text, start, start + longest)
    end = line.end() if line is not None else start
    found = _QUOTES[quote].search(text, start, end) if quote else None
    return found.start() if found is not None else end


def _bare(text: str, found: re.Match[str], kind: str) -> tuple[int, int] | None:
    start = found.end()
    sign = text[found.end(1) : start]
    is_verdict = kind == "pass" and ":" in sign
    if (text[start : start + 1] in ("(", "[") and not (kind == "password" and _BRACKETED.match(text, start))) or (
        is_verdict and not found[1].islower()
    ):
        return None
    # What is no secret is short: so little is looked at twice.
    run = _BARE.match(text, start, start + _WINDOW)
    if run is None or run.end() == start:
        return None
    end = _cut(text, found.start(), start, run.end())
    if end == start + _WINDOW:
        run = _BARE.match(text, start, start + _LONGEST) or run
        end = _cut(text, found.start(), start, run.end())
    said = text[start:end]
    if not said or is_code_at(text, start, run[0], kind):
        return None
    spaced = sign[-1:] in (" ", "\t")
    if not is_secret(kind, said, quoted=False, spaced=spaced, assigned=spaced and "=" in sign):
        return None
    if is_verdict and "/" in said and len(said) <= LONGEST_REFUSED:
        return None
    if said.isalpha() and (said.islower() or said.istitle()) and text[end : end + 1] == " ":
        return _words(text, found, start, end, kind)
    return start, end


def _words(text: str, found: re.Match[str], start: int, end: int, kind: str) -> tuple[int, int] | None:
    """A word that may be the first of a sentence, or of a pass phrase on a line of its own."""
    following = text[end + 1 : end + 2]
    if not (following.isalpha() or (following.isdigit() and kind != "password")):
        return start, end
    line = _LINE.match(text, start, start + _WINDOW)
    words = line[0].rstrip(" \t\"'`;,") if line is not None else ""
    is_phrase = kind == "password" and found.re is _ASSIGNED and not is_prose(words)
    if is_phrase and words.replace(" ", "").isalpha() and _starts_line(text, found.start()):
        return start, start + len(words)
    return (start, end) if found.re is _FLAG else None


def _starts_line(text: str, place: int) -> bool:
    return _START_OF_LINE.search(text, max(0, place - 60), place) is not None


def _cut(text: str, name: int, start: int, end: int) -> int:
    """Where a bare value ends: before what separates it from the next one, or closes around the assignment."""
    if text[name - 1 : name] in ("?", "&"):
        place = text.find("&", start, end)
        end = place if place >= 0 else end
    following = _NEXT.search(text, start, end)
    end = following.start() if following is not None else end
    value = text[start:end]
    if _CLOSER.search(value) and not value.startswith("[withheld]"):
        before = text[max(0, name - _LONGEST_BEFORE) : name]
        for closer, opener in _CLOSERS.items():
            if closer in value and before.rfind(opener) > before.rfind(closer):
                value = _balanced(value, opener, closer)
    return start + len(value.rstrip(".,;:"))


def _balanced(value: str, opener: str, closer: str) -> str:
    depth = 0
    for place, letter in enumerate(value):
        depth += (letter == opener) - (letter == closer)
        if depth < 0:
            return value[:place]
    return value
