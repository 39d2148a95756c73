"""Writing Session Flow: canonical facts, and a round's exact bytes (specification, sections 1.1 and 7).

Facts are written once per entity and assembly run, so `encode_facts` is hot: one C call, then five searches for
characters that the C encoder leaves raw and a round must escape.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import msgspec
from msgspec import Raw

from schemas import lenient_json
from schemas._formats import encode, encode_lines
from schemas._sf_model import Commit, Counts, NodeFacts, RelationFacts, RoundHeader, UnresolvedFacts

_encode_sorted = msgspec.json.Encoder(order="deterministic").encode

Sorted = Iterable[tuple[str, bytes | None]]
"""Entities sorted by id: the id and its facts, or None for a tombstone."""

_TOMBSTONE = {
    "node": b'"tombstone":true,"kind":""}\n',
    "relation": b'"tombstone":true,"type":"","from":"","to":"","quality":""}\n',
}


def escape(encoded: bytes) -> bytes:
    """JSON with the five characters escaped that rounds never hold raw: ``<``, ``>``, ``&``, U+2028 and U+2029.

    They can only stand inside strings, so replacing bytes is exact.
    """
    if b"<" in encoded:
        encoded = encoded.replace(b"<", b"\\u003c")
    if b">" in encoded:
        encoded = encoded.replace(b">", b"\\u003e")
    if b"&" in encoded:
        encoded = encoded.replace(b"&", b"\\u0026")
    if not encoded.isascii():
        encoded = encoded.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    return encoded


def encode_facts(facts: NodeFacts | RelationFacts | UnresolvedFacts) -> bytes:
    """An entity's facts as canonical JSON, ``{"kind":…}`` or ``{"type":…}``."""
    encoded = encode(facts)
    if b"<" in encoded or b">" in encoded or b"&" in encoded or not encoded.isascii():
        return escape(encoded)
    return encoded


def encode_attrs(value: dict[str, object]) -> bytes:
    """A free-form map as canonical JSON: keys sorted by code point at every depth."""
    return escape(_encode_sorted(value))


def canonical_attrs(attrs: bytes) -> Raw:
    """Checked attrs as a round holds them: no space between tokens, everything escaped that must be; order and other
    escapes stay.
    """
    return Raw(escape(lenient_json.compact(attrs)))


def round_file_name(number: int, digest: str) -> str:
    """Name of round ``number``'s file in its chain."""
    return f"r{number:06d}-{digest[:12]}.sf"


def build_round(header: RoundHeader, nodes: Sorted, relations: Sorted, unresolved: Sorted) -> tuple[bytes, str]:
    """A round's file bytes and its digest.

    Each list is sorted by id (UTF-8 bytes) by the caller; every entity gets ``header.round`` as its revision.
    Unresolved entries are never tombstoned (section 8): None there is a ValueError.
    """
    lines = [escape(encode(header)) + b"\n"]
    counts = [
        _append_entities(lines, kind, header.round, entities)
        for kind, entities in (("node", nodes), ("relation", relations), ("unresolved", unresolved))
    ]
    body = b"".join(lines)
    digest = sha256(body).hexdigest()
    commit = Commit(digest=digest, counts=Counts(nodes=counts[0], relations=counts[1], unresolved=counts[2]))
    return body + encode(commit) + b"\n", digest


def _append_entities(lines: list[bytes], kind: str, number: int, entities: Sorted) -> int:
    entities = list(entities)
    start = b'{"t":"%b","id":' % kind.encode()
    middle = b',"revision":%d,' % number
    # All ids in one call: a JSON string holds no raw line feed, so the lines come apart again.
    ids = escape(encode_lines([id for id, _ in entities])).split(b"\n")
    for id, (name, facts) in zip(ids, entities, strict=False):
        if facts is not None:
            lines.append(b"%b%b%b%b\n" % (start, id, middle, facts[1:]))
        elif kind in _TOMBSTONE:
            lines.append(b"%b%b%b%b" % (start, id, middle, _TOMBSTONE[kind]))
        else:
            raise ValueError(f"an unresolved entry is resolved, never tombstoned: {name}")
    return len(entities)
