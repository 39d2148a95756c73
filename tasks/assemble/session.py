"""Assemble one session: landed files in, rounds out (session-flow specification, section 8; publishing by intent: the
design's rule 3).

Before a round is written, a claim says what it will be made of. Whoever finds a claim without its round makes the same
round from the same evidence, so neither a crash nor a second process can put two rounds under one number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from schemas.errors import ChainRejected, ClaimUnbuildable, SessionDataRejected, SessionRejected
from schemas.session_data import read_session_data
from schemas.session_flow import RoundHeader, View
from schemas.times import format_time
from storage.chains import ChainStore
from storage.claims import Claim
from storage.zone import LandedRef, Zone

from .assembled import NOTHING, Assembled, Subject
from .checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from .delta import Published, published
from .entries import FileEntries, entries_of
from .evidence import gaps, missing_evidence, without
from .index import EMPTY_INDEX, Index, Restructured, extend
from .policy import IDLE_GAP, PARSER, policy
from .rounds import DEFAULT_BUDGET, PlannedRound, plan_round, round_at

__all__ = ["AssembleOptions", "SessionAssembly", "assemble_session"]


_LARGEST_SEQUENCE = 2**63 - 1
"""Rounds hold sequences in 64 bits; half of that leaves room for the next."""


_CHECKPOINT_RATIO, _CHECKPOINT_FLOOR = 4, 64 << 20
"""A checkpoint unpacks to less than its landed files in all that was seen; one beyond this many times is not ours."""


class AssembleOptions(NamedTuple):
    """now: nanoseconds since the epoch, written to conversation.state alone. max_round_bytes: a round's budget, the
    default where not positive.
    """

    now: int
    max_round_bytes: int = DEFAULT_BUDGET
    idle_gap_ns: int = IDLE_GAP


class SessionAssembly(NamedTuple):
    """The chain's head after the run. nodes, relations: how many stand. through_seq: the evidence taken in."""

    session: str
    conversation: str
    rounds_written: int
    round: int
    digest: str
    nodes: int
    relations: int
    open_unresolved: int
    through_seq: int


@dataclass(frozen=True, slots=True)
class _Standing:
    """Where a run stands: what is published, the assembly it came from (or `NOTHING`), and the evidence read."""

    published: Published
    base: Assembled
    index: Index


def assemble_session(zone: Zone, session: str, options: AssembleOptions) -> SessionAssembly:
    """Publish rounds until the chain has taken in everything that landed. A session without landed files and without a
    chain gives round 0.

    Raises `SessionRejected` (nothing landed, or the chain goes beyond the evidence), `SessionDataRejected` (a landed
    file), `RoundRejected` and `ChainRejected` (the chain), `ClaimUnbuildable` (an interrupted round's evidence is
    gone).
    """
    return _Run(zone, session, options).finish()


