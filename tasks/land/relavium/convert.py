"""A document's line as a Session Data record (dialect notes, "Records").

A person's message begins a run, which ends with the answer; a boundary is a reset, and its text the summary of what it
replaced. A line that breaks Relavium's rules lands as it is, in an `unknown` part.
"""

from __future__ import annotations

import re
from typing import Any, Final

from schemas.errors import AgentSessionRejected
from schemas.relavium import AgentSessionRecord, SessionMessage, parse_messages, parse_record
from schemas.relavium_json import read_json
from schemas.session_data import Part, Record
from tasks.land.relavium.calls import call_facts, totals_call, usage_of
from tasks.land.relavium.lines import BOUNDARY, MESSAGE, ROW, SESSION, digest_of
from tasks.land.relavium.parts import data_part, message_parts, unicode_text, unknown_part
from tasks.land.source import Converted, Line, SourceFile

__all__ = ["convert"]

_PARTIAL_TIME: Final = re.compile(r"(.{10}T..:..)(:.+?)?(Z|[+-]..):?(..)?")


def convert(line: Line, file: SourceFile) -> Converted:
    """The record of a line of one of a session's documents."""
    try:
        value = read_json(line.body, name=file.key)
        schema = value.get("schema") if isinstance(value, dict) else None
        if schema == SESSION and "record" in value:
            return _session(line, file, value)
        if schema == MESSAGE:
            return _message(line, file, value)
        if schema == BOUNDARY:
            return Converted(_boundary(line, file, value))
        if schema in (SESSION, ROW) and isinstance(refused := value.get("refused"), dict):
            return _unknown(line, file, f"{refused.get('rule')}: {refused.get('field') or 'the row'}")
    except AgentSessionRejected as error:
        return _unknown(line, file, f"{error.rule}: {error.detail}")
    return _unknown(line, file, "no line of a session")


def _session(line: Line, file: SourceFile, value: dict[str, Any]) -> Converted:
    record = parse_record(value["record"], name=file.key)
    landed = Record(
        **_place(line),
        call=totals_call(file.session) if (usage := usage_of(record)) is not None else "",
        label=unicode_text(record.title or ""),
        from_="runtime",
        time=_time(record.updatedAt),
        # That a session is over is worth a node of its own; its other states are only where it stands.
        flags=("notice",) if record.status == "ended" else (),
        usage=usage,
        model=unicode_text(_model(record)),
        parts=(data_part(line.body),),
    )
    costs = value.get("costs")
    return Converted(landed, call=call_facts(record, landed, costs if isinstance(costs, list) else []))


def _message(line: Line, file: SourceFile, value: dict[str, Any]) -> Converted:
    (message,) = parse_messages([value.get("message")], name=file.key)
    fields: dict[str, Any] = {}
    turn = value.get("turn")
    if isinstance(turn, int) and turn > 0:
        fields["run"] = _id(file, turn)
    if message.role == "user":
        fields |= {"from_": "external", "trigger": "external", "flags": ("external_input",)}
    elif message.role == "assistant":
        fields |= {"from_": "agent", "call": _id(file, line.ord)}
    else:
        fields |= {"from_": "runtime"} | _of_runtime(line, file, message)
    if message.modelId is not None:
        fields["model"] = unicode_text(message.modelId)
    return Converted(
        Record(
            **_place(line),
            id=_id(file, line.ord),
            time=_time(message.timestamp),
            parts=message_parts(message, line.body),
            **fields,
        )
    )


def _of_runtime(line: Line, file: SourceFile, message: SessionMessage) -> dict[str, Any]:
    if message.role == "tool":
        return {}
    if message.compaction is None:
        return {"flags": ("injected",)}
    if any(part.type == "text" and part.text for part in message.content):
        return {"flags": ("reset_summary",), "parent": _id(file, line.ord - 1)}
    return _reset(line, file)  # what was trimmed has no summary


def _boundary(line: Line, file: SourceFile, value: dict[str, Any]) -> Record:
    """What a summary stands for: the line before that of the summary itself."""
    return Record(
        **_place(line),
        **_reset(line, file),
        id=_id(file, line.ord),
        from_="runtime",
        time=_time(str(value.get("timestamp"))),
        parts=(data_part(line.body),),
    )


def _reset(line: Line, file: SourceFile) -> dict[str, Any]:
    return {"flags": ("context_reset",)} | ({"continues": _id(file, line.ord - 1)} if line.ord > 1 else {})


def _unknown(line: Line, file: SourceFile, reason: str) -> Converted:
    parts: tuple[Part, ...] = (unknown_part(line.body, reason),)
    identity = _id(file, line.ord) if file.grows else ""
    return Converted(Record(**_place(line), id=identity, from_="runtime", parts=parts), reason)


def _place(line: Line) -> dict[str, Any]:
    return {"ord": line.ord, "off": line.off, "sha": digest_of(line.body), "bytes": len(line.body)}


def _id(file: SourceFile, number: int) -> str:
    """A line's record. Not the message's own id: nothing makes it unlike others outside of a database."""
    return f"{file.session}#{number}"


def _model(record: AgentSessionRecord) -> str:
    return record.agentSnapshot.model if record.agentSnapshot is not None else record.modelId or ""


def _time(timestamp: str) -> str:
    """A timestamp of Relavium's as RFC 3339, which always has seconds, and a colon in its offset."""
    found = _PARTIAL_TIME.fullmatch(timestamp)
    if found is None:
        return timestamp
    start, seconds, zone, minutes = found.groups()
    return f"{start}{seconds or ':00'}{zone}{f':{minutes}' if minutes else ''}"
