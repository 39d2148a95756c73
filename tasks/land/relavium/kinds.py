"""How Relavium's sessions lie in a folder, and what the source calls each document of one.

A session is a record and a list of messages: two JSON files beside each other, or rows of a `history.db`. Either way
the source shows them as two documents below the object that holds the record: ``<object>#<session>/record`` and
``…/messages``.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final, Literal, NamedTuple

from schemas.errors import KeyRefused
from storage.keys import escape_id, unescape_id
from tasks.land.source import SourceFile

__all__ = [
    "MESSAGES",
    "RECORD",
    "DocumentKey",
    "container_kind",
    "document_key",
    "messages_beside",
    "record_beside",
    "session_name",
    "source_file",
]

RECORD: Final = "record"
MESSAGES: Final = "messages"

_RECORD_NAME = re.compile(r"((?:.*[._-])?)record\.json", re.DOTALL)
_MESSAGES_NAME = re.compile(r"((?:.*[._-])?)messages\.json", re.DOTALL)
_DATABASE_NAME = re.compile(r"(?:.*[._-])?history\.db", re.DOTALL)

_LONGEST_NAME = 180
_KEPT_OF_A_LONG_NAME = 100

Container = Literal["pair", "database"]


class DocumentKey(NamedTuple):
    """One document of a source: the object its session's record is in, the session's id as it is in the data."""

    container: str
    session: str
    document: str

    @classmethod
    def read(cls, key: str) -> DocumentKey | None:
        """What ``key`` names; None when it is no document's."""
        container, _, rest = key.rpartition("#")
        escaped, _, document = rest.partition("/")
        if document not in (RECORD, MESSAGES) or container_kind(container) is None:
            return None
        try:
            return cls(container, unescape_id(escaped), document)
        except KeyRefused:
            return None


def container_kind(key: str) -> Container | None:
    """Whether the object at ``key`` is a session's record, or a database of sessions. What lies in a folder that is
    called as a database is, is neither."""
    *folders, name = key.split("/")
    if any(map(_DATABASE_NAME.fullmatch, folders)):
        return None
    if _DATABASE_NAME.fullmatch(name):
        return "database"
    return "pair" if _RECORD_NAME.fullmatch(name) else None


def messages_beside(record: str) -> str:
    """Where the messages of the record at this key are."""
    return record.removesuffix("record.json") + "messages.json"


def record_beside(key: str) -> str | None:
    """Where the record is that the messages at ``key`` belong to; None when no messages are there."""
    *folders, name = key.split("/")
    if _MESSAGES_NAME.fullmatch(name) is None or any(map(_DATABASE_NAME.fullmatch, folders)):
        return None
    return key.removesuffix("messages.json") + "record.json"


def document_key(container: str, session: str, document: str) -> str:
    return f"{container}#{escape_id(session)}/{document}"


def session_name(session: str) -> str:
    """The name of a session's folder in the zone: its escaped id; of one that is too long, the beginning and a digest.
    No escaped id holds "%-", so no other session has that name."""
    name = escape_id(session)
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:_KEPT_OF_A_LONG_NAME]}%-{sha256(session.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def source_file(key: DocumentKey) -> SourceFile:
    """Where a document lands: messages one by one as they come, the record whole whenever it has changed."""
    name = session_name(key.session)
    text = document_key(*key)
    if key.document == MESSAGES:
        return SourceFile(name, text, "transcript", "transcript", "streams", "main", True)
    return SourceFile(name, text, "session", "session", "streams", "main", False)
