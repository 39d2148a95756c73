"""Provider bodies: every request and response of a model provider can be put together again (section 9, from [0.4]).

A body is stored cut: its record holds only what the session did not hold before, as data parts, and ends with a
manifest ``provider_body/1`` whose segments, joined, are the body: ``lit`` literal text, ``part`` a part of this
record, ``piece`` a part of an earlier record by the SHA-256 of its bytes, ``copy`` the first ``len`` bytes of an
earlier body by record id. The manifest's ``bytes`` and ``sha256`` are those of the whole. A record may copy only from
what landed before it; a body has at most 256 MiB, and at most 32 copies lie between it and a body without one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from schemas.session_data import Part, Record
from tasks.verify.problems import Problem

__all__ = ["BodyCheck"]

SCHEMA = "provider_body/1"
MAX_BYTES = 256 * 1024 * 1024
MAX_DEPTH = 32
KEPT_BYTES = 64 * 1024 * 1024
"""Rebuilt bodies kept for the copies that follow; one that was let go is rebuilt."""


class _Copy(msgspec.Struct, frozen=True):
    from_: str = msgspec.field(name="from")
    sha256: str
    len: int


class _Segment(msgspec.Struct, frozen=True):
    lit: str | None = None
    part: int | None = None
    piece: str | None = None
    copy: _Copy | None = None


class _Manifest(msgspec.Struct, frozen=True):
    schema: str
    sha256: str
    bytes: int
    segments: list[_Segment] | None = None


class _Schema(msgspec.Struct, frozen=True):
    schema: str = ""


@dataclass(frozen=True, slots=True)
class _Held:
    """A body's record; `depth` counts the copies between it and a body without one."""

    manifest: _Manifest
    parts: tuple[Part, ...]
    depth: int


class _NotRebuilt(Exception):
    """Why a body does not come together."""


class BodyCheck:
    """The bodies of one session, added file by file in sequence order, each rebuilt as it comes."""

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}
        self._pieces: dict[str, Part] = {}
        self._rebuilt: OrderedDict[str, bytes] = OrderedDict()
        self._kept = 0

    def check_records(self, file: str, records: Iterable[Record]) -> list[Problem]:
        """Problems of one ``provider_body`` file's records. Records without id or manifest hold no body."""
        problems = []
        for row, record in enumerate(records, 1):
            try:
                self._add(record)
            except _NotRebuilt as reason:
                problems.append(Problem(file, row, "provider_body", f"{record.id}: {reason}"))
        return problems

    def _add(self, record: Record) -> None:
        manifest = _manifest_of(record)
        if manifest is None or not record.id or record.id in self._held:
            return
        held = _Held(manifest, record.parts[:-1], self._depth(manifest))
        try:
            self._keep(record.id, self._rebuild(held))
        finally:
            self._held[record.id] = held
            for part in held.parts:
                if part.k == "data" and part.data is not msgspec.UNSET:
                    self._pieces.setdefault(hashlib.sha256(part.data).hexdigest(), part)

    def _depth(self, manifest: _Manifest) -> int:
        copies = (segment.copy.from_ for segment in manifest.segments or () if segment.copy is not None)
        return max((self._held[base].depth + 1 for base in copies if base in self._held), default=0)

    def _rebuild(self, held: _Held) -> bytes:
        manifest = held.manifest
        if not 0 <= manifest.bytes <= MAX_BYTES:
            raise _NotRebuilt(f"it claims {manifest.bytes} bytes, and a body has at most {MAX_BYTES}")
        if held.depth > MAX_DEPTH:
            raise _NotRebuilt(f"more than {MAX_DEPTH} copies lie between it and a body without one")
        body = bytearray()
        for segment in manifest.segments or ():
            body += self._segment(held, segment)
            if len(body) > manifest.bytes:
                raise _NotRebuilt(f"it comes to more than the {manifest.bytes} bytes it claims")
        if len(body) != manifest.bytes or hashlib.sha256(body).hexdigest() != manifest.sha256:
            raise _NotRebuilt(f"it comes to {len(body)} bytes that do not match its digest")
        return bytes(body)

    def _segment(self, held: _Held, segment: _Segment) -> bytes:
        match segment:
            case _Segment(lit=str(text), part=None, piece=None, copy=None):
                return text.encode("utf-8", "surrogatepass")
            case _Segment(lit=None, part=int(index), piece=None, copy=None):
                if not 0 <= index < len(held.parts):
                    raise _NotRebuilt(f"it names part {index}, which its record does not have")
                return _part_bytes(held.parts[index])
            case _Segment(lit=None, part=None, piece=str(digest), copy=None):
                if digest not in self._pieces:
                    raise _NotRebuilt(f"no earlier record holds piece {digest[:12]}")
                return _part_bytes(self._pieces[digest])
            case _Segment(lit=None, part=None, piece=None, copy=_Copy() as copy):
                return self._copied(copy)
        raise _NotRebuilt("a segment is not exactly one of lit, part, piece and copy")

    def _copied(self, copy: _Copy) -> bytes:
        base = self._held.get(copy.from_)
        if base is None:
            raise _NotRebuilt(f"it copies from {copy.from_}, which no earlier record holds")
        if base.manifest.sha256 != copy.sha256 or not 0 <= copy.len <= base.manifest.bytes:
            raise _NotRebuilt(f"it copies from {copy.from_} with a digest or length that body does not have")
        whole = self._rebuilt.get(copy.from_)
        if whole is None:
            whole = self._rebuild(base)
            self._keep(copy.from_, whole)
        return whole[: copy.len]

    def _keep(self, id: str, body: bytes) -> None:
        self._rebuilt[id] = body
        self._kept += len(body)
        while self._kept > KEPT_BYTES and len(self._rebuilt) > 1:
            self._kept -= len(self._rebuilt.popitem(last=False)[1])


def _manifest_of(record: Record) -> _Manifest | None:
    """The manifest that ends a record, or None; `_NotRebuilt` when it says it is one and has not the shape."""
    last = record.parts[-1] if record.parts else None
    if last is None or last.k != "data" or last.data is msgspec.UNSET:
        return None
    try:
        if msgspec.json.decode(last.data, type=_Schema).schema != SCHEMA:
            return None
    except (msgspec.DecodeError, RecursionError):
        return None
    try:
        return msgspec.json.decode(last.data, type=_Manifest)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _NotRebuilt(f"its manifest has not the shape of one: {error}") from None


def _part_bytes(part: Part) -> bytes:
    """A piece is the JSON value in the body, byte for byte; a body that could not be cut is an unknown part's text."""
    if part.data is msgspec.UNSET:
        raise _NotRebuilt("it names a part without data")
    if part.k != "unknown":
        return bytes(part.data)
    try:
        text = msgspec.json.decode(part.data, type=str)
        if part.encoding == "base64":
            return base64.b64decode(text, validate=True)
    except (msgspec.DecodeError, binascii.Error):
        raise _NotRebuilt("it names an unknown part that holds no text") from None
    if part.encoding:
        raise _NotRebuilt(f"it names a part in the encoding {part.encoding!r}")
    return text.encode("utf-8", "surrogatepass")
