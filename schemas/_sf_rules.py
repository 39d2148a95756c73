"""The rules a round keeps that need no order among its frames (specification, section 7)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import UNSET, Raw, Struct, UnsetType

from schemas import lenient_json
from schemas._sf_model import SCHEMA, Ref, RoundHeader
from schemas.lenient_json import UndecodableJSON

STATES = frozenset(("open", "resolved", "terminal"))
ROLES = frozenset(("request", "response"))

Fault = tuple[str, str]
"""Short name of a rule that is broken, and how it is."""


def header_fault(header: RoundHeader) -> Fault | None:
    """The first rule that the header breaks."""
    if header.schema != SCHEMA:
        return "schema", f"schema {header.schema!r}, this reader knows {SCHEMA!r}"
    for field in ("conversation", "session"):
        if not getattr(header, field):
            return "header_field", f"the header has no {field}"
    if header.round == 0:
        return "round_zero", "rounds count from 1"
    if header.round > 1 and not header.previous:
        return "previous", f"round {header.round} names no previous digest"
    if header.round == 1 and header.previous:
        return "previous", "round 1 names a previous digest"
    for field in ("parser", "policy", "input_digest"):
        if not getattr(header, field):
            return "header_field", f"the header has no {field}"
    if header.from_seq == 0:
        return "from_seq", "landed sequences count from 1"
    if header.through_seq < header.from_seq - 1:
        return "range", f"sequences {header.from_seq} to {header.through_seq} are no range"
    return None


def refs_fault(refs: Iterable[Ref], through: int) -> Fault | None:
    """The first reference that is no position, or lies past the sequence the round reaches."""
    for ref in refs:
        if ref.seq == 0 and ref.row == 0:
            return "reference", "a reference to sequence 0, row 0"
        if ref.seq > through:
            return "reference", f"a reference to sequence {ref.seq}, past the round's {through}"
    return None


class _ProviderBody(Struct):
    role: str
    ref: Ref


class _Attrs(Struct):
    provider_bodies: Raw | UnsetType = UNSET


class _Carried(Struct):
    provider_bodies: list[_ProviderBody]


def may_hold_bodies(text: bytes) -> bool:
    """False when no attrs in ``text`` can have the key ``provider_bodies``, in whatever case or with whatever escapes.

    Of the key's letters only the last can be anything but ASCII.
    """
    return b"provider_" in text.lower() or b"\\u0" in text


def provider_bodies_fault(attrs: Raw, through: int) -> Fault | None:
    """The first rule that the ``provider_bodies`` inside a node's attrs break; attrs that are no object carry none."""
    if not may_hold_bodies(bytes(attrs)):
        return None
    try:
        value = lenient_json.decode(bytes(attrs), _Attrs).provider_bodies
    except UndecodableJSON:
        return None
    if value is UNSET:
        return None
    try:
        bodies = lenient_json.decode(b'{"provider_bodies":%b}' % bytes(value), _Carried).provider_bodies
    except UndecodableJSON as error:
        return "undecodable", f"provider_bodies is no list of provider bodies: {error}"
    for body in bodies:
        if body.role not in ROLES:
            return "provider_bodies", f"a provider body with the role {body.role!r}"
        if body.ref.seq == 0 or body.ref.row == 0:
            return "provider_bodies", f"a provider body at {body.ref.seq}/{body.ref.row}, which is no position"
    return refs_fault((body.ref for body in bodies), through)
