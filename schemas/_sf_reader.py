"""Reading a round (specification, section 7).

A round that is written as this project writes it is decoded as a whole and recognised by encoding it again to the same
bytes; its rules are then checked without regard to order. A round that fails there for any reason is read again frame
by frame, which finds the rule that is broken first, or that there is none.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import NamedTuple

import msgspec

from schemas import lenient_json
from schemas._formats import NOT_TYPED, encode_lines
from schemas._sf_frame_by_frame import FrameByFrame
from schemas._sf_model import Commit, Entity, Frame, NodeFrame, RelationFrame, Round, RoundHeader
from schemas._sf_rules import STATES, header_fault, may_hold_bodies, provider_bodies_fault
from schemas._sf_writer import escape

_decode_header = msgspec.json.Decoder(RoundHeader).decode
_decode_commit = msgspec.json.Decoder(Commit).decode
_decode_frame = msgspec.json.Decoder(Frame).decode

_may_exceed_64_bits = re.compile(rb":[0-9]{20}").search


def read_round(data: bytes, *, name: str) -> Round:
    """The round in ``data``; ``name`` is what errors call it.

    Raises RoundRejected with the rule broken first in file order; rows count non-empty lines from 1. Empty lines are
    skipped and belong to no digest, and the last line may lack its newline.
    """
    lines = [line for line in data.split(b"\n") if line]
    canonical = _read_canonical(lines)
    if canonical is None:
        return FrameByFrame(name).read(lines)
    return Round(canonical.header, *_entities(lines[1:-1], canonical.frames), canonical.digest)


def check_round(data: bytes, *, name: str) -> tuple[RoundHeader, str]:
    """Header and digest of a round that breaks no rule; its entities are not kept. Raises as `read_round` does."""
    lines = [line for line in data.split(b"\n") if line]
    canonical = _read_canonical(lines)
    if canonical is None:
        round = FrameByFrame(name).read(lines)
        return round.header, round.digest
    return canonical.header, canonical.digest


class _Canonical(NamedTuple):
    header: RoundHeader
    frames: list[Frame]
    digest: str


def _read_canonical(lines: list[bytes]) -> _Canonical | None:
    """The round, when it is in this project's own form and breaks no rule; None when that takes a closer look."""
    if len(lines) < 2:
        return None
    try:
        header = _decode_header(lines[0])
        frames: list[Frame] = list(map(_decode_frame, lines[1:-1]))
        commit = _decode_commit(lines[-1])
    except NOT_TYPED:
        return None
    text = b"\n".join(lines) + b"\n"
    if escape(encode_lines([header, *frames, commit])) != text or _may_exceed_64_bits(text):
        return None
    if header_fault(header) is not None or len({frame.id for frame in frames}) != len(frames):
        return None
    counts = _counts(frames, header, bodies=may_hold_bodies(text))
    digest = sha256(memoryview(text)[: -len(lines[-1]) - 1]).hexdigest()
    claimed = commit.counts
    if commit.digest != digest or counts != (claimed.nodes, claimed.relations, claimed.unresolved):
        return None
    return _Canonical(header, frames, digest)


def _counts(frames: list[Frame], header: RoundHeader, *, bodies: bool) -> tuple[int, int, int] | None:
    """How many nodes, relations and unresolved entries there are; None when one of them breaks a rule.

    `bodies`: whether attrs can name provider bodies.
    """
    number, through = header.round, header.through_seq
    nodes = relations = 0
    for frame in frames:
        if not frame.id or frame.revision != number:
            return None
        if isinstance(frame, NodeFrame):
            nodes += 1
            if bodies and frame.attrs and provider_bodies_fault(frame.attrs, through) is not None:
                return None
            ref = frame.ref
            if ref is not None and (ref.seq > through or not (ref.seq or ref.row)):
                return None
            refs = frame.refs
        elif isinstance(frame, RelationFrame):
            relations += 1
            if not (frame.tombstone or (frame.type and frame.from_ and frame.to)):
                return None
            refs = frame.evidence
        elif frame.tombstone or frame.state in STATES:
            continue
        else:
            return None
        for ref in refs:
            if ref.seq > through or not (ref.seq or ref.row):
                return None
    return nodes, relations, len(frames) - nodes - relations


def _entities(body: list[bytes], frames: list[Frame]) -> tuple[list[Entity], list[Entity], list[Entity]]:
    """Nodes, relations and unresolved entries of canonical lines.

    The envelope ends at the first unescaped `,"kind":` or `,"type":`; space between tokens can only be in attrs.
    """
    nodes: list[Entity] = []
    relations: list[Entity] = []
    unresolved: list[Entity] = []
    for line, frame in zip(body, frames, strict=True):
        id, revision, tombstone = frame.id, frame.revision, frame.tombstone
        if isinstance(frame, NodeFrame):
            facts = b"{" + line[line.index(b',"kind":') + 1 :]
            if frame.attrs and (b" " in facts or b"\t" in facts or b"\r" in facts):
                facts = lenient_json.compact(facts)
            nodes.append(Entity(id, revision, tombstone, facts))
        elif isinstance(frame, RelationFrame):
            relations.append(Entity(id, revision, tombstone, b"{" + line[line.index(b',"type":') + 1 :]))
        else:
            unresolved.append(Entity(id, revision, tombstone, b"{" + line[line.index(b',"kind":') + 1 :]))
    return nodes, relations, unresolved
