"""Which rollouts are a session's, and which copy of each is read (Codex notes, sections 1 and 9)."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from schemas.errors import KeyRefused, ObjectMissing, ObjectTooLarge
from storage.objects import ObjectStat, ObjectStore
from tasks.land.codex.kinds import THREAD_ID, TRANSCRIPT, rollout_name
from tasks.land.codex.rows import Members, read_row, text, unmarked, within
from tasks.land.listing import list_all
from tasks.land.source import Discovery, Sighting, SourceFile

__all__ = ["discover", "parent_named", "source_file"]

_FIRST_LOOK, _HEAD = 1 << 16, 1 << 20
_PIECE = 8 << 20
_DEEPEST = 8
"""Folders above a rollout, with a few to spare for those above Codex' own."""

_BAD_FILE = (KeyRefused, ObjectMissing, ObjectTooLarge)


def discover(store: ObjectStore) -> Discovery:
    """Every thread's rollouts by session, its main thread first, a thread's parts in the order they began."""
    copies: dict[tuple[str, str], list[ObjectStat]] = {}
    listed, unreadable = list_all(store, deepest=_DEEPEST)
    for stat in listed:
        if (name := rollout_name(stat.key)) is not None:
            copies.setdefault((name.thread, name.segment), []).append(stat)
    chosen = {place: _choose(store, stats) for place, stats in copies.items()}
    metas = _metas(store, {thread: stats[0].key for (thread, segment), stats in chosen.items() if not segment})
    found: dict[str, list[Sighting]] = {}
    for (thread, segment), stats in sorted(chosen.items(), key=_began):
        session = _session(thread, metas)
        beside = "" if segment else _copied_from(metas.get(thread, {}), chosen)
        for stat in stats:
            file = source_file(session, thread, segment, stat.key)
            found.setdefault(session, []).append(Sighting(file, stat, beside=beside))
    for sightings in found.values():
        sightings.sort(key=lambda sighting: (sighting.file.place != "main", sighting.file.place))
    return Discovery({session: found[session] for session in sorted(found)}, tuple(unreadable))


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


def _metas(store: ObjectStore, keys: Mapping[str, str]) -> dict[str, Members]:
    """What each thread's first line says of it. Where the store is far, many are read at once."""
    if store.read_ahead <= 1:
        return {thread: _meta(store, key) for thread, key in keys.items()}
    with ThreadPoolExecutor(store.read_ahead, thread_name_prefix="read-heads") as pool:
        found = pool.map(lambda key: _meta(store, key), keys.values())
        return dict(zip(keys, found, strict=True))


def _meta(store: ObjectStore, key: str) -> Members:
    """What a rollout's first line says of its thread."""
    line = newline = b""
    try:
        for length in (_FIRST_LOOK, _HEAD):
            line, newline, _ = (head := store.read_range(key, 0, length)).partition(b"\n")
            if newline or len(head) < length:
                break
    except _BAD_FILE:
        return {}
    row = read_row(unmarked(line, first=True), first=True) if newline else None
    return row.payload if row is not None and row.kind == "session_meta" else {}


def _session(thread: str, metas: dict[str, Members]) -> str:
    """The root of a thread's family: its own word for it, else what its parents lead to."""
    seen = {thread}
    while True:
        meta = metas.get(thread, {})
        if THREAD_ID.fullmatch(named := text(meta, "session_id")):
            return named
        parent = parent_named(meta)
        if not THREAD_ID.fullmatch(parent) or parent in seen:
            return thread
        seen.add(parent)
        thread = parent


def _copied_from(meta: Members, chosen: Mapping[tuple[str, str], list[ObjectStat]]) -> str:
    """How the rollout was listed that an old client may have copied lines from; nothing where there is none."""
    if isinstance(meta.get("history_base"), dict):
        return ""
    stats = chosen.get((text(meta, "forked_from_id") or parent_named(meta), ""))
    return "" if stats is None else f" {stats[0].key} {stats[0].size} {stats[0].etag}"


def parent_named(meta: Members) -> str:
    """The thread that delegated to the one that describes itself so, empty for none."""
    spawn = within(within(within(meta, "source"), "subagent"), "thread_spawn")
    return text(meta, "parent_thread_id") or text(spawn, "parent_thread_id")
