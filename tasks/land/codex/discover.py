"""Which rollouts are a session's, and which copy of each is read (Codex notes, sections 1 and 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from schemas.errors import KeyRefused, ObjectMissing, ObjectTooLarge
from storage.objects import ObjectStat, ObjectStore
from tasks.land.codex.families import Families, parent_named
from tasks.land.codex.kinds import THREAD_ID, TRANSCRIPT, rollout_name
from tasks.land.codex.rows import Members, read_row, text, unmarked
from tasks.land.listing import list_all
from tasks.land.source import Discovery, Sighting, SourceFile

__all__ = ["discover", "in_order", "source_file"]

_FIRST_LOOK, _HEAD = 1 << 16, 1 << 20
_DESCRIBED = 8
"""Generations of threads that one names of those that it was made from."""
_PIECE = 8 << 20
_DEEPEST = 8
"""Folders above a rollout, with a few to spare for those above Codex' own."""

_BAD_FILE = (KeyRefused, ObjectMissing, ObjectTooLarge)


def discover(store: ObjectStore) -> tuple[Discovery, Families]:
    """Every thread's rollouts by session, its main thread first, a thread's parts in the order they began; and what the
    threads say of where they come from."""
    copies: dict[tuple[str, str], list[ObjectStat]] = {}
    listed, unreadable = list_all(store, deepest=_DEEPEST)
    for stat in listed:
        if (name := rollout_name(stat.key)) is not None:
            copies.setdefault((name.thread, name.segment), []).append(stat)
    chosen = {place: _choose(store, stats) for place, stats in copies.items()}
    first_parts = {thread: stats[0].key for (thread, segment), stats in chosen.items() if not segment}
    families = Families(_described(store, first_parts))
    found: dict[str, list[Sighting]] = {}
    for (thread, segment), stats in sorted(chosen.items(), key=_began):
        session = families.session(thread)
        beside = "" if segment else _listed(chosen.get((families.copied_from(thread), "")))
        for stat in stats:
            file = source_file(session, thread, segment, stat.key)
            found.setdefault(session, []).append(Sighting(file, stat, beside=beside))
    for sightings in found.values():
        sightings.sort(key=in_order)
    return Discovery({session: found[session] for session in sorted(found)}, tuple(unreadable)), families


def in_order(sighting: Sighting) -> tuple[bool, str]:
    """What a session's files are sorted by: its main thread's first, then thread by thread."""
    return sighting.file.place != "main", sighting.file.place


def source_file(session: str, thread: str, segment: str, key: str) -> SourceFile:
    """A rollout's place in the session that it belongs to."""
    prefix = f"{TRANSCRIPT}_{segment}" if segment else TRANSCRIPT
    place = "main" if thread == session else thread
    return SourceFile(session, key, TRANSCRIPT, prefix, "streams", place, True)


def _began(part: tuple[tuple[str, str], list[ObjectStat]]) -> tuple[bool, str]:
    """A thread's first part, then the others by when they began, which their files' names say."""
    (_, segment), stats = part
    return bool(segment), min(stat.key.rpartition("/")[2] for stat in stats)


def _choose(store: ObjectStore, stats: list[ObjectStat]) -> list[ObjectStat]:
    """The copy to read, then those that contradict it. One that is the beginning of it says nothing of its own."""
    if len(stats) == 1:
        return stats
    first, *others = sorted((_opened(store, stat) for stat in stats), key=_preference)
    return [first, *(stat for stat in others if not _begins(store, stat, first))]


def _opened(store: ObjectStore, stat: ObjectStat) -> ObjectStat:
    """With the size that it is read with, by which copies are compared."""
    try:
        return store.stat(stat.key) or stat
    except _BAD_FILE:
        return stat


def _preference(stat: ObjectStat) -> tuple[int, bool, bool, str]:
    name = rollout_name(stat.key)
    assert name is not None
    return -stat.size, name.packed, name.archived, stat.key


def _begins(store: ObjectStore, stat: ObjectStat, longer: ObjectStat) -> bool:
    try:
        return all(
            store.read_range(stat.key, start, length) == store.read_range(longer.key, start, length)
            for start in range(0, stat.size, _PIECE)
            for length in (min(_PIECE, stat.size - start),)
        )
    except _BAD_FILE:
        return False


def _described(store: ObjectStore, keys: Mapping[str, str]) -> dict[str, list[Members]]:
    """What each thread's rollout begins with, as `Families` takes it. Where the store is far, many are read at once."""
    if store.read_ahead <= 1:
        return {thread: _descriptions(store, key) for thread, key in keys.items()}
    with ThreadPoolExecutor(store.read_ahead, thread_name_prefix="read-heads") as pool:
        found = pool.map(lambda key: _descriptions(store, key), keys.values())
        return dict(zip(keys, found, strict=True))


def _descriptions(store: ObjectStore, key: str) -> list[Members]:
    """What a rollout's first line says of its thread; where that does not tell its session, what the lines after it say
    of those that it was made from."""
    found: list[Members] = []
    try:
        for length in (_FIRST_LOOK, _HEAD):
            head = store.read_range(key, 0, length)
            found, is_all = _leading(head.split(b"\n", _DESCRIBED)[:-1])
            if is_all or len(head) < length:
                break
    except _BAD_FILE:
        return []
    return found


def _leading(lines: Sequence[bytes]) -> tuple[list[Members], bool]:
    """The descriptions that the lines begin with, as far as they are needed; whether more lines would add none."""
    found: list[Members] = []
    for number, line in enumerate(lines):
        row = read_row(unmarked(line, first=not number), first=not number)
        if row is None or row.kind != "session_meta":
            return found, True
        found.append(row.payload)
        if THREAD_ID.fullmatch(text(row.payload, "session_id")) or not parent_named(row.payload):
            return found, True
    return found, len(lines) == _DESCRIBED


def _listed(stats: list[ObjectStat] | None) -> str:
    """How a rollout was listed from which another thread may have copied; nothing where it was not."""
    return "" if stats is None else f" {stats[0].key} {stats[0].size} {stats[0].etag}"
