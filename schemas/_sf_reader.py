"""Reading a round (specification, section 7).

A round that is written as this project writes it is decoded as a whole and recognised by encoding it again to the same bytes;
its rules are then checked without regard to order. A round that fails there for any reason is read again frame by frame,
which finds the rule that is broken first, or that there is none.
"""

from __future__ import annotations

import re
from hashlib import sha256

import msgspec

from schemas import lenient_json
from schemas._formats import NOT_TYPED, LineDecoder, encode_lines
from schemas._sf_frame_by_frame import FrameByFrame
from schemas._sf_model import Commit, Entity, Frame, NodeFrame, RelationFrame, Round, RoundHeader
from schemas._sf_rules import STATES, header_fault, provider_bodies_fault
from schemas.lenient_json import UndecodableJSON

_read_header = LineDecoder(RoundHeader)
_read_commit = LineDecoder(Commit)
_decode_frame = msgspec.json.Decoder(Frame).decode

_may_exceed_64_bits = re.compile(rb":[0-9]{20}").search


def read_round(data: bytes, *, name: str) -> Round:
    """The round in ``data``; ``name`` is what errors call it.

    Raises RoundRejected with the rule broken first in file order; rows count non-empty lines from 1. Empty lines are skipped
    and belong to no digest, and the last line may lack its newline.
    """
    lines = [line for line in data.split(b"\n") if line]
    round = _read_canonical(lines)
    return FrameByFrame(name).read(lines) if round is None else round


def _read_canonical(lines: list[bytes]) -> Round | None:
    """The round, when it is in this project's own form and breaks no rule; None when that takes a closer look."""
    if len(lines) < 2 or not lines[0].startswith(b'{"t":"header",') or not lines[-1].startswith(b'{"t":"commit",'):
        return None
    body = lines[1:-1]
    text = b"\n".join(body) + b"\n" if body else b""
    try:
        header = _read_header(lines[0])
        commit = _read_commit(lines[-1])
        frames: list[Frame] = list(map(_decode_frame, body))
    except (*NOT_TYPED, UndecodableJSON):
        return None
    if encode_lines(frames) != text or _holds_unescaped(text) or _may_exceed_64_bits(text):
        return None
    if header_fault(header) is not None or not _keep_the_rules(frames, header, text):
        return None
    hashed = sha256(lines[0] + b"\n")
    hashed.update(text)
    digest = hashed.hexdigest()
    entities = _entities(body, frames)
    counts = commit.counts
    if commit.digest != digest or (counts.nodes, counts.relations, counts.unresolved) != tuple(map(len, entities)):
        return None
    return Round(header, *entities, digest)


def _keep_the_rules(frames: list[Frame], header: RoundHeader, text: bytes) -> bool:
    number, through = header.round, header.through_seq
    if len({frame.id for frame in frames}) != len(frames) or any(frame.revision != number for frame in frames):
        return False
    look_for_bodies = b"provider_bod" in text.lower() or b"\\u" in text
    for frame in frames:
        if not frame.id:
            return False
        if isinstance(frame, NodeFrame):
            ref = frame.ref
            if ref is not None and (ref.seq > through or not (ref.seq or ref.row)):
                return False
            refs = frame.refs
            if look_for_bodies and frame.attrs and provider_bodies_fault(bytes(frame.attrs), through) is not None:
                return False
        elif isinstance(frame, RelationFrame):
            if not (frame.tombstone or (frame.type and frame.from_ and frame.to)):
                return False
            refs = frame.evidence
        else:
            if not (frame.tombstone or frame.state in STATES):
                return False
            continue
        for ref in refs:
            if ref.seq > through or not (ref.seq or ref.row):
                return False
    return True


def _holds_unescaped(text: bytes) -> bool:
    if b"<" in text or b">" in text or b"&" in text:
        return True
    return not text.isascii() and (b"\xe2\x80\xa8" in text or b"\xe2\x80\xa9" in text)


def _entities(body: list[bytes], frames: list[Frame]) -> tuple[list[Entity], list[Entity], list[Entity]]:
    nodes: list[Entity] = []
    relations: list[Entity] = []
    unresolved: list[Entity] = []
    for line, frame in zip(body, frames, strict=True):
        # The line is canonical but for space inside attrs. In it the first unescaped `,"kind":` ends the envelope.
        if isinstance(frame, RelationFrame):
            facts = b"{" + line[line.index(b',"type":') + 1 :]
            relations.append(Entity(frame.id, frame.revision, frame.tombstone, facts))
            continue
        facts = b"{" + line[line.index(b',"kind":') + 1 :]
        if isinstance(frame, NodeFrame):
            if b" " in facts or b"\t" in facts or b"\r" in facts:
                facts = lenient_json.compact(facts)
            nodes.append(Entity(frame.id, frame.revision, frame.tombstone, facts))
        else:
            unresolved.append(Entity(frame.id, frame.revision, frame.tombstone, facts))
    return nodes, relations, unresolved
