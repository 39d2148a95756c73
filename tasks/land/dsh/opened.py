"""A source of logs as if they were plain text, cut off behind what is whole, with what is made of them beside them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from schemas.dsh import MAX_LOG_BYTES, LogHeader
from schemas.dsh_lineage import ParentsWord, delegation
from schemas.dsh_root import LogPlace, place_of
from schemas.errors import KeyRefused, LogRejected, ObjectMissing, ObjectTooLarge
from storage.objects import ObjectStat, ObjectStore
from tasks.land.dsh.children import document
from tasks.land.dsh.databases import Databases, Kept, database_of
from tasks.land.dsh.discover import Found, Parent
from tasks.land.dsh.heads import HEAD_BYTES, header_in
from tasks.land.dsh.kinds import derived_from
from tasks.land.dsh.logs import LogShelf
from tasks.land.source import Sighting
from tasks.land.view import SourceView

__all__ = ["LogStore"]

_BAD_FILE = (KeyRefused, LogRejected, ObjectMissing, ObjectTooLarge)


class LogStore(SourceView):
    """An `ObjectStore` for reading, and a `discover.Reading`. What a refused log holds cannot be read."""

    def __init__(self, store: ObjectStore, *, max_bytes: int = MAX_LOG_BYTES) -> None:
        super().__init__(store)
        self._max_bytes = max_bytes
        self.databases = Databases(store, max_bytes=max_bytes)
        self.shelf = LogShelf(store, self.databases, max_bytes=max_bytes)
        self.found = Found()
        self._documents: dict[str, bytes] = {}

    def header(self, place: LogPlace, stat: ObjectStat) -> LogHeader | None:
        try:
            return header_in(self._store.read_range(stat.key, 0, HEAD_BYTES), place)
        except _BAD_FILE:
            return None

    def kept(self, stat: ObjectStat) -> Iterable[Kept]:
        return self.databases.sessions(stat.key)

    def length(self, stat: ObjectStat) -> int:
        try:
            return len(self.shelf.open(stat.key, stat.etag).text)
        except _BAD_FILE:
            return -1

    def begins(self, stat: ObjectStat, longer: ObjectStat) -> bool:
        text = self.shelf.open(stat.key, stat.etag).text
        return self.shelf.open(longer.key, longer.etag).text.startswith(text)

    def opened(self, sighting: Sighting) -> Sighting:
        """The sighting with the size of its text. Raises `LogRejected`."""
        stat = sighting.stat
        if (refusal := self.found.refused.get(stat.key)) is not None:
            raise refusal
        if derived_from(stat.key) is not None:
            self._documents[stat.key] = body = self._document(stat.key)
            return replace(sighting, stat=replace(stat, size=len(body)))
        if stat.size > self._max_bytes:
            detail = f"{stat.size} bytes, above the limit of {self._max_bytes}"
            raise LogRejected(stat.key, None, "too_large", detail)
        opened = self.shelf.open(stat.key, stat.etag)
        return replace(sighting, stat=replace(stat, size=len(opened.text)), waiting=opened.waiting)

    def stat(self, key: str) -> ObjectStat | None:
        made = derived_from(key)
        stat = self._listed(key if made is None else made[0])
        if stat is None or made is not None or (place_of(key) is None and database_of(key) is None):
            return stat
        try:
            return replace(stat, size=len(self.shelf.open(key, stat.etag).text))
        except LogRejected:
            return stat  # it is there; only reading it fails

    def _listed(self, key: str) -> ObjectStat | None:
        """What there is at a log's key, without a look into it. A database is as it was when it was copied."""
        return self._store.stat(key) if database_of(key) is None else self.found.kept.get(key)

    def read(self, key: str) -> bytes:
        if derived_from(key) is None:
            return self.shelf.open(key).text
        return self._documents[key] if key in self._documents else self._document(key)

    def read_range(self, key: str, start: int, length: int) -> bytes:
        return self.shelf.open(key).text[start : start + length]

    def _document(self, key: str) -> bytes:
        """What is made of a sub-agent's log and its parent's, as far as either can be read."""
        log, kind = derived_from(key) or ("", "")
        parent, stat = self.found.parents.get(log), self._listed(log)
        if parent is None or stat is None:
            return b""
        try:
            child = self.shelf.childs_word(log, stat.etag)
        except _BAD_FILE:
            return b""
        word, tools = self._parents_word(parent)
        joined = delegation(child.header.parent_session or "", child, word)
        tool = tools.get(joined.result_seq, "") if joined.result_seq is not None else ""
        return document(kind, child, joined, tool=tool, started_by=parent.stream)

    def _parents_word(self, parent: Parent) -> tuple[ParentsWord, dict[int, str]]:
        try:
            return self.shelf.parents_word(parent.stat.key, parent.stat.etag)
        except _BAD_FILE:
            return ParentsWord(), {}
