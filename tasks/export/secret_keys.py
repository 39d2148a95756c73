"""Secrets that show by their own shape: private-key blocks, keys and tokens of known makers, passwords in addresses.

Each search goes over the text once. A shape either fails within a few characters, or takes a whole run of characters
that is not looked at again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tasks.export.secret_names import words_of

__all__ = ["Span", "key_blocks", "known_keys", "url_passwords"]

Span = tuple[int, int, str]
"""Start, end and kind of one secret."""

_LONGEST_BLOCK = 65_536
_BLOCK_START = re.compile(
    r"----(?:-| )BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?(?:-----| ----)|Private-Lines:[ \t]{0,4}\d{1,5}"
)
_BLOCK_END = re.compile(r"----(?:-| )END [A-Z0-9 ]{0,80}----|Private-MAC:[ \t]{0,4}[0-9a-f]{0,128}")
_BLOCK_LINES = re.compile(
    # Ends of lines, written out or escaped, and what quotes, diffs and listings put around a line.
    r"(?:(?>[\"',+ \t\\]{0,6}(?:[\r\n]|\\[nr])(?:[\r\n]|\\[nr]|[ \t>+|#*\"'→:]|[0-9]{1,6}[\t→:|]){0,32}+"
    r"(?:[A-Za-z0-9+/]{16,}+={0,2}|[A-Za-z0-9+/]{4,}+={0,2}(?=[\"',+ \t]{0,6}(?:[\r\n\\]|\Z))"
    r"|(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset)[^\r\n\\]{0,200})))*+"
)

_AFTER = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
_SHAPES: Final = (
    r"[rs]k_(?:live|test)_[A-Za-z0-9]{10,}+",
    r"whsec_[A-Za-z0-9+/=]{16,}+",
    r"gh[oprsu]_[A-Za-z0-9]{20,}+",
    r"github_pat_[A-Za-z0-9_]{20,}+",
    r"gl(?:pat|dt|rt)-[A-Za-z0-9_.-]{16,}+",
    r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])",
    r"AIza[A-Za-z0-9_-]{30,}+",
    r"ATATT3[A-Za-z0-9_=-]{20,}+",
    r"AGE-SECRET-KEY-1[A-Z0-9]{40,}+",
    r"ya29\.[A-Za-z0-9_.-]{20,}+",
    r"GOCSPX-[A-Za-z0-9_.-]{20,}+",
    r"xox[abcdeprs](?:\.xox[bp])?-[A-Za-z0-9.%_-]{10,}+",
    r"xapp-[A-Za-z0-9.-]{10,}+",
    r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{10,}+",
    r"discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\d{10,20}/[A-Za-z0-9_-]{20,}+",
    r"(?:npm|hf)_[A-Za-z0-9]{30,}+",
    r"pypi-[A-Za-z0-9_-]{40,}+",
    r"(?:gsk_|xai-|pplx-|ntn_|tvly-(?:dev-)?)[A-Za-z0-9]{20,}+",
    r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,}+",
    r"do[opr]_v1_[a-f0-9]{40,}+",
    r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{24,}+",
    r"hv[bs]\.[A-Za-z0-9_-]{20,}+",
    r"dckr_pat_[A-Za-z0-9_-]{20,}+",
    r"lin_api_[A-Za-z0-9]{20,}+",
    r"figd_[A-Za-z0-9_-]{20,}+",
    r"r8_[A-Za-z0-9]{30,}+",
    r"tskey-[a-z]{2,12}-[A-Za-z0-9-]{16,}+",
    r"sntry[su]_[A-Za-z0-9_+/=-]{20,}+",
    r"PMAK-[A-Za-z0-9-]{20,}+",
    r"glsa_[A-Za-z0-9_]{20,}+",
    r"sbp_[a-f0-9]{32,}+",
    r"dapi[a-f0-9]{32}(?![A-Za-z0-9])",
    r"\d{8,10}:AA[A-Za-z0-9_-]{32,34}(?![A-Za-z0-9_-])",
)
_FIRST = "(?=[rswgAyGxhdnptSlfPt0-9])"
_KNOWN = re.compile(f"{_AFTER}{_FIRST}(?:{'|'.join(_SHAPES)})")


def _boundary(start: str) -> str:
    """What is before ``start``, looked at when it is found: a search for fixed text is the quickest."""
    return rf"(?:(?<![A-Za-z0-9]{start})|(?<=\\[nrt]{start}))"


# Of these the shape says little; `_RANDOM` has the last word.
_VAGUE: Final = {
    "sk-": (0, re.compile(rf"sk-{_boundary('sk-')}([A-Za-z0-9_-]{{16,}}+)")),
    **{
        word: (1, re.compile(rf"{word}{_boundary('[Bb]' + word)}(?:[ \t]|\\t){{1,4}}([A-Za-z0-9._~+/=-]{{16,}}+)"))
        for word in ("earer", "EARER")
    },
}
"""By the text to search for: how far before it the secret begins, and its pattern."""
# What follows the first run is optional, so that the run is not looked at again where it is no token.
_WEB_TOKEN = re.compile(rf"eyJ{_boundary('eyJ')}[A-Za-z0-9_-]{{8,}}+(\.[A-Za-z0-9_-]{{8,}}+\.[A-Za-z0-9_-]*+)?")
_RANDOM = re.compile(r"(?=[^\d]*+\d)(?:[^A-Z]*+[A-Z]|.*?[A-Za-z0-9]{16})", re.DOTALL)

_USER_INFO = re.compile(
    r":(?:\\{0,3}/){2}(?:([^\s/?#@:\"'<>`\\]{0,256}+):([^\s/?#\"'<>`\\]{1,256})|([^\s/?#@:\"'<>`\\]{16,256}+))"
    r"@(?=[^\W_]|[\[${])(?:[A-Za-z0-9_-]{1,64}([.:/\\]?))?"
)
_SCHEMES: Final = words_of(
    "http https ftp ftps sftp ssh git svn hg ws wss ldap ldaps smtp smtps imap imaps pop3 postgres postgresql psql "
    "mysql mariadb mssql sqlserver oracle mongodb mongodb+srv redis rediss amqp amqps mqtt mqtts nats kafka cassandra "
    "clickhouse couchdb neo4j bolt elasticsearch influxdb socks socks4 socks5 socks5h proxy smb nfs rtsp rtmp sip vnc "
    "rdp s3 snowflake redshift trino presto cockroachdb db2 memcached git+https git+http git+ssh"
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*\Z")


def key_blocks(text: str) -> Iterator[Span]:
    """Private keys, from the line that opens one to the line that closes it, or as far as its lines go."""
    if "PRIVATE KEY" not in text and "Private-Lines" not in text:
        return
    done = 0
    closing: re.Match[str] | None = None
    none_left = False
    for start in _BLOCK_START.finditer(text):
        if start.start() < done:
            continue
        if not none_left and (closing is None or closing.start() < start.end()):
            closing = _BLOCK_END.search(text, start.end())
            none_left = closing is None
        if closing is not None and not none_left and closing.start() - start.end() <= _LONGEST_BLOCK:
            done = closing.end() + (text[closing.end() : closing.end() + 1] == "-")
        else:
            lines = _BLOCK_LINES.match(text, start.end(), start.end() + _LONGEST_BLOCK)
            done = lines.end() if lines else start.end()
        yield start.start(), done, "private_key"


def known_keys(text: str) -> Iterator[Span]:
    """Keys and tokens of known shapes."""
    for found in _KNOWN.finditer(text):
        yield *found.span(), "key"
    for word, (before, shape) in _VAGUE.items():
        if word in text:
            for found in shape.finditer(text):
                if _RANDOM.match(found[1]) and text[found.start() - before].lower() in "bs":
                    yield found.start() - before, found.end(), "key"
    if "eyJ" in text:
        for found in _WEB_TOKEN.finditer(text):
            if found[1] is not None:
                yield *found.span(), "key"


def url_passwords(text: str) -> Iterator[Span]:
    """Passwords and tokens before the ``@`` of an address."""
    if "@" not in text:
        return
    for found in _USER_INFO.finditer(text):
        scheme = _SCHEME.search(text[max(0, found.start() - 24) : found.start()])
        # "npm://pkg:1.0@latest" is no address; an unknown scheme needs what only a host has.
        if found[4] or (scheme is not None and scheme[0].lower() in _SCHEMES):
            yield *found.span(2 if found[2] is not None else 3), "url_password"
