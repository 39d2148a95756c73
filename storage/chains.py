"""Conversation chains: rounds listed, read, folded, claimed and published (session-flow specification, section 7)."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from schemas.errors import ChainRejected, ObjectExists
from schemas.session_flow import Round, RoundHeader, View, check_round, read_round, round_file_name
from storage.ahead import read_in_order, reads_in_order
from storage.caches import write_cache
from storage.claims import Claim, claim_name, read_claim
from storage.objects import ObjectStats, ObjectStore

__all__ = ["CONVERSATIONS", "ChainStore", "RoundFile"]

CONVERSATIONS = "_conversations/"
STATE = "conversation.state"

_CLAIM_NAME = re.compile(r"r([0-9]{6,})\.claim")
_ROUND_NAME = re.compile(r"r([0-9]{6,})-([0-9a-f]{12})\.sf")


@dataclass(frozen=True, slots=True)
class RoundFile:
    """A round as the listing shows it; `digest12` is from its name and proves nothing."""

    number: int
    digest12: str
    key: str
    name: str
    size: int


class ChainStore:
    """The chain of one conversation. The listing of its rounds is the authority; all else is derived, or a claim."""

    def __init__(self, store: ObjectStore, conversation: str) -> None:
        self.store = store
        self.conversation = conversation
        self._folder = f"{CONVERSATIONS}{conversation}/"
        self._rounds = f"{self._folder}rounds/"

    def rounds(self) -> list[RoundFile]:
        """Every round file, sorted by number. Two with one number are both here; a fold then fails."""
        return _round_files(self._objects())

    def rounds_and_claims(self) -> tuple[list[RoundFile], list[int]]:
        """Every round file, and the numbers of the claims that stand without their rounds, from one listing; both
        sorted by number."""
        objects = self._objects()
        rounds = _round_files(objects)
        names = (stat.key.rpartition("/")[2] for stat in objects)
        claimed = {int(match[1]) for name in names if (match := _CLAIM_NAME.fullmatch(name))}
        return rounds, sorted(claimed - {each.number for each in rounds})

    def claim_key(self, number: int) -> str:
        """Where the claim of round `number` lies."""
        return self._rounds + claim_name(number)

    def read(self, round_file: RoundFile) -> bytes:
        """A round's bytes; raises as `ObjectStore.read` does."""
        return self.store.read(round_file.key)

    def read_many(self, round_files: list[RoundFile]) -> Iterator[tuple[RoundFile, bytes]]:
        """Rounds with their bytes, in the order given, read ahead where the store is far."""
        return read_in_order(self.store, round_files)

    def reads(self, round_files: list[RoundFile]) -> Iterator[tuple[RoundFile, Callable[[], bytes]]]:
        """As `read_many`, but each round's bytes are asked for by a call, which raises that round's own error."""
        return reads_in_order(self.store, round_files)

    def fold(self, upto: int | None = None) -> View:
        """The conversation as of round `upto`, or of the last one.

        Raises `RoundRejected` for a damaged round and `ChainRejected` for one that does not follow.
        """
        wanted = [each for each in self.rounds() if upto is None or each.number <= upto]
        for earlier, later in itertools.pairwise(wanted):
            if earlier.number == later.number:
                detail = f"{earlier.name} has the same number, so neither can be trusted"
                raise ChainRejected(later.key, None, "duplicate_round", detail)
        view = View.empty(self.conversation)
        for round_file, data in self.read_many(wanted):
            view.apply(self.open(round_file, data), file=round_file.key)
        return view

    def open(self, round_file: RoundFile, data: bytes) -> Round:
        """A round read and checked by itself; raises `RoundRejected`, or `ChainRejected` (``round_number``) when its
        header names another number than its file."""
        opened = read_round(data, name=round_file.key)
        _check_number(round_file, opened.header)
        return opened

    def check(self, round_file: RoundFile, data: bytes) -> tuple[RoundHeader, str]:
        """Header and digest of a round, checked as `open` does and without keeping what it says."""
        header, digest = check_round(data, name=round_file.key)
        _check_number(round_file, header)
        return header, digest

    def pending_claim(self) -> Claim | None:
        """The claim of the first round that is not there: the one after the head, or one that went missing before it.

        None when no claim stands without its round. Raises `ChainRejected` (``claim``) when it is unreadable.
        """
        objects = self._objects()
        keys = {stat.key for stat in objects}
        rounds = _round_files(objects)
        present = {each.number for each in rounds}
        for number in range(1, (rounds[-1].number if rounds else 0) + 2):
            if number not in present and self.claim_key(number) in keys:
                return self._read_claim(number)
        return None

    def claim(self, claim: Claim) -> Claim:
        """Claim a round, once: the claim that stands now, which is `claim` or one that somebody made before."""
        try:
            self.store.create(self.claim_key(claim.round), claim.to_bytes())
        except ObjectExists:
            return self._read_claim(claim.round)
        return claim

    def publish(self, number: int, data: bytes, digest: str) -> RoundFile:
        """Publish the claimed round `number`; it is there afterwards, whoever wrote it.

        Raises `ChainRejected` when it cannot become that round: no claim or another digest's (``claim``), another
        round with its number (``duplicate_round``), a head that is not the round before (``order``), or bytes that do
        not have the digest (``digest``).
        """
        name = round_file_name(number, digest)
        key = self._rounds + name
        if hashlib.sha256(data[: data.rfind(b"\n", 0, -1) + 1]).hexdigest() != digest:
            raise ChainRejected(key, None, "digest", "the round's bytes do not have the digest it is published under")
        objects = self._objects()
        if not any(stat.key == self.claim_key(number) for stat in objects):
            raise ChainRejected(key, None, "claim", f"round {number} was not claimed")
        if (claimed := self._read_claim(number).digest) != digest:
            raise ChainRejected(key, None, "claim", f"round {number} is claimed for digest {claimed[:12]}")
        rounds = _round_files(objects)
        for each in rounds:
            if each.number == number and each.key != key:
                raise ChainRejected(key, None, "duplicate_round", f"round {number} is already {each.name}")
        # A round that went missing comes back the same way: its claim admits only the bytes that it had.
        head = rounds[-1].number if rounds else 0
        if head < number - 1:
            raise ChainRejected(key, None, "order", f"cannot publish round {number}: the chain head is round {head}")
        try:
            self.store.create(key, data)
        except ObjectExists:
            if self.store.read(key) != data:
                raise ChainRejected(key, None, "digest", "another object stands under this round's name") from None
        return RoundFile(number, digest[:12], key, name, len(data))

    def write_state(self, head: RoundHeader, digest: str, updated_at: str) -> None:
        """Write the state cache: nine lines about the newest round, for people and other tools; never read back here.

        `updated_at` is UTC RFC 3339 (`schemas.times.format_time` of the caller's now).
        """
        values = {
            "schema": 1,
            "conversation": self.conversation,
            "head": head.round,
            "head_digest": digest,
            "through_seq": head.through_seq,
            "input_digest": head.input_digest,
            "parser": head.parser,
            "policy": head.policy,
            "updated_at": updated_at,
        }
        text = "".join(f"{key:<12} {value}\n" for key, value in values.items())
        write_cache(self.store, self._folder + STATE, text.encode())

    def _objects(self) -> ObjectStats:
        return self.store.children(self._rounds)[1]

    def _read_claim(self, number: int) -> Claim:
        key = self.claim_key(number)
        return read_claim(self.store.read(key), name=key, conversation=self.conversation, number=number)


def _check_number(round_file: RoundFile, header: RoundHeader) -> None:
    if header.round != round_file.number:
        raise ChainRejected(round_file.key, None, "round_number", f"header says round {header.round}")


def _round_files(objects: ObjectStats) -> list[RoundFile]:
    found = []
    for stat in objects:
        name = stat.key.rsplit("/", 1)[-1]
        if match := _ROUND_NAME.fullmatch(name):
            found.append(RoundFile(int(match[1]), match[2], stat.key, name, stat.size))
    return sorted(found, key=lambda each: (each.number, each.name))