class _Run:
    """One session's run against its zone and chain."""

    def __init__(self, zone: Zone, session: str, options: AssembleOptions) -> None:
        self.zone = zone
        self.chain: ChainStore = zone.chain(session)
        self.subject = Subject(session, session, options.idle_gap_ns)
        self.policy = policy(options.idle_gap_ns)
        self.options = options
        self.landed = self._landed()
        self.written = 0

    def finish(self) -> SessionAssembly:
        saved = self._checkpoint() if self.landed else None
        standing: _Standing | None = None
        while self.landed or self.chain.rounds():
            claim = self.chain.pending_claim()
            if claim is not None:
                self._complete(claim)
                standing = saved = None
            try:
                if standing is None:
                    standing = self._begin() if saved is None else self._resume(saved)
                found = plan_round(
                    standing.published, standing.base, standing.index, self.subject, self.options.max_round_bytes
                )
            except Restructured:
                standing = saved = None
                continue
            if not isinstance(found, PlannedRound):
                standing = replace(standing, base=found)
            elif self._publish(found, standing.index):
                standing = _Standing(found.published, found.assembled, standing.index)
            else:
                # Another process was first: go on from what it claimed, with the evidence that it had.
                standing = saved = None
                self.landed = self._landed()
                continue
            if standing.published.through >= standing.index.watermark:
                self._save(standing, saved)
                return self._result(standing)
        return self._result(None)

    def _landed(self) -> list[LandedRef]:
        landed = self.zone.landed_files(self.subject.session)
        if landed and landed[-1].seq > _LARGEST_SEQUENCE:
            detail = "the sequence in the file's name does not fit a round; take the file out of the zone"
            raise SessionDataRejected(landed[-1].key, None, "sequence", detail)
        return landed

    def _begin(self) -> _Standing:
        """Everything from the beginning: the chain folded, every landed file read."""
        head = self._fold(self.chain.fold())
        index = extend(EMPTY_INDEX, self._entries(self.landed))
        if not index.watermark:
            detail = "no landed records; land the session's archive first"
            raise SessionRejected(self.subject.session, None, "no_landed_records", detail)
        if index.watermark < head.through:
            detail = (
                f"the chain covers landed sequence {head.through}, but the landed files reach only {index.watermark}"
            )
            raise SessionRejected(self.subject.session, None, "beyond_evidence", detail)
        return _Standing(head, NOTHING, index)

    def _resume(self, saved: Checkpoint) -> _Standing:
        """The checkpoint, and what landed after it. Raises `Restructured`."""
        index = extend(saved.resumed_index(), self._entries(self.landed[len(saved.landed) :]))
        return _Standing(saved.published(), saved.assembled, index)

    def _checkpoint(self) -> Checkpoint | None:
        """The saved checkpoint when it fits: same interpretation, same head, same landed files as far as it goes."""
        data = self.zone.read_index(self.subject.session)
        largest = _CHECKPOINT_RATIO * sum(ref.size for ref in self.landed) + _CHECKPOINT_FLOOR
        saved = read_checkpoint(data, largest) if data is not None else None
        rounds = self.chain.rounds()
        if saved is None or not rounds:
            return None
        head = rounds[-1]
        fits = (
            (saved.parser, saved.policy) == (PARSER, self.policy)
            and (saved.session, saved.conversation) == self.subject[:2]
            and saved.rounds == tuple((each.key, each.size) for each in rounds)
            and saved.landed == tuple((ref.key, ref.size) for ref in self.landed[: len(saved.landed)])
        )
        # The head is read whole, for the next round stands on its digest; earlier ones are `verify`'s to read.
        if not fits or self.chain.check(head, self.chain.read(head))[1] != saved.digest:
            return None
        return saved

    def _save(self, standing: _Standing, saved: Checkpoint | None) -> None:
        if saved is not None and not self.written and len(saved.landed) == len(self.landed):
            return
        landed = [(ref.key, ref.size) for ref in self.landed]
        rounds = [(each.key, each.size) for each in self.chain.rounds()]
        data = write_checkpoint(
            PARSER,
            self.policy,
            self.subject.session,
            self.subject.conversation,
            landed,
            rounds,
            standing.index,
            standing.published,
            standing.base,
        )
        self.zone.write_index(self.subject.session, data)

    def _entries(self, landed: Sequence[LandedRef]) -> Iterator[FileEntries]:
        for ref, data in self.zone.read_many(landed):
            stream = ref.place if ref.folder == "streams" else ""
            batch = ref.place if ref.folder == "runs" else ""
            yield entries_of(read_session_data(data, name=ref.key), ref.seq, stream=stream, batch=batch)

    def _fold(self, view: View) -> Published:
        header = view.header
        if header is None:
            return published(view, 0, "")
        self._check_interpretation(header)
        return published(view, header.through_seq, header.input_digest)

    def _check_interpretation(self, found: RoundHeader | Claim) -> None:
        """Raises `ChainRejected` unless a round or claim is of this run's parser, policy and session."""
        for rule, ours, theirs in (
            ("parser", PARSER, found.parser),
            ("policy", self.policy, found.policy),
            ("session", self.subject.session, found.session),
        ):
            if ours != theirs:
                detail = f'the chain has {rule} "{theirs}", this run "{ours}"; one chain is one interpretation'
                raise ChainRejected(self.subject.conversation, None, rule, detail)

    def _publish(self, planned: PlannedRound, index: Index) -> bool:
        """False when another process claimed the number for a different round."""
        header = planned.header
        claim = Claim(
            conversation=header.conversation,
            session=header.session,
            round=header.round,
            previous=header.previous,
            from_seq=header.from_seq,
            through_seq=header.through_seq,
            indexed_seq=index.reach,
            absent=gaps(ref.seq for ref in self.landed),
            digest=planned.digest,
            parser=header.parser,
            policy=header.policy,
        )
        if self.chain.claim(claim).digest != planned.digest:
            return False
        self._write(planned)
        return True

    def _complete(self, claim: Claim) -> None:
        """Make the round that another run claimed, from the evidence it had, which may have landed since we looked."""
        self._check_interpretation(claim)
        self.landed = self._landed()
        landed = without(claim.absent, [ref for ref in self.landed if ref.seq <= claim.indexed_seq])
        # Up to the round before: others may have completed the claim, and gone on, in the meantime.
        head = self._fold(self.chain.fold(claim.round - 1))
        index = extend(EMPTY_INDEX, self._entries(landed))
        expected = (head.round + 1, head.digest, head.through + 1)
        if (claim.round, claim.previous, claim.from_seq) != expected or not head.through <= claim.through_seq:
            detail = "it does not follow the round before it; remove the claim if nobody is publishing"
            raise ClaimUnbuildable(claim.conversation, claim.round, detail)
        found = None
        if claim.through_seq <= max(index.watermark, head.through):
            found = round_at(head, NOTHING, index, claim.through_seq, self.subject)
        if not isinstance(found, PlannedRound) or found.digest != claim.digest:
            detail = (
                f"the landed files up to {claim.indexed_seq} no longer give the claimed digest {claim.digest[:12]}; "
                f"restore the landed files that the claim was made from ({missing_evidence(claim, landed)})"
            )
            raise ClaimUnbuildable(claim.conversation, claim.round, detail)
        self._write(found)

    def _write(self, planned: PlannedRound) -> None:
        header = planned.header
        self.chain.publish(header.round, planned.data, planned.digest)
        self.written += 1
        if self.chain.rounds()[-1].number == header.round:  # not so for a round that had gone missing
            self.chain.write_state(header, planned.digest, format_time(self.options.now))

    def _result(self, standing: _Standing | None) -> SessionAssembly:
        session, conversation, _ = self.subject
        if standing is None:
            return SessionAssembly(session, conversation, 0, 0, "", 0, 0, 0, 0)
        head = standing.published
        still_open = sum(facts.endswith(b'"state":"open"}') for facts in head.unresolved.values())
        return SessionAssembly(
            session,
            conversation,
            self.written,
            head.round,
            head.digest,
            standing.base.node_count + len(head.outline),
            len(head.relations),
            still_open,
            head.through,
        )
