"""Landings: sequence N of a session promised before its file is written (DESIGN.md, rule 3).

``_landing/<session>/NNNNNN.claim`` is created once and keeps its key forever, so no two files of a session ever have
one sequence. It holds the file itself, compressed, and how far the source is read once that file is there: whoever
finds a claim without its file writes it, whatever has become of the source since. Once file and cursor are there, the
claim gives up the file's bytes and keeps the rest.

Beside a file whose records report usage stands ``_calls/<session>/NNNNNN.jsonl.zst`` (`schemas.call_facts`). It is
written before the file, from the claim too, so that a landed file is never without it.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated

import zstandard
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from schemas.errors import ObjectExists, SessionDataRejected
from storage.keys import escape_id
from storage.objects import ObjectStore
from storage.zone import Zone

__all__ = ["CALLS", "LANDING", "Claim", "LandingLog", "Promise", "calls_key"]

CALLS = "_calls/"
LANDING = "_landing/"

_CLAIM_NAME = re.compile(r"([0-9]{6,})\.claim")
_LEVEL = 3
_LEVEL_OF_CLAIMS = 1
"""A claim holds its file for as long as it takes to write that too; this level takes half the time."""


class Promise(BaseModel):
    """What a claim says in words. Field order is writing order.

    `key` is the file to come, `digest` and `size` (bytes) its content's; `calls_size` is that of the call facts beside
    it; `target` names the source's cursor, which then holds `cursor`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    session: str
    seq: Annotated[int, Field(ge=1)]
    key: str
    digest: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0)]
    calls_size: Annotated[int, Field(ge=0)] = 0
    target: str
    cursor: dict[str, str]


@dataclass(frozen=True, slots=True)
class Claim:
    """A promise with the file it is about and the call facts beside it; without both once they have landed."""

    promise: Promise
    data: bytes | None
    calls: bytes = b""

    @classmethod
    def of(
        cls,
        *,
        session: str,
        seq: int,
        key: str,
        data: bytes,
        digest: str,
        calls: bytes,
        target: str,
        cursor: dict[str, str],
    ) -> Claim:
        """`digest` is the hex SHA-256 of `data`."""
        promise = Promise(
            session=session,
            seq=seq,
            key=key,
            digest=digest,
            size=len(data),
            calls_size=len(calls),
            target=target,
            cursor=cursor,
        )
        return cls(promise, data, calls)

    def to_bytes(self) -> bytes:
        """One line of JSON, then, while they are still held, file and call facts as one Zstandard frame."""
        line = self.promise.model_dump_json().encode() + b"\n"
        return line if self.data is None else line + _compressed(self.data + self.calls, _LEVEL_OF_CLAIMS)


class LandingLog:
    """The claims of one session, in sequence."""

    def __init__(self, zone: Zone, session: str) -> None:
        self.session = session
        self._store: ObjectStore = zone.store
        self._folder = f"{LANDING}{escape_id(session)}/"

    def sequences(self) -> list[int]:
        """Every claimed sequence, sorted."""
        names = (stat.key.removeprefix(self._folder) for stat in self._store.children(self._folder)[1])
        return sorted(int(match[1]) for name in names if (match := _CLAIM_NAME.fullmatch(name)))

    def read(self, seq: int) -> Claim:
        """The claim of `seq`; raises `SessionDataRejected` (rule ``claim``) when it is unreadable or another's."""
        key = self._key(seq)
        line, _, compressed = self._store.read(key).partition(b"\n")
        try:
            promise = Promise.model_validate_json(line)
            held = zstandard.ZstdDecompressor().decompress(compressed) if compressed else None
        except (ValidationError, zstandard.ZstdError) as error:
            raise SessionDataRejected(key, None, "claim", f"it does not read: {error}") from None
        if (promise.session, promise.seq) != (self.session, seq):
            detail = f"it claims sequence {promise.seq} of session {promise.session}"
            raise SessionDataRejected(key, None, "claim", detail)
        if held is None:
            return Claim(promise, None)
        data, calls = held[: promise.size], held[promise.size :]
        if sha256(data).hexdigest() != promise.digest or len(calls) != promise.calls_size:
            raise SessionDataRejected(key, None, "claim", "the file it holds is not the one it names")
        return Claim(promise, data, calls)

    def claim(self, claim: Claim) -> Claim:
        """Claim a sequence, once: the claim that stands now, which is `claim` or one that somebody made before."""
        try:
            self._store.create(self._key(claim.promise.seq), claim.to_bytes())
        except ObjectExists:
            return self.read(claim.promise.seq)
        return claim

    def land(self, claim: Claim) -> None:
        """Write the claimed file, after the call facts; both are there afterwards, whoever wrote them.

        Raises `SessionDataRejected` (rule ``claim``) when other bytes stand under its name, or the file is gone from
        both the claim and the zone.
        """
        promise = claim.promise
        if claim.data is None:
            if self._store.stat(promise.key) is None:
                raise SessionDataRejected(promise.key, None, "claim", "it was landed, and is not in the zone any more")
            return
        if claim.calls:
            # Whoever has the claim writes the same facts; their compressed bytes may depend on the library's version.
            with contextlib.suppress(ObjectExists):
                self._store.create(calls_key(self.session, promise.seq), _compressed(claim.calls))
        try:
            self._store.create(promise.key, claim.data)
        except ObjectExists:
            if self._store.read(promise.key) != claim.data:
                raise SessionDataRejected(promise.key, None, "claim", "other bytes stand under this name") from None

    def settle(self, claim: Claim) -> None:
        """Let the claim give up the file's bytes; file and cursor are there."""
        self._store.replace(self._key(claim.promise.seq), Claim(claim.promise, None).to_bytes())

    def _key(self, seq: int) -> str:
        return f"{self._folder}{seq:06d}.claim"


def calls_key(session: str, seq: int) -> str:
    """Where the call facts beside landed file `seq` lie."""
    return f"{CALLS}{escape_id(session)}/{seq:06d}.jsonl.zst"


def _compressed(data: bytes, level: int = _LEVEL) -> bytes:
    return zstandard.ZstdCompressor(level=level).compress(data)
