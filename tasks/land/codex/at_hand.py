"""The threads that others were made from, as far as they are at hand: in the same source, or landed before.

Of a thread that is at hand in both ways the one that has more lines is asked: a rollout may have been cut or damaged
since it landed, and another machine's copy of it may be older.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from schemas.errors import StoreError
from storage.objects import ObjectStat, ObjectStore
from storage.replacements import anew
from storage.zone import Zone
from tasks.land.codex.before import lines_before
from tasks.land.codex.families import Families
from tasks.land.codex.kinds import PACKED, THREAD_ID, TRANSCRIPT
from tasks.land.codex.landed_parents import landed_parent
from tasks.land.codex.parents import Parent, parent_of
from tasks.land.codex.rows import Members, text
from tasks.land.cursors import ACTIVE, SourceCursor, cursor_key, root_name
from tasks.land.outcome import MAX_LINE_BYTES

__all__ = ["ParentsAtHand"]

_NOTHING: Members = {}


class _Landed(NamedTuple):
    """Where a thread has landed, in which of its generations, and how far."""

    session: str
    place: str
    prefix: str
    cursor: SourceCursor


class ParentsAtHand:
    """A `tasks.land.codex.copied.Parents`. `rollouts` are the source's, by thread; lines longer than `max_line_bytes`
    are left out. The last thread asked for is kept."""

    def __init__(
        self,
        source: ObjectStore,
        rollouts: Mapping[str, ObjectStat],
        families: Families,
        zone: Zone | None,
    ) -> None:
        self.max_line_bytes = MAX_LINE_BYTES
        self._source = source
        self._rollouts = rollouts
        self._families = families
        self._zone = zone
        self._last: tuple[str, Parent | None] = ("", None)

    def find(self, meta: Members) -> Parent | None:
        thread = text(meta, "id")
        if self._last[0] != thread:
            self._last = thread, self._found(thread, meta)
        return self._last[1]

    def stamp(self, meta: Members) -> str:
        thread = text(meta, "id")
        stat = self._rollouts.get(thread)
        lies = "" if stat is None else f"{stat.size}/{''.join(stat.etag.split())}"
        return " ".join(filter(None, (lies, self.landed_word(thread, meta))))

    def landed_word(self, thread: str, meta: Members = _NOTHING) -> str:
        """A word that changes when more of the thread has landed, but for what landed from its rollout that lies here:
        that one tells as much."""
        landed = self._landed(thread, meta)
        if landed is None:
            return ""
        return "" if self._is_told_here(thread, landed.cursor) else f"{landed.prefix}/{landed.cursor.ord}"

    def is_in(self, session: str, thread: str) -> bool:
        """Whether the thread has landed in this session."""
        return self._generations(session, thread) is not None

    def _is_told_here(self, thread: str, cursor: SourceCursor) -> bool:
        """Whether the rollout that lies here is what has landed, or more. How long a packed one is no listing says."""
        stat = self._rollouts.get(thread)
        if stat is None or cursor.state != ACTIVE:
            return False
        if (cursor.root, cursor.source) != (root_name(self._source), stat.key):
            return False
        return cursor.etag == stat.etag or (not stat.key.endswith(PACKED) and cursor.offset <= stat.size)

    def _found(self, thread: str, meta: Members) -> Parent | None:
        lies, landed = self._in_source(thread), self._landed(thread, meta)
        if self._zone is None or landed is None or (lies is not None and lies.length >= landed.cursor.ord):
            return lies
        told = landed_parent(self._zone, landed.session, landed.place, landed.prefix, thread)
        return lies if told is None or (lies is not None and lies.length >= told.length) else told

    def _in_source(self, thread: str) -> Parent | None:
        stat = self._rollouts.get(thread)
        try:
            read = None if stat is None else self._source.stat(stat.key)
            if read is None:
                return None
            found = parent_of(lines_before(self._source, read.key, read.size, max_line_bytes=self.max_line_bytes))
        except StoreError:
            return None
        return found if found.lines else None

    def _landed(self, thread: str, meta: Members) -> _Landed | None:
        if not THREAD_ID.fullmatch(thread):
            return None
        named = Families({thread: [meta]}).session(thread)
        for session in dict.fromkeys((named, *reversed(self._families.lineage(thread)))):
            if (landed := self._generations(session, thread)) is not None:
                return landed
        return None

    def _generations(self, session: str, thread: str) -> _Landed | None:
        """The generation that has most of the thread's lines, the newest of several."""
        place = "main" if thread == session else thread
        found: list[_Landed] = []
        while self._zone is not None:
            prefix = anew(TRANSCRIPT, len(found) + 1)
            values = self._zone.cursor_values(cursor_key(f"{session}/streams/{place}/{prefix}"))
            cursor = None if values is None else SourceCursor.read(values)
            if cursor is None:
                break
            found.append(_Landed(session, place, prefix, cursor))
        return max(reversed(found), key=lambda each: each.cursor.ord, default=None)
