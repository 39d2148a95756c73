"""What a session's mark becomes with its new evidence: what is counted, its times, and the head of its chain.

A chain never gets shorter: a head older than the one that was seen, or another of the same number, is a problem, and
what was seen stays on record (DESIGN.md, rule 1).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import TypeAlias

from msgspec.structs import replace

from schemas.errors import RejectedData
from schemas.times import NO_TIME, held_time
from storage.usage_marks import SessionMark
from storage.zone import Zone
from tasks.usage.evidence import BAD_DATA, SessionEvidence
from tasks.usage.outcome import UsageProblem
from tasks.usage.reported import header_of, times_in

__all__ = ["chain_problem", "marked", "with_span"]

_NANO = 1_000_000_000
_EPOCH = "1970-01-01"

Tell: TypeAlias = Callable[[UsageProblem], None]
Span: TypeAlias = tuple[int | None, int | None, bool]
"""First and last time of new records, in microseconds, and whether any has none."""


def marked(zone: Zone, found: SessionEvidence, mark: SessionMark, unread: Collection[int], tell: Tell) -> SessionMark:
    """`mark` with all that was found counted, but for the sequences `unread`, and with the chain's head."""
    after = mark.with_counted(ref.seq for ref in found.new if ref.seq not in unread)
    after = replace(after, without_calls=tuple(sorted(found.without_calls - set(unread))))
    if (problem := chain_problem(mark, found.round, found.digest12, found.session)) is not None:
        tell(problem)
    elif found.round > mark.round:
        chain = zone.chain(found.session)
        head = next(each for each in reversed(chain.rounds()) if each.number == found.round)
        try:
            after = replace(after, round=found.round, digest=chain.check(head, chain.read(head))[1])
        except RejectedData as error:
            tell(UsageProblem.of(found.session, error))
    return after


def with_span(zone: Zone, found: SessionEvidence, mark: SessionMark, span: Span) -> SessionMark:
    """`mark` with the first and last time of its new records, and with a day for those that have none."""
    first, last, untimed = span
    after = replace(
        mark,
        first=min((time for time in (mark.first, first) if time is not None), default=None),
        last=max((time for time in (mark.last, last) if time is not None), default=None),
        untimed=mark.untimed or untimed,
    )
    return replace(after, day=_first_day(zone, found)) if after.untimed and found.new else after


def chain_problem(mark: SessionMark, round: int, digest12: str, session: str) -> UsageProblem | None:
    """What is wrong when a chain that was seen as `mark` says has this head now."""
    if round < mark.round:
        rule, detail = "chain_shortened", f"its chain ends at round {round}, and round {mark.round} had been there"
    elif round == mark.round and round and digest12 != mark.digest[:12]:
        rule = "chain_replaced"
        detail = f"round {round} of its chain is {digest12}, and was {mark.digest[:12]}"
    else:
        return None
    return UsageProblem(session=session, file=f"_conversations/{session}/rounds", rule=rule, detail=detail)


def _first_day(zone: Zone, found: SessionEvidence) -> str:
    """The UTC day of the session's first record that has a time; else of its first landing."""
    first: int | None = None
    landed: int | None = None
    for ref, read in zone.reads(found.landed):
        try:
            data = read()
            at = held_time(header_of(ref.key, data).at)
        except BAD_DATA:
            continue
        landed = landed or at
        times = [time for text in set(times_in(data)) if (time := held_time(text)) != NO_TIME]
        first = min([*times, first] if first is not None else times, default=None)
    return _day(first or landed or NO_TIME)


def _day(time: int) -> str:
    return datetime.fromtimestamp(time // _NANO, UTC).date().isoformat() if time else _EPOCH
