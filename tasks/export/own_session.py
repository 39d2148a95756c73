"""A conversation that was Relavium's own session: the record and messages that landed, as they were.

Each landed line holds its message or record whole (dialect `relavium/1`), so nothing is made up here: what its own
exporter is given is had again. A record counts when it is about exactly the messages that have landed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from msgspec import Raw

from schemas.errors import AgentSessionRejected
from schemas.relavium import AgentSessionRecord, SessionMessage, parse_messages, parse_record
from schemas.relavium_json import read_json
from schemas.session_data import Record, text_of
from tasks.export.completion import why_not_quiet
from tasks.export.conversation import Conversation

__all__ = ["NO_RECORD", "OWN", "OwnSession", "own_session", "why_own_unfinished"]

OWN: Final = "relavium"
"""The source whose sessions are Relavium's own."""

NO_RECORD: Final = "no record of it has landed that is about its newest message; land its source again"

_MESSAGE: Final = "relavium_message/1"


class OwnSession(NamedTuple):
    """What Relavium's exporter takes."""

    record: AgentSessionRecord
    messages: list[SessionMessage]


def own_session(conversation: Conversation) -> OwnSession | None:
    """The session as it landed; None while no record has landed that is about these messages.

    Raises AgentSessionRejected (``not_understood``) for a message, or the newest record, that Relavium would refuse.
    """
    name = f"session {conversation.id}"
    lines: list[Record] = []
    records: list[tuple[Record, dict[str, Any]]] = []
    messages: list[Any] = []
    for placed in conversation.records:
        record = placed.record
        if record.id:
            lines.append(record)
            messages += _messages(record, name)
        else:
            records.append((record, _value(record)))
    last = (len(lines), lines[-1].sha if lines else "")
    for landed, value in reversed(records):
        if (value.get("lines"), value.get("last")) == last:
            return OwnSession(parse_record(value.get("record"), name=name), parse_messages(messages, name=name))
        _check(landed, None, name)
    return None


def why_own_unfinished(
    session: OwnSession, conversation: Conversation, *, as_of: int, completed_after: int
) -> str | None:
    """Why the session is not over, for people; None when it is. Times in nanoseconds.

    It is over when its record says so, or when it has been quiet for long enough. An exchange without an answer holds
    nothing back: Relavium keeps completed turns alone, and rolls back what else is there.
    """
    if session.record.status == "ended":
        return None
    return why_not_quiet(conversation, as_of=as_of, completed_after=completed_after)


def _messages(record: Record, name: str) -> Iterator[Any]:
    _check(record, record.ord, name)
    value = _value(record)
    if value.get("schema") == _MESSAGE:
        yield value.get("message")


def _check(record: Record, row: int | None, name: str) -> None:
    for part in record.parts:
        if part.k == "unknown":
            raise AgentSessionRejected(name, row, "not_understood", "", text_of(part))


def _value(record: Record) -> dict[str, Any]:
    """What a line says of itself: its last part has it whole."""
    part = record.parts[-1] if record.parts else None
    if part is None or part.k != "data" or not isinstance(part.data, Raw):
        return {}
    value = read_json(bytes(part.data), name="a landed line")
    return value if isinstance(value, dict) else {}
