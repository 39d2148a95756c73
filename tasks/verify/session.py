"""One session, verified: its landed files and its chain, each landed file read once (specification, section 9)."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from schemas.errors import RejectedData, StoreError
from schemas.session_data import LandedFile, read_session_data
from storage.zone import LandedRef, Zone
from tasks.verify.bodies import BodyCheck
from tasks.verify.continuity import START, Position, check_cursor, check_records, is_continuous
from tasks.verify.problems import Problem, SessionVerification, rejection, unreadable
from tasks.verify.rounds import check_claims, check_rounds

__all__ = ["verifiable", "verify_session"]

Source = tuple[str, str, str]


def verifiable(zone: Zone) -> list[str]:
    """Every name there is something to verify under: sessions, and conversations whose session is gone; sorted."""
    return sorted({*zone.sessions(), *zone.conversations()})


def verify_session(zone: Zone, session: str) -> SessionVerification:
    """Check every landed file of the session and every round of its conversation.

    Bad data is a `Problem`, never an error, and never stops the rest. Raises `StoreUnavailable` and
    `ConfigurationRejected` only: then the store did not let us look.
    """
    problems: list[Problem] = []
    try:
        refs, cursors = zone.landed_files_and_cursors(session)
        chain = zone.chain(session)
        round_files, claimed = chain.rounds_and_claims()
    except StoreError as error:
        return SessionVerification(session, 0, 0, 0, 0, [unreadable(session, error)])
    evidence = _read_landed(zone, refs, problems)
    for cursor in cursors:
        if is_continuous(cursor):
            problems += check_cursor(cursor, evidence.positions[cursor.folder, cursor.place, cursor.prefix])
    problems += check_rounds(chain, round_files, evidence.digests)
    problems += check_claims(chain, round_files, claimed)
    streams = {(ref.folder, ref.place) for ref in refs if ref.place}
    return SessionVerification(session, len(streams), evidence.records, evidence.relanded, len(round_files), problems)


@dataclass(slots=True)
class _Evidence:
    """What reading landed files establishes: per sequence the digest of each file that has it, per source its end."""

    digests: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    positions: dict[Source, Position | None] = field(default_factory=lambda: defaultdict(lambda: START))
    records: int = 0
    relanded: int = 0


def _read_landed(zone: Zone, refs: list[LandedRef], problems: list[Problem]) -> _Evidence:
    evidence = _Evidence()
    bodies = BodyCheck()
    for ref, data in zone.reads(refs):
        source = (ref.folder, ref.place, ref.prefix)
        landed = _open(ref, data, evidence.digests[ref.seq], problems)
        if landed is None:
            evidence.positions[source] = None
            continue
        evidence.records += len(landed.records)
        if is_continuous(ref):
            end, relanded, gaps = check_records(ref.key, landed.records, evidence.positions[source])
            evidence.positions[source] = end
            evidence.relanded += relanded
            problems += gaps
        elif ref.folder == "provider_body":
            problems += bodies.check_records(ref.key, landed.records)
    return evidence


def _open(ref: LandedRef, data: Callable[[], bytes], digests: list[str], problems: list[Problem]) -> LandedFile | None:
    """One landed file, or None with its problem. A rejected one is evidence all the same, so its digest counts."""
    try:
        content = data()
    except StoreError as error:
        problems.append(unreadable(ref.key, error))
        return None
    try:
        landed = read_session_data(content, name=ref.key)
    except RejectedData as error:
        problems.append(rejection(ref.key, error))
        digests.append(hashlib.sha256(content).hexdigest())
        return None
    digests.append(landed.digest)
    return landed
