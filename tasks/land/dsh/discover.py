"""Which logs are a session's, and which of them is read (DSH specification, sections 1 and 13; version 4: section 1).

A log is known by the last three parts of its key, wherever its root lies. Of several generations only the highest is
the session. What lies where its own program would not have it is a session's all the same, so that it is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from schemas.dsh import LogHeader
from schemas.dsh_root import LogPlace, check_place, place_of, project_of
from schemas.errors import LogRejected, RejectedData, StoreError, StoreUnavailable
from storage.objects import ObjectStat
from tasks.land.dsh.databases import DATABASE, Kept
from tasks.land.dsh.family import HasLanded, Member, families
from tasks.land.dsh.heads import id_of_directory
from tasks.land.dsh.kinds import JOURNAL, MAIN, SIDECAR, TRANSCRIPT, journal_key, name_of, sidecar_key
from tasks.land.source import Sighting, SourceFile

__all__ = ["Found", "Parent", "Reading", "find_sessions", "log_file"]

_PROJECT = re.compile(r"--.*--|_no-cwd", re.DOTALL)
_FLAT_LOG = re.compile(r"(.+)\.jsonl(?:\.zstd)?", re.DOTALL)


class Reading(Protocol):
    """How logs are looked into."""

    def header(self, place: LogPlace, stat: ObjectStat) -> LogHeader | None:
        """What a log's first line says; None where it cannot be read."""

    def kept(self, stat: ObjectStat) -> Iterable[Kept]:
        """The sessions of a database. Raises `RejectedData`, or `StoreError` where it cannot be read."""

    def length(self, stat: ObjectStat) -> int:
        """How many bytes of text a log has; -1 for one that is refused."""

    def begins(self, stat: ObjectStat, longer: ObjectStat) -> bool:
        """Whether a log's text is the beginning of another's, neither of them refused."""


@dataclass(frozen=True, slots=True)
class Parent:
    """The log that a sub-agent's was delegated from, and the stream that it lands as."""

    stat: ObjectStat
    stream: str


@dataclass(slots=True)
class Found:
    """What is found: each session's files in landing order, the logs that are refused before they are read, and the
    parents of sub-agents, by the keys of their logs."""

    sessions: dict[str, list[Sighting]] = field(default_factory=dict)
    refused: dict[str, LogRejected] = field(default_factory=dict)
    parents: dict[str, Parent] = field(default_factory=dict)
    kept: dict[str, ObjectStat] = field(default_factory=dict)
    """The logs that are in databases, by the keys that they have here."""
    has_orphans: bool = False
    """Whether there are sub-agents without a parent."""
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    """Databases of which nothing can be read (key, reason)."""

    def refuse(self, key: str, rule: str, detail: str) -> None:
        self.refused.setdefault(key, LogRejected(key, None, rule, detail))


def find_sessions(
    stats: Iterable[ObjectStat], reading: Reading, has_landed: HasLanded = lambda parent, child: False
) -> Found:
    """The sessions among the objects of a source. `has_landed` is asked about sub-agents without a parent."""
    found = Found()
    listed = sorted(stats, key=lambda stat: stat.key.encode("utf-8", "surrogateescape"))
    members = [_member(place, stat, reading, found) for place, stat in _latest(listed, found)]
    members += [member for stat in listed if _is_database(stat.key) for member in _kept(stat, reading, found)]
    copies: dict[str, list[Member]] = {}
    for member in members:
        copies.setdefault(member.id, []).append(member)
    standing = {session: _choose(several, reading, found) for session, several in copies.items()}
    for root, family in sorted(families((chosen[0] for chosen in standing.values()), has_landed).items()):
        for member in family:
            found.has_orphans |= member.parent is not None and member.parent not in standing
            _add(member, name_of(root), MAIN if member.id == root else name_of(member.id), standing, found)
    _add_flat_logs(listed, found)
    return found


def log_file(session: str, stream: str, key: str) -> SourceFile:
    """A log's place in the session that it belongs to."""
    return SourceFile(session, key, TRANSCRIPT, TRANSCRIPT, "streams", stream, True)


