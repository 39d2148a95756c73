"""The threads that others were made from, as far as they are at hand: in the same source, or landed before."""

from __future__ import annotations

from collections.abc import Mapping

from schemas.errors import StoreError
from storage.objects import ObjectStat, ObjectStore
from storage.zone import Zone
from tasks.land.codex.before import lines_before
from tasks.land.codex.discover import parent_named
from tasks.land.codex.kinds import THREAD_ID, TRANSCRIPT
from tasks.land.codex.landed_parents import landed_parent
from tasks.land.codex.parents import Parent, parent_of
from tasks.land.codex.rows import Members, text
from tasks.land.cursors import cursor_key

__all__ = ["ParentsAtHand"]


class ParentsAtHand:
    """A `tasks.land.codex.copied.Parents`. `rollouts` are the source's, by thread. A thread that lies there is read
    there; of one that does not, or cannot be read, the landed records are. The last one asked for is kept."""

    def __init__(self, source: ObjectStore, rollouts: Mapping[str, ObjectStat], zone: Zone | None) -> None:
        self._source = source
        self._rollouts = rollouts
        self._zone = zone
        self._last: tuple[str, Parent | None] = ("", None)

    def find(self, meta: Members) -> Parent | None:
        thread = text(meta, "id")
        if self._last[0] != thread:
            self._last = thread, self._in_source(thread) or self._landed(meta)
        return self._last[1]

    def stamp(self, meta: Members) -> str:
        thread = text(meta, "id")
        if (stat := self._rollouts.get(thread)) is not None:
            return f"{stat.size}/{''.join(stat.etag.split())}"
        place = self._place(meta)
        return "" if place is None else f"landed/{''.join(place[2].split())}"

    def _in_source(self, thread: str) -> Parent | None:
        stat = self._rollouts.get(thread)
        try:
            read = None if stat is None else self._source.stat(stat.key)
            found = None if read is None else parent_of(lines_before(self._source, read.key, read.size))
        except StoreError:
            return None
        return found if found is not None and found.lines else None

    def _landed(self, meta: Members) -> Parent | None:
        place = self._place(meta)
        if self._zone is None or place is None:
            return None
        return landed_parent(self._zone, place[0], place[1], text(meta, "id"))

    def _place(self, meta: Members) -> tuple[str, str, str] | None:
        """Session and stream in which the thread has landed, and a word that changes when more of it has."""
        thread = text(meta, "id")
        if self._zone is None or not THREAD_ID.fullmatch(thread):
            return None
        for session in dict.fromkeys((text(meta, "session_id"), thread, parent_named(meta))):
            place = "main" if thread == session else thread
            if THREAD_ID.fullmatch(session):
                stat = self._zone.store.stat(cursor_key(f"{session}/streams/{place}/{TRANSCRIPT}"))
                if stat is not None:
                    return session, place, stat.etag
        return None
