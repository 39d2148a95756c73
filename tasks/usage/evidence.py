"""Which landed evidence of a session is not counted yet, and what it reports.

Beside a file that this project landed stand its companion's call facts, or nothing when none of its records has usage;
of any other file the records themselves are read. So they are where a companion is missing, which the claim tells: that
is named every time, and once it is back the session is counted anew. A file that cannot be read is named, and tried
again every time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from schemas.errors import KeyRefused, ObjectMissing, ObjectTooLarge, RejectedData
from storage.keys import escape_id, unescape_id
from storage.landings import CALLS, LandingLog, calls_key
from storage.objects import ObjectStat
from storage.usage_marks import SessionMark
from storage.zone import LandedRef, Zone
from tasks.usage.candidates import MAIN, LandedPlace
from tasks.usage.generations import generations
from tasks.usage.outcome import UsageProblem

__all__ = ["BAD_DATA", "CALLS_LOST", "SessionEvidence", "Wanted", "evidence_of", "look_at"]

BAD_DATA = (RejectedData, KeyRefused, ObjectMissing, ObjectTooLarge)
"""What is wrong with one session or file, and stops only that."""

CALLS_LOST = "calls_lost"
"""The rule of a companion that is missing."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An object to read, and where what it reports belongs. Field names as `storage.ahead` wants them."""

    key: str
    size: int
    place: LandedPlace


@dataclass(slots=True)
class SessionEvidence:
    """What a session has now: all landed files, those not counted yet and the objects to read for them, the head of its
    chain by its listing (0 and empty without one), and what is wrong with it. `is_anew` says that something which had
    been counted counts no more, so that all of the session is counted again. `without_calls` are the sequences whose
    companion is missing."""

    session: str
    landed: list[LandedRef] = field(default_factory=list)
    wanted: list[Wanted] = field(default_factory=list)
    new: list[LandedRef] = field(default_factory=list)
    round: int = 0
    digest12: str = ""
    problems: list[UsageProblem] = field(default_factory=list)
    is_anew: bool = False
    without_calls: set[int] = field(default_factory=set)


def look_at(zone: Zone, sessions: Iterable[str], marks: dict[str, SessionMark]) -> Iterator[SessionEvidence]:
    """`evidence_of` each session, in the order given, several at a time where the store is far."""

    def look(session: str) -> SessionEvidence:
        return evidence_of(zone, session, marks.get(session) or SessionMark(session=session))

    if zone.store.read_ahead <= 1:
        yield from map(look, sessions)
        return
    with ThreadPoolExecutor(zone.store.read_ahead, thread_name_prefix="look") as pool:
        yield from pool.map(look, sessions)


def evidence_of(zone: Zone, session: str, mark: SessionMark) -> SessionEvidence:
    """What `session` has beyond its mark. Bad data is an outcome; failures of the store are raised."""
    found = SessionEvidence(session, without_calls=set(mark.without_calls))
    try:
        session_id = unescape_id(session)
    except KeyRefused:
        session_id = session
    try:
        session.encode()
        found.landed = zone.landed_files(session)
        found.new = [ref for ref in found.landed if not mark.has(ref.seq)]
        if found.new or mark.without_calls:
            calls = zone.store.children(f"{CALLS}{escape_id(session)}/")[1]
            companions = _companions(calls)
            if any(seq in companions for seq in mark.without_calls):
                mark, found.is_anew = mark.forgotten(), True
            found.new, silent, has_newer = generations(found.landed, mark, calls)
            if has_newer:
                mark, found.is_anew = mark.forgotten(), True
            counting = [ref for ref in found.new if ref.seq not in silent]
            log = LandingLog(zone, session)
            claims = frozenset(log.sequences())
            found.without_calls = {ref.seq for ref in counting}.union(mark.without_calls) & claims - companions.keys()
            _keep_those_lost(found, log)
            for ref in counting:
                place = LandedPlace(session, session_id, ref.key, ref.seq, ref.place or MAIN, True, False)
                if ref.seq in companions:
                    found.wanted.append(Wanted(*companions[ref.seq], place))
                elif ref.seq in found.without_calls or ref.seq not in claims:
                    place = replace(place, landed_here=ref.seq in claims, by_records=True)
                    found.wanted.append(Wanted(ref.key, ref.size, place))
        rounds = zone.chain(session).rounds()
        if rounds:
            found.round, found.digest12 = rounds[-1].number, rounds[-1].digest12
    except (*BAD_DATA, UnicodeEncodeError) as error:
        found.problems.append(UsageProblem.of(session, error))
    return found


def _keep_those_lost(found: SessionEvidence, log: LandingLog) -> None:
    """Of `without_calls` those whose claim tells of a companion, or does not read. Each is a problem."""
    for seq in sorted(found.without_calls):
        try:
            promise = log.read(seq).promise
        except BAD_DATA as error:
            found.problems.append(UsageProblem.of(found.session, error))
            continue
        if not promise.calls_size:
            found.without_calls.discard(seq)
            continue
        detail = (
            f"it is missing ({promise.calls_size} bytes, unpacked); put it back from a copy of the zone, and the next "
        )
        detail += f"run counts by it; without it the records of {promise.key} count, which say less"
        key = calls_key(found.session, seq)
        found.problems.append(UsageProblem(session=found.session, file=key, rule=CALLS_LOST, detail=detail))


def _companions(stats: Iterable[ObjectStat]) -> dict[int, tuple[str, int]]:
    """Key and size of each companion, by sequence."""
    found = {}
    for stat in stats:
        number = stat.key.rpartition("/")[2].removesuffix(".jsonl.zst")
        if number.isascii() and number.isdigit():
            found[int(number)] = (stat.key, stat.size)
    return found
