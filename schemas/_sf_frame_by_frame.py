"""Reading any round frame by frame, in file order (specification, section 7).

This is the rule; `_sf_reader` has a faster way for rounds that need none of what is lenient here.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NoReturn, TypeVar

from msgspec import UNSET, Struct

from schemas import lenient_json
from schemas._sf_model import Commit, Entity, Frame, NodeFrame, RelationFrame, Round, RoundHeader, UnresolvedFrame
from schemas._sf_rules import STATES, Fault, header_fault, provider_bodies_fault, refs_fault
from schemas._sf_writer import canonical_attrs, encode_facts
from schemas.errors import RoundRejected
from schemas.lenient_json import UndecodableJSON

S = TypeVar("S", bound=Struct)


class _Probe(Struct):
    t: str


class FrameByFrame:
    """Reads a round in file order and stops at the first rule that is broken."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.row = 0
        self.types: dict[str, str] = {}
        self.header: RoundHeader | None = None
        self.commit: Commit | None = None
        self.entities: dict[str, list[Entity]] = {"node": [], "relation": [], "unresolved": []}

    def read(self, lines: list[bytes]) -> Round:
        hashed = sha256()
        for self.row, line in enumerate(lines, 1):
            self._take(line)
            if self.commit is None:
                hashed.update(line + b"\n")
        if self.header is None:
            raise RoundRejected(self.name, None, "no_header", "the file is empty")
        if self.commit is None:
            raise RoundRejected(self.name, None, "truncated", "the file has no commit frame; it was cut short")
        digest = hashed.hexdigest()
        if self.commit.digest != digest:
            claimed = self.commit.digest[:12]
            raise RoundRejected(
                self.name, None, "digest", f"the frames have digest {digest[:12]}, the commit frame says {claimed!r}"
            )
        nodes, relations, unresolved = self.entities.values()
        counts = self.commit.counts
        claims = (counts.nodes, counts.relations, counts.unresolved)
        found = (len(nodes), len(relations), len(unresolved))
        if claims != found:
            raise RoundRejected(
                self.name, None, "counts", f"{found} nodes, relations, unresolved; the commit frame says {claims}"
            )
        return Round(self.header, nodes, relations, unresolved, digest)

    @property
    def through(self) -> int:
        """The sequence the round reaches."""
        assert self.header is not None
        return self.header.through_seq

    def _take(self, line: bytes) -> None:
        type = self._decode(line, _Probe).t
        if self.commit is not None:
            self._reject("after_commit", "a frame after the commit frame")
        if self.row == 1 and type != "header":
            self._reject("first_not_header", f"the first frame is {type!r}")
        match type:
            case "header":
                if self.row > 1:
                    self._reject("second_header", "a second header")
                self.header = self._decode(line, RoundHeader)
                self._check(header_fault(self.header))
            case "node":
                self._take_node(self._decode(line, NodeFrame))
            case "relation":
                self._take_relation(self._decode(line, RelationFrame))
            case "unresolved":
                self._take_unresolved(self._decode(line, UnresolvedFrame))
            case "commit":
                self.commit = self._decode(line, Commit)
            case _:
                self._reject("frame_type", f"unknown frame type {type!r}")

    def _take_node(self, frame: NodeFrame) -> None:
        self._check_envelope("node", frame)
        refs = frame.refs if frame.ref is None else (frame.ref, *frame.refs)
        self._check(refs_fault(refs, self.through))
        if frame.attrs is not UNSET:
            self._check(provider_bodies_fault(frame.attrs, self.through))
            frame.attrs = canonical_attrs(bytes(frame.attrs))
        self._keep("node", frame)

    def _take_relation(self, frame: RelationFrame) -> None:
        self._check_envelope("relation", frame)
        if not (frame.tombstone or (frame.type and frame.from_ and frame.to)):
            self._reject("relation", f"relation {frame.id!r} lacks an endpoint or its type")
        self._check(refs_fault(frame.evidence, self.through))
        self._keep("relation", frame)

    def _take_unresolved(self, frame: UnresolvedFrame) -> None:
        self._check_envelope("unresolved", frame)
        if not (frame.tombstone or frame.state in STATES):
            self._reject("unresolved_state", f"unresolved entry {frame.id!r} has the state {frame.state!r}")
        self._keep("unresolved", frame)

    def _keep(self, type: str, frame: Frame) -> None:
        entity = Entity(frame.id, frame.revision, frame.tombstone, encode_facts(frame.facts))
        self.entities[type].append(entity)

    def _check_envelope(self, type: str, frame: Frame) -> None:
        assert self.header is not None
        if not frame.id:
            self._reject("no_id", f"a {type} frame without an id")
        earlier = self.types.setdefault(frame.id, "")
        if earlier:
            self._reject("duplicate_id", f"id {frame.id!r} stands for a {earlier} and a {type}")
        self.types[frame.id] = type
        if frame.revision != self.header.round:
            self._reject("revision", f"{frame.id!r} has revision {frame.revision} in round {self.header.round}")

    def _decode(self, line: bytes, kind: type[S]) -> S:
        try:
            return lenient_json.decode(line, kind)
        except UndecodableJSON as error:
            self._reject("undecodable", f"the frame does not decode: {error}")

    def _check(self, fault: Fault | None) -> None:
        if fault is not None:
            self._reject(*fault)

    def _reject(self, rule: str, detail: str) -> NoReturn:
        raise RoundRejected(self.name, self.row, rule, detail)
