"""Which rollouts are a session's, and which copy of each is read (Codex notes, sections 1 and 9)."""

from __future__ import annotations

from schemas.errors import KeyRefused, ObjectMissing, ObjectTooLarge, StoreError
from storage.objects import ObjectStat, ObjectStore
from tasks.land.codex.kinds import THREAD_ID, TRANSCRIPT, rollout_name
from tasks.land.codex.rows import Members, read_row, text, within
from tasks.land.source import Discovery, Sighting, SourceFile

__all__ = ["discover", "source_file"]

_HEAD = 1 << 20
_PIECE = 8 << 20
_DEEPEST = 8
"""Folders above a rollout, with a few to spare for those above Codex' own."""

_BAD_FILE = (KeyRefused, ObjectMissing, ObjectTooLarge)


def discover(store: ObjectStore) -> Discovery:
    """Every thread's rollouts by session, its main thread first, a thread's parts in the order they began."""
    copies: dict[tuple[str, str], list[ObjectStat]] = {}
    unreadable: list[tuple[str, str]] = []
    try:
        listed = store.list("")
    except StoreError:
        listed = _walk(store, "", 0, unreadable)
    for stat in listed:
        if (name := rollout_name(stat.key)) is not None:
            copies.setdefault((name.thread, name.segment), []).append(stat)
    chosen = {place: _choose(store, stats) for place, stats in copies.items()}
    metas = {thread: _meta(store, stats[0].key) for (thread, segment), stats in chosen.items() if not segment}
    found: dict[str, list[Sighting]] = {}
    for (thread, segment), stats in chosen.items():
        session = _session(thread, metas)
        for stat in stats:
            file = source_file(session, thread, segment, stat.key)
            found.setdefault(session, []).append(Sighting(file, stat))
    for sightings in found.values():
        sightings.sort(key=_order)
    return Discovery({session: found[session] for session in sorted(found)}, tuple(unreadable))


def source_file(session: str, thread: str, segment: str, key: str) -> SourceFile:
    """A rollout's place in the session that it belongs to."""
    prefix = f"{TRANSCRIPT}_{segment}" if segment else TRANSCRIPT
    place = "main" if thread == session else thread
    return SourceFile(session, key, TRANSCRIPT, prefix, "streams", place, True)


def _order(sighting: Sighting) -> tuple[bool, str, str]:
    file = sighting.file
    return file.place != "main", file.place, file.prefix


def _choose(store: ObjectStore, stats: list[ObjectStat]) -> list[ObjectStat]:
    """The copy to read, then those that contradict it. One that is the beginning of it says nothing of its own."""
    first, *others = sorted(stats, key=_preference)
    return [first, *(stat for stat in others if not _begins(store, stat, first))]


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


def _meta(store: ObjectStore, key: str) -> Members:
    """What a rollout's first line says of its thread."""
    try:
        line, newline, _ = store.read_range(key, 0, _HEAD).partition(b"\n")
    except _BAD_FILE:
        return {}
    row = read_row(line, first=True) if newline else None
    return row.payload if row is not None and row.kind == "session_meta" else {}


def _session(thread: str, metas: dict[str, Members]) -> str:
    """The root of a thread's family: its own word for it, else what its parents lead to."""
    seen = {thread}
    while True:
        meta = metas.get(thread, {})
        if THREAD_ID.fullmatch(named := text(meta, "session_id")):
            return named
        parent = _parent(meta)
        if not THREAD_ID.fullmatch(parent) or parent in seen:
            return thread
        seen.add(parent)
        thread = parent


def _parent(meta: Members) -> str:
    spawn = within(within(within(meta, "source"), "subagent"), "thread_spawn")
    return text(meta, "parent_thread_id") or text(spawn, "parent_thread_id")


def _walk(store: ObjectStore, prefix: str, depth: int, unreadable: list[tuple[str, str]]) -> list[ObjectStat]:
    """Folder by folder, so that one closed folder hides no other."""
    try:
        folders, stats = store.children(prefix)
    except StoreError as error:
        unreadable.append((prefix, str(error)))
        return []
    if depth < _DEEPEST:
        for folder in folders:
            stats += _walk(store, f"{prefix}{folder}/", depth + 1, unreadable)
    return stats
