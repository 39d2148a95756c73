"""Landed files and rounds from literal lines, and ways to spoil lines, for the tests of the formats."""

from __future__ import annotations

from hashlib import sha256

from hypothesis import strategies as st

__all__ = [
    "FRAME_KEYS",
    "RECORD_KEYS",
    "ROUND_HEADER",
    "SD_HEADER",
    "landed_file",
    "objects_with",
    "round_file",
    "spoiled",
]

SD_HEADER = (
    b'{"h":1,"schema":"sd/1","seq":7,"at":"2026-08-07T09:01:00.5Z","kind":"transcript","adapter":"a/1","dialect":"d/1",'
    b'"src":"log.jsonl","session":"s1","stream":"main"}'
)

ROUND_HEADER = (
    b'{"t":"header","schema":"sf/1","conversation":"c1","session":"s1","round":2,"previous":"ab","from_seq":3,'
    b'"through_seq":5,"input_digest":"cd","parser":"v1","policy":"v1+idle=10m0s","talks":1,"steps":2,"streams":1,'
    b'"segments":1,"unresolved":0}'
)


def landed_file(*records: bytes, header: bytes = SD_HEADER) -> bytes:
    """A landed file of these record lines, with a right end line."""
    content = b"".join(line + b"\n" for line in (header, *records))
    digest = sha256(content).hexdigest().encode()
    return content + b'{"t":"end","records":%d,"digest":"%b"}\n' % (len(records), digest)


def round_file(*frames: bytes, header: bytes = ROUND_HEADER, counts: tuple[int, int, int] | None = None) -> bytes:
    """A round of these frame lines, with a right commit frame unless ``counts`` says otherwise."""
    content = b"".join(line + b"\n" for line in (header, *frames))
    digest = sha256(content).hexdigest().encode()
    kinds = (b'"t":"node"', b'"t":"relation"', b'"t":"unresolved"')
    nodes, relations, unresolved = counts or [sum(kind in frame for frame in frames) for kind in kinds]
    return content + b'{"t":"commit","digest":"%b","counts":{"nodes":%d,"relations":%d,"unresolved":%d}}\n' % (
        *(digest, nodes),
        *(relations, unresolved),
    )


RECORD_KEYS = (
    *("ord", "off", "sha", "bytes", "id", "from", "time", "flags", "usage", "parts", "dropped", "started_by"),
    *("k", "text", "data", "failed", "in", "what", "server"),
)
FRAME_KEYS = (
    *("t", "id", "revision", "tombstone", "kind", "parent", "ref", "refs", "attrs", "seq", "row", "block"),
    *("type", "to", "quality", "evidence", "state", "provider_bodies", "role"),
)

_NUMBERS = st.sampled_from(
    [
        "0",
        "1",
        "2",
        "5",
        "-0",
        "-1",
        "1.0",
        "1e2",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775808",
        "9223372036854775808",
        "01",
        "1" * 40,
    ]
)
_PIECES = st.sampled_from(
    [
        b"a",
        b"s",
        b"<",
        b"&",
        b" ",
        b"\xc3\xa9",
        b"\xe2\x80\xa8",
        b"\xf0\x9f\x98\x80",
        b"\\n",
        b"\\/",
        b"\\u0041",
        b"\\u003c",
        b"\\ud83d\\ude00",
        b"\\ud800",
        b"\\udc00",
        b"\xff",
        b"\xe2\x80",
        b"\xed\xa0\x80",
        b"\\\\",
        b'\\"',
        b"\x7f",
    ]
)
_STRINGS = st.lists(_PIECES, max_size=4).map(lambda pieces: b'"' + b"".join(pieces) + b'"')
_SPACE = st.sampled_from([b"", b"", b"", b"", b" ", b"\t", b"\r"])


def _spelled(keys: tuple[str, ...]) -> st.SearchStrategy[bytes]:
    """A key, mostly as it is, sometimes in another case or with an escape."""
    changes = [str, str, str, str.upper, str.title, lambda key: key.replace("s", "\u017f").replace("k", "\u212a")]
    escaped = [lambda key: f"\\u{ord(key[0]):04x}{key[1:]}"]
    return st.builds(
        lambda key, change: f'"{change(key)}"'.encode(), st.sampled_from(keys), st.sampled_from(changes + escaped)
    )


def objects_with(keys: tuple[str, ...]) -> st.SearchStrategy[bytes]:
    """JSON objects whose keys are mostly these, with values of every type, null and nesting, spaced at random."""
    scalars = _STRINGS | _NUMBERS.map(str.encode) | st.sampled_from([b"null", b"null", b"true", b"false", b"{}", b"[]"])

    def listed(items: list[bytes]) -> bytes:
        return b"[" + b",".join(items) + b"]"

    def mapped(items: list[tuple[bytes, bytes, bytes]]) -> bytes:
        return b"{" + b",".join(space + key + b":" + value + space for space, key, value in items) + b"}"

    def objects(values: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
        return st.lists(st.tuples(_SPACE, _spelled(keys), values), max_size=8).map(mapped)

    values = st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=4).map(listed) | objects(inner), max_leaves=12
    )
    return objects(values)


@st.composite
def spoiled(draw: st.DrawFn, lines: st.SearchStrategy[bytes]) -> bytes:
    """A line with a few bytes changed, taken out or put in; never a line feed."""
    line = bytearray(draw(lines))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(line)))
        length = draw(st.integers(0, 3))
        put = draw(st.sampled_from([b"", b" ", b",", b"null", b'"', b"{", b"]", b"\xff", b"\\u00e9", b"0", b"\x00"]))
        line[place : place + length] = put
    return bytes(line)