def _add(member: Member, session: str, stream: str, standing: Mapping[str, list[Member]], found: Found) -> None:
    """Add a log, what is made of it, and copies that say otherwise."""
    sightings = found.sessions.setdefault(session, [])
    sightings += [Sighting(log_file(session, stream, each.place.key), each.stat) for each in standing[member.id]]
    if stream == MAIN or member.parent is None or member.parent not in standing:
        return
    parent = standing[member.parent][0]
    main = name_of(parent.id) if name_of(parent.id) != session else MAIN
    found.parents[member.place.key] = Parent(parent.stat, main)
    sidecar, journal = sidecar_key(member.place.key), journal_key(member.place.key)
    for made in (
        SourceFile(session, sidecar, SIDECAR, "meta", "streams", stream, False),
        SourceFile(session, journal, JOURNAL, "journal", "runs", stream, False),
    ):
        # It changes with either log.
        etag = f"{member.stat.etag}+{parent.stat.etag}"
        sightings.append(Sighting(made, replace(member.stat, key=made.key, size=0, etag=etag)))


def _latest(listed: Iterable[ObjectStat], found: Found) -> list[tuple[LogPlace, ObjectStat]]:
    """One log for each session directory, in order of keys."""
    directories: dict[str, list[tuple[LogPlace, ObjectStat]]] = {}
    for stat in listed:
        if (place := place_of(stat.key)) is not None:
            directories.setdefault(stat.key.rpartition("/")[0], []).append((place, stat))
    latest = [max(logs, key=lambda log: (log[0].generation, log[0].compressed)) for logs in directories.values()]
    compressed = {_root(place.key) for place, _ in latest if place.compressed}
    for (place, _), logs in zip(latest, directories.values(), strict=True):
        if len({each.compressed for each, _ in logs}) > 1:
            found.refuse(place.key, "encoding", "its directory has compressed and plain logs")
        elif not place.compressed and _root(place.key) in compressed:
            found.refuse(place.key, "encoding", "it is plain, in a root whose logs are compressed")
    return latest


def _member(place: LogPlace, stat: ObjectStat, reading: Reading, found: Found) -> Member:
    header = reading.header(place, stat)
    if header is not None and place.session:
        try:
            check_place(header, place if place.project else replace(place, project=project_of(header.cwd)))
        except LogRejected as refusal:
            found.refused.setdefault(place.key, refusal)
            header = None
    identity = id_of_directory(place.session or "session") if header is None else header.id
    return Member(place, stat, identity, header)


def _is_database(key: str) -> bool:
    return key.rpartition("/")[2] == DATABASE


def _kept(stat: ObjectStat, reading: Reading, found: Found) -> list[Member]:
    """The sessions of a database, each as a log of its own."""
    members = []
    try:
        for key, header, revision in reading.kept(stat):
            found.kept[key] = replace(stat, key=key, size=0, etag=revision)
            members.append(Member(LogPlace(key, "", "", 0, False), found.kept[key], header.id, header))
    except (RejectedData, StoreError, StoreUnavailable) as error:
        found.unreadable.append((stat.key, str(error)))
    return members


def _choose(several: list[Member], reading: Reading, found: Found) -> list[Member]:
    """The log to read of those that are one session's, then those that contradict it."""
    if len(several) == 1:
        return several
    for member in several:
        others = [other for other in several if other is not member and other.root == member.root]
        if others:
            detail = f"session {member.id!r} is there more than once: also as {others[0].place.key}"
            found.refuse(member.place.key, "duplicate_id", detail)
    lengths = {member.place.key: reading.length(member.stat) for member in several}

    def preference(member: Member) -> tuple[bool, int, str]:
        return member.place.key in found.refused, -lengths[member.place.key], member.place.key

    first, *others = sorted(several, key=preference)
    return [first, *(each for each in others if not _says_nothing_more(each, first, lengths, reading, found))]


def _says_nothing_more(
    member: Member, first: Member, lengths: Mapping[str, int], reading: Reading, found: Found
) -> bool:
    if lengths[member.place.key] < 0 or member.place.key in found.refused:
        return False
    return reading.begins(member.stat, first.stat)


def _add_flat_logs(listed: Iterable[ObjectStat], found: Found) -> None:
    """A log without a directory: a layout no longer in use."""
    for stat in listed:
        folder, _, name = stat.key.rpartition("/")
        flat = _FLAT_LOG.fullmatch(name)
        if flat is None or place_of(stat.key) is not None or not _PROJECT.fullmatch(folder.rpartition("/")[2]):
            continue
        session = name_of(id_of_directory(flat[1]))
        file = replace(log_file(session, MAIN, stat.key), prefix="flat")
        found.refuse(stat.key, "layout", "a log without a directory of its own, a layout no longer in use")
        found.sessions.setdefault(session, []).append(Sighting(file, stat))


def _root(key: str) -> str:
    return "/".join(key.split("/")[:-3])
