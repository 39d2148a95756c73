"""Whether the original's URL parser takes an address (WHATWG URL, of which Python's urlparse checks little).

Only addresses of a network scheme with ``//`` need an answer: others are refused by their scheme before (Relavium
notes, section 1.5). Of those, everything after the host is always accepted, and the host decides.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from urllib.parse import unquote_to_bytes

__all__ = ["is_network_url"]

_SCHEME = re.compile(r"(?:https?|wss?):", re.IGNORECASE)
_AUTHORITY_END = re.compile(r"[/\\?#]")
_FORBIDDEN = re.compile("[\x00-\x20#%/:<>?@\\[\\\\\\]^|\x7f]")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*")
_IGNORED = re.compile("[\t\n\r]")


def is_network_url(url: str) -> bool:
    """Whether ``url`` can be parsed, for an absolute http, https, ws or wss address; True for any other scheme."""
    url = _IGNORED.sub("", url.strip("".join(map(chr, range(33)))))
    scheme = _SCHEME.match(url)
    if scheme is None:
        return re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", url) is not None
    rest = url[scheme.end() :].lstrip("/\\")
    authority = rest[: end.start()] if (end := _AUTHORITY_END.search(rest)) else rest
    host = authority.rpartition("@")[2]
    colon = -1 if host.endswith("]") else host.rfind(":")
    if colon >= 0:
        host, port = host[:colon], host[colon + 1 :]
        if port and not (port.isascii() and port.isdigit() and int(port[-18:]) <= 65535 and len(port.lstrip("0")) <= 5):
            return False
    if host.startswith("["):
        return host.endswith("]") and _is_ipv6(host[1:-1])
    return _is_host(host)


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return "%" not in text


def _is_host(host: str) -> bool:
    domain = unquote_to_bytes(host.encode("utf-8", "replace")).decode("utf-8", "replace")
    if not domain.isascii():
        domain = _mapped(domain.replace("\u3002", ".").replace("\u00ad", ""))
        if "\ufffd" in domain:
            return False
    if not domain or _FORBIDDEN.search(domain):
        return False
    labels = domain.split(".")
    if not all(map(_is_label, labels)):
        return False
    if labels[-1] == "" and len(labels) > 1:
        labels.pop()
    last = labels[-1]
    if (last.isascii() and last.isdigit()) or re.fullmatch(r"0[xX][0-9a-fA-F]*", last):
        return _is_ipv4(labels)
    return True


def _is_label(label: str) -> bool:
    if not label.lower().startswith("xn--"):
        return True
    try:
        decoded = label[4:].encode("ascii").decode("punycode")
    except (UnicodeError, ValueError):
        return False
    return not decoded.isascii() and decoded == _mapped(decoded) and decoded.isprintable()


def _mapped(domain: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", domain).casefold())


def _is_ipv4(labels: list[str]) -> bool:
    """Up to four numbers, decimal, octal (``0``) or hexadecimal (``0x``), the last filling what the others leave."""
    if len(labels) > 4:
        return False
    numbers = []
    for label in labels:
        if _NUMBER.fullmatch(label) is None:
            return False
        try:
            if label[:2].lower() == "0x":
                numbers.append(int(label[2:] or "0", 16))
            else:
                numbers.append(int(label, 8 if len(label) > 1 and label[0] == "0" else 10))
        except ValueError:
            return False
    return all(number <= 255 for number in numbers[:-1]) and numbers[-1] < 256 ** (5 - len(numbers))
