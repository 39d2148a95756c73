"""A small zone made by hand, for tests that damage it: landed files from literal records, and rounds over them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from schemas.input_digest import input_digest
from schemas.session_flow import NodeFacts, Ref, RoundHeader, build_round, encode_facts
from storage.claims import Claim
from storage.zone import Zone

__all__ = [
    "SESSION",
    "claim_for",
    "land",
    "landed_bytes",
    "landed_key",
    "lines",
    "publish",
    "round_bytes",
    "small_zone",
]

SESSION = "s1"
STAMP = "20260807T090000.000000000Z"


def lines(first: int, count: int, *, off: int | None = None) -> list[dict[str, Any]]:
    """Records of source lines of 99 bytes and a newline each, from line `first`."""
    start = (first - 1) * 100 if off is None else off
    return [
        {
            "ord": first + n,
            "off": start + 100 * n,
            "sha": "0" * 12,
            "bytes": 99,
            "id": f"u{first + n}",
            "from": "runtime",
        }
        for n in range(count)
    ]


def landed_key(seq: int, *, folder: str = "streams/main", prefix: str = "transcript", session: str = SESSION) -> str:
    return f"{session}/{folder}/{prefix}-{STAMP}-{seq:06d}.sd"


def landed_bytes(seq: int, records: Sequence[dict[str, Any]], *, kind: str = "transcript") -> bytes:
    header = {"h": 1, "schema": "sd/1", "seq": seq, "at": "2026-08-07T09:00:00Z", "kind": kind, "adapter": "test/1"}
    header |= {"dialect": "test/1", "src": "s1.jsonl", "session": SESSION, "stream": "main"}
    body = "".join(
        json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in (header, *records)
    ).encode()
    end = {"t": "end", "records": len(records), "digest": hashlib.sha256(body).hexdigest()}
    return body + json.dumps(end, separators=(",", ":")).encode() + b"\n"


def land(zone: Zone, seq: int, records: Sequence[dict[str, Any]], **where: str) -> str:
    """Land one file; its key."""
    key = landed_key(seq, **where)
    zone.store.create(key, landed_bytes(seq, records))
    return key


def round_bytes(
    zone: Zone, number: int, from_seq: int, through_seq: int, *, node: str = "n", **changes: Any
) -> tuple[RoundHeader, bytes, str]:
    """A round that continues the chain as it stands, with one node; `changes` are to its header."""
    rounds = zone.chain(SESSION).rounds()
    before = zone.chain(SESSION).open(rounds[-1], zone.chain(SESSION).read(rounds[-1])) if rounds else None
    digests = [
        hashlib.sha256(zone.read(ref)).hexdigest()
        for ref in zone.landed_files(SESSION)
        if from_seq <= ref.seq <= through_seq
    ]
    facts: dict[str, Any] = {
        "schema": "sf/1",
        "conversation": SESSION,
        "session": SESSION,
        "round": number,
        "previous": before.digest if before else "",
        "from_seq": from_seq,
        "through_seq": through_seq,
        "input_digest": input_digest(before.header.input_digest if before else "", digests),
        "parser": "v1",
        "policy": "v1+idle=10m0s",
        "talks": 0,
        "steps": 1,
        "streams": 0,
        "segments": 0,
        "unresolved": 0,
    }
    header = RoundHeader(**(facts | changes))
    node_facts = encode_facts(NodeFacts(kind="session", ref=Ref(seq=1, row=1)))
    data, digest = build_round(header, [(f"session/{node}", node_facts)], [], [])
    return header, data, digest


def claim_for(header: RoundHeader, digest: str) -> Claim:
    return Claim(
        conversation=header.conversation,
        session=header.session,
        round=header.round,
        previous=header.previous,
        from_seq=header.from_seq,
        through_seq=header.through_seq,
        indexed_seq=header.through_seq,
        absent=[],
        digest=digest,
        parser=header.parser,
        policy=header.policy,
    )


def publish(zone: Zone, number: int, from_seq: int, through_seq: int, **changes: Any) -> str:
    """Claim and publish the next round; its key."""
    header, data, digest = round_bytes(zone, number, from_seq, through_seq, **changes)
    chain = zone.chain(SESSION)
    chain.claim(claim_for(header, digest))
    return chain.publish(number, data, digest).key


def small_zone(zone: Zone) -> Zone:
    """Three landed files of two lines each, and three rounds over them: 1, 2, and 3 with nothing new."""
    for seq in (1, 2, 3):
        land(zone, seq, lines(2 * seq - 1, 2))
    publish(zone, 1, 1, 1)
    publish(zone, 2, 2, 3)
    publish(zone, 3, 4, 3)
    return zone
