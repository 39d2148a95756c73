"""Which sessions lie in a folder, and which copy of each is read (dialect notes, "Where sessions are found")."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import NamedTuple

from schemas.errors import KeyRefused, ObjectMissing, ObjectTooLarge, RejectedData, StoreError, StoreUnavailable
from storage.objects import ObjectStat
from tasks.land.relavium.documents import DocumentStore
from tasks.land.relavium.kinds import (
    MESSAGES,
    RECORD,
    DocumentKey,
    container_kind,
    document_key,
    record_beside,
    session_name,
    source_file,
)
from tasks.land.relavium.stored import Stored
from tasks.land.source import Discovery, Sighting

__all__ = ["discover"]

_DEEPEST = 16
_BAD_FILE = (KeyRefused, ObjectMissing, ObjectTooLarge, RejectedData, StoreUnavailable)


class _Copy(NamedTuple):
    """A session as one container has it, without its content."""

    session: str
    container: str
    updated: int
    record: ObjectStat
    messages: ObjectStat


def discover(store: DocumentStore) -> Discovery:
    """Every session's two documents, its messages first, so that no record lands before what it is about."""
    unreadable: list[tuple[str, str]] = []
    copies: dict[str, list[_Copy]] = {}
    listed = _listed(store, unreadable)
    records = {stat.key for stat in listed if container_kind(stat.key) == "pair"}
    for stat in listed:
        if (record := record_beside(stat.key)) is not None and record not in records:
            unreadable.append((stat.key, f"messages without a record; {record} is not there"))
        for copy in _copies(store, stat.key, unreadable):
            copies.setdefault(session_name(copy.session), []).append(copy)
    found: dict[str, list[Sighting]] = {}
    for name in sorted(copies):
        chosen = _choose(store, copies[name])
        found[name] = [_sighting(copy, MESSAGES) for copy in chosen] + [_sighting(chosen[0], RECORD)]
    return Discovery(found, tuple(unreadable))


def _copies(store: DocumentStore, key: str, unreadable: list[tuple[str, str]]) -> Iterator[_Copy]:
    """The sessions that the object at ``key`` holds, if it holds any; what is wrong with it is noted."""
    kind = container_kind(key)
    try:
        if kind == "pair":
            yield _copy(key, store.pair(key))
        elif kind == "database":
            database = store.database(key)
            unreadable += [(key, fault) for fault in database.faults]
            for session in database.sessions:
                try:
                    yield _copy(key, store.session(key, session))
                except ObjectTooLarge as error:
                    unreadable.append((document_key(key, session, MESSAGES), str(error)))
    except _BAD_FILE as error:
        unreadable.append((key, str(error)))


def _copy(container: str, stored: Stored) -> _Copy:
    record, messages = (
        ObjectStat(document_key(container, stored.session, document), len(data), 0.0, sha256(data).hexdigest()[:32])
        for document, data in ((RECORD, stored.record), (MESSAGES, stored.messages))
    )
    return _Copy(stored.session, container, stored.updated, record, messages)


def _choose(store: DocumentStore, copies: list[_Copy]) -> list[_Copy]:
    """The copy to read, the longest and of those the newest, then those that contradict it. One whose messages are the
    beginning of it says nothing of its own."""
    first, *others = sorted(copies, key=lambda copy: (-copy.messages.size, -copy.updated, copy.container))
    whole = store.read(first.messages.key) if others else b""
    return [first, *(copy for copy in others if not whole.startswith(store.read(copy.messages.key)))]


def _sighting(copy: _Copy, document: str) -> Sighting:
    key = DocumentKey(copy.container, copy.session, document)
    return Sighting(source_file(key), copy.record if document == RECORD else copy.messages)


def _listed(store: DocumentStore, unreadable: list[tuple[str, str]]) -> list[ObjectStat]:
    try:
        return store.list("")
    except StoreError:
        return _walk(store, "", 0, unreadable)


def _walk(store: DocumentStore, prefix: str, depth: int, unreadable: list[tuple[str, str]]) -> list[ObjectStat]:
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
