"""A folder of Relavium's sessions as a store of documents: for each session its record, and its messages line by line.

It is for reading. A database is copied once, when it is first asked for, and is then as it was at that moment.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256

from schemas.errors import AgentSessionRejected, ObjectMissing
from storage.objects import ObjectStat, ObjectStore
from tasks.land.relavium.kinds import RECORD, DocumentKey, container_kind, document_key, messages_beside
from tasks.land.relavium.stored import Database, Stored, read_pair
from tasks.land.view import SourceView

__all__ = ["DocumentStore"]

_KEPT_BYTES = 64 << 20
"""Of sessions that are likely to be asked for again; the one that was asked for last is always kept."""


class DocumentStore(SourceView):
    """An `ObjectStore` for reading. What no document has as its key is as it is in the store below."""

    def __init__(self, store: ObjectStore) -> None:
        super().__init__(store)
        self._databases: dict[str, Database] = {}
        self._kept: OrderedDict[tuple[str, str, str], Stored] = OrderedDict()
        self._kept_bytes = 0

    def database(self, key: str) -> Database:
        """The database at ``key``. Raises as `Database` does."""
        if key not in self._databases:
            self._databases[key] = Database(self._store, key)
        return self._databases[key]

    def pair(self, key: str) -> Stored:
        """The session whose record is at ``key``. Raises as `read_pair` does."""
        versions = [self._store.stat(each) for each in (key, messages_beside(key))]
        version = " ".join("" if stat is None else stat.etag for stat in versions)
        return self._keeping((key, version, ""), lambda: read_pair(self._store, key))

    def session(self, container: str, session: str) -> Stored:
        """One session of a container. Raises ObjectMissing when it has none of this id, and as reading it does."""
        if container_kind(container) == "database":
            try:
                return self._keeping((container, "", session), lambda: self.database(container).read(session))
            except KeyError:
                raise ObjectMissing(document_key(container, session, RECORD)) from None
        stored = self.pair(container)
        if stored.session != session:
            raise ObjectMissing(document_key(container, session, RECORD))
        return stored

    def stat(self, key: str) -> ObjectStat | None:
        place = DocumentKey.read(key)
        if place is None:
            return self._store.stat(key)
        try:
            data = self._document(place)
        except (ObjectMissing, AgentSessionRejected):
            return None
        return ObjectStat(key, len(data), 0.0, sha256(data).hexdigest()[:32])

    def read(self, key: str) -> bytes:
        place = DocumentKey.read(key)
        return self._store.read(key) if place is None else self._document(place)

    def read_range(self, key: str, start: int, length: int) -> bytes:
        place = DocumentKey.read(key)
        if place is None:
            return self._store.read_range(key, start, length)
        return self._document(place)[start : start + length]

    def _document(self, place: DocumentKey) -> bytes:
        stored = self.session(place.container, place.session)
        return stored.record if place.document == RECORD else stored.messages

    def _keeping(self, name: tuple[str, str, str], read: Callable[[], Stored]) -> Stored:
        stored = self._kept.get(name)
        if stored is None:
            stored = self._kept[name] = read()
            self._kept_bytes += len(stored.messages)
        self._kept.move_to_end(name)
        while self._kept_bytes > _KEPT_BYTES and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._kept_bytes -= len(oldest.messages)
        return stored
