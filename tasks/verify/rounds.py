"""The six checks of every round (specification, section 9; Session Flow, "Reading it").

1. no round is missing before it
2. `previous` is the digest of the round before
3. it passes every rule of its format
4. `from_seq` is the previous `through_seq` plus one
5. every landed sequence it consumed is there
6. the input digest recomputed from those files is its header's

A chain whose newest rounds are gone looks whole; the claims that they were made from give that away.

A round that fails 3 leaves nothing to compare the next with, so that one starts anew. Check 6 is made only of a round
without another problem: it would only repeat it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from schemas.errors import RejectedData, StoreError
from schemas.input_digest import input_digest
from schemas.session_flow import RoundHeader
from storage.chains import ChainStore, RoundFile
from tasks.verify.problems import Problem, rejection, unreadable

__all__ = ["check_claims", "check_rounds"]

MOST_MISSING = 1000
"""Missing sequences listed one by one, a round; a header may claim 2^64 of them."""


@dataclass(frozen=True, slots=True)
class _Before:
    """What a round is compared with: the round before, or the empty chain."""

    digest: str = ""
    through_seq: int = 0
    input_digest: str = ""


@dataclass(slots=True)
class _Walk:
    """The chain up to here. `before` is None after a round that cannot be trusted."""

    landed: Mapping[int, Sequence[str]]
    sequences: list[int]
    number: int = 0
    before: _Before | None = field(default_factory=_Before)
    first: RoundHeader | None = None


def check_rounds(chain: ChainStore, round_files: list[RoundFile], landed: Mapping[int, Sequence[str]]) -> list[Problem]:
    """Problems of the chain. `landed` maps a sequence to the hex SHA-256 of each file that has it."""
    walk = _Walk(landed, sorted(landed))
    problems: list[Problem] = []
    for round_file, data in chain.reads(round_files):
        problems += _check_place(walk, round_file)
        try:
            header, digest = chain.check(round_file, data())
        except StoreError as error:
            problems.append(unreadable(round_file.key, error))
            walk.before = None
        except RejectedData as error:
            problems.append(rejection(round_file.key, error))
            walk.before = None
        else:
            problems += _check_header(walk, chain.conversation, round_file, header)
            walk.before = _Before(digest, header.through_seq, header.input_digest)
    return problems


def check_claims(chain: ChainStore, round_files: list[RoundFile], claimed: Iterable[int]) -> list[Problem]:
    """The end of the chain is gone: claims behind its last round, of those in ``claimed``, which stood without a round
    before the chain was read, that stand without one still. What is missing before, its rounds themselves say."""
    head = max((each.number for each in round_files), default=0)
    before = {number for number in claimed if number > head}
    missing = sorted(before.intersection(chain.rounds_and_claims()[1])) if before else []
    if not missing:
        return []
    which = f"round {missing[0]}" if len(missing) == 1 else f"rounds {missing[0]} to {missing[-1]}"
    detail = f"{which} claimed, and not there; `sessionmill assemble` makes a claimed round again, to the same bytes"
    return [Problem(chain.claim_key(missing[0]), None, "missing_round", detail)]


def _check_place(walk: _Walk, round_file: RoundFile) -> list[Problem]:
    number, expected = round_file.number, walk.number + 1
    walk.number = max(number, walk.number)
    if number == expected:
        return []
    walk.before = None
    if number < expected:
        return [Problem(round_file.key, None, "duplicate_round", f"there is another round {number}")]
    which = f"round {expected} is" if number == expected + 1 else f"rounds {expected} to {number - 1} are"
    return [Problem(round_file.key, None, "missing_round", f"{which} missing before round {number}")]


def _check_header(walk: _Walk, conversation: str, round_file: RoundFile, header: RoundHeader) -> list[Problem]:
    found = list(_identity(walk, conversation, header))
    if walk.before:
        found += _link(walk.before, header)
    found += _missing_landed(walk.sequences, header.from_seq, header.through_seq)
    if walk.before and not found:
        digests = _digests(walk, header.from_seq, header.through_seq)
        if input_digest(walk.before.input_digest, digests) != header.input_digest:
            found.append(("input_digest", "the input digest does not match the landed files"))
    return [Problem(round_file.key, None, rule, f"round {header.round}: {detail}") for rule, detail in found]


def _identity(walk: _Walk, conversation: str, header: RoundHeader) -> Iterable[tuple[str, str]]:
    """A chain is one interpretation of one session; a fold refuses any other round."""
    first = walk.first = walk.first or header
    if header.conversation != conversation:
        yield "conversation", f"belongs to conversation {header.conversation!r}, the chain to {conversation!r}"
    if header.session != first.session:
        yield "session", f"carries session {header.session!r}, the chain {first.session!r}"
    if header.parser != first.parser:
        yield "parser", f"was produced by parser {header.parser!r}, the chain by {first.parser!r}"
    if header.policy != first.policy:
        yield "policy", f"was produced under policy {header.policy!r}, the chain under {first.policy!r}"


def _link(before: _Before, header: RoundHeader) -> Iterable[tuple[str, str]]:
    if header.previous != before.digest:
        yield "previous", f"names previous {header.previous[:12]}, the round before is {before.digest[:12]}"
    if header.from_seq != before.through_seq + 1:
        yield "from_seq", f"starts at seq {header.from_seq}, the round before ended at {before.through_seq}"


def _missing_landed(sequences: list[int], first: int, last: int) -> Iterable[tuple[str, str]]:
    start, end = bisect_left(sequences, first), bisect_left(sequences, last + 1)
    missing = last + 1 - first - (end - start)
    listed = 0
    expected = first
    for present in (*sequences[start:end], last + 1):
        while expected < present and listed < MOST_MISSING:
            yield "missing_landed", f"landed file seq {expected} is missing"
            expected += 1
            listed += 1
        expected = present + 1
    if missing > listed:
        yield "missing_landed", f"{missing - listed} more landed files up to seq {last} are missing"


def _digests(walk: _Walk, first: int, last: int) -> Iterable[str]:
    start, end = bisect_left(walk.sequences, first), bisect_left(walk.sequences, last + 1)
    for sequence in walk.sequences[start:end]:
        yield from walk.landed[sequence]
