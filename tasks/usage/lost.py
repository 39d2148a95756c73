"""What a usage data set has counted and a zone does not have any more: landed files, call facts beside them, and
the newest rounds of chains.

Chains are verified from their files alone, so one that loses its newest rounds is still a good chain, only shorter; the
data set remembers the head that it saw (DESIGN.md, rule 1: evidence is never taken back).
"""

from __future__ import annotations

from collections.abc import Iterable

from storage.objects import ObjectStore
from storage.usage_dataset import newest_manifest
from storage.usage_marks import SessionMark, read_marks
from storage.usage_writing import read_state
from storage.zone import Zone
from tasks.usage.evidence import BAD_DATA, CALLS_LOST, evidence_of
from tasks.usage.marking import chain_problem
from tasks.usage.outcome import UsageProblem

__all__ = ["counted_sessions", "lost_evidence"]


def counted_sessions(usage: ObjectStore) -> dict[str, SessionMark]:
    """How far each session is counted in the data set; empty without one. Raises `UsageRejected`, and `ObjectMissing`
    when the state it names is gone."""
    manifest = newest_manifest(usage)
    if manifest is None or manifest.sessions is None:
        return {}
    return read_marks(read_state(usage, manifest.sessions), name=manifest.sessions.key)


def lost_evidence(zone: Zone, marks: Iterable[SessionMark]) -> list[UsageProblem]:
    """What each counted session has less than was counted."""
    found = []
    for mark in marks:
        try:
            found += _lost(zone, mark)
        except BAD_DATA as error:
            found.append(UsageProblem.of(mark.session, error))
    return found


def _lost(zone: Zone, mark: SessionMark) -> list[UsageProblem]:
    found = []
    rounds = zone.chain(mark.session).rounds()
    number, digest12 = (rounds[-1].number, rounds[-1].digest12) if rounds else (0, "")
    if number > mark.round:
        same = [each.digest12 for each in rounds if each.number == mark.round]
        number, digest12 = mark.round, same[0] if same else ""
    if (problem := chain_problem(mark, number, digest12, mark.session)) is not None:
        found.append(problem)
    there = SessionMark(session=mark.session).with_counted(ref.seq for ref in zone.landed_files(mark.session))
    for first, last in mark.counted:
        missing = next((seq for seq in range(first, last + 1) if not there.has(seq)), None)
        if missing is not None:
            detail = f"landed file {missing} was counted and is not in the zone any more"
            found.append(UsageProblem(session=mark.session, file=mark.session, rule="landed_lost", detail=detail))
            break
    whole = evidence_of(zone, mark.session, SessionMark(session=mark.session))
    return [*found, *(problem for problem in whole.problems if problem.rule == CALLS_LOST)]
