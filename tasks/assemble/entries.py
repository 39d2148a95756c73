"""One landed record as assembly sees it: who wrote it, when, what it names, which blocks it holds (session-flow
specification, section 4).

An entry keeps names, positions and flags; the content stays in the landed file. Empty text means absent everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from schemas.session_data import LandedFile, Part, Record
from schemas.times import parse_time

from .changes import ChangeSet, change_set
from .manifests import BodyManifest, body_manifest

__all__ = ["Entry", "FileEntries", "Kind", "Trigger", "entries_of", "flag"]


class Kind:
    """What kind of record an entry is; plain integers, for they are compared once an entry and stage."""

    ASSISTANT, USER, SYSTEM, UNKNOWN, META, JOURNAL, MANIFEST, SCRIPT, CHANGES, BODY = range(10)


class Trigger:
    NONE, EXTERNAL, NOTIFICATION, OTHER = range(4)


_FLAGS = (
    "synthetic",
    "context_reset",
    "reset_summary",
    "finished",
    "external_input",
    "injected",
    "child_result",
    "error",
    "launch_ack",
    "turn_duration",
    "command",
    "notice",
    "auxiliary",
)
_BITS = {name: 1 << place for place, name in enumerate(_FLAGS)}


def flag(name: str) -> int:
    """The bit of a flag's name in `Entry.flags`."""
    return _BITS[name]


_KIND_OF_FILE = {
    "agent_meta": Kind.META,
    "journal": Kind.JOURNAL,
    "workflow_manifest": Kind.MANIFEST,
    "workflow_script": Kind.SCRIPT,
    "changes": Kind.CHANGES,
    "provider_body": Kind.BODY,
}
_KIND_OF_AUTHOR = {"agent": Kind.ASSISTANT, "external": Kind.USER, "runtime": Kind.SYSTEM}
_TRIGGERS = {
    "": Trigger.NONE,
    "external": Trigger.EXTERNAL,
    "notification": Trigger.NOTIFICATION,
    "unknown": Trigger.OTHER,
}


class Entry(msgspec.Struct, gc=False):
    """`run` is the entry's own run until the index resolves it through the entry's ancestors; `own_run` stays its own.

    texts, thoughts: block ordinals of text and reasoning parts. uses: (ordinal, tool id, name). results: (ordinal, tool
    id).
    """

    seq: int
    row: int
    ord: int
    stream: str
    batch: str
    kind: int
    ts: int
    trigger: int
    flags: int
    record: str
    parent: str
    call: str
    own_run: str
    run: str
    continues: str
    tool: str
    child: str
    started_by: str
    label: str
    texts: tuple[int, ...]
    thoughts: tuple[int, ...]
    uses: tuple[tuple[int, str, str], ...]
    results: tuple[tuple[int, str], ...]


class FileEntries(NamedTuple):
    """A landed file's entries, and what its records say beside them.

    first, last: the earliest and latest record time, nanoseconds, 0 when no record has one.
    transcript: whether its records are lines of a transcript; a kind of file that is not known counts as one.
    """

    seq: int
    digest: str
    first: int
    last: int
    transcript: bool
    entries: list[Entry]
    changes: list[ChangeSet]
    bodies: list[tuple[Entry, BodyManifest]]


def entries_of(landed: LandedFile, seq: int, *, stream: str, batch: str) -> FileEntries:
    """The entries of one landed file. `seq` comes from the file's name; `stream` and `batch` from its folder where the
    header names none.
    """
    header = landed.header
    stream = header.stream or stream
    batch = header.batch or batch
    kind_of_file = _KIND_OF_FILE.get(header.kind)
    entries: list[Entry] = []
    changes: list[ChangeSet] = []
    bodies: list[tuple[Entry, BodyManifest]] = []
    first = last = 0
    triggers, bits, kinds = _TRIGGERS, _BITS, _KIND_OF_AUTHOR
    unknown, body = Kind.UNKNOWN, Kind.BODY
    for row, record in enumerate(landed.records, 1):
        kind = kinds.get(record.from_, unknown) if kind_of_file is None else kind_of_file
        ts = parse_time(record.time) if record.time else 0
        if ts:
            if not first or ts < first:
                first = ts
            if not last or ts > last:
                last = ts
        flags = 0
        for name in record.flags:
            flags |= bits.get(name, 0)
        run = record.run
        parts = record.parts
        texts, thoughts, uses, results = _blocks(parts) if parts and kind != body else _NO_BLOCKS
        entry = Entry(
            seq,
            row,
            record.ord,
            stream,
            record.batch or batch,
            kind,
            ts,
            triggers.get(record.trigger, Trigger.NONE),
            flags,
            record.id,
            record.parent,
            record.call,
            run,
            run,
            record.continues,
            record.tool,
            record.child,
            record.started_by,
            record.label,
            texts,
            thoughts,
            uses,
            results,
        )
        entries.append(entry)
        if kind == body:
            manifest = _manifest(record)
            if manifest is not None:
                bodies.append((entry, manifest))
        else:
            for part in parts:
                if part.k == "data":
                    found = change_set(part)
                    if found is not None:
                        changes.append(found)
    return FileEntries(seq, landed.digest, first, last, kind_of_file is None, entries, changes, bodies)


_Blocks = tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[int, str, str], ...], tuple[tuple[int, str], ...]]
_NO_BLOCKS: _Blocks = ((), (), (), ())
_ONE_TEXT: _Blocks = ((0,), (), (), ())


def _blocks(parts: Sequence[Part]) -> _Blocks:
    if len(parts) == 1:  # nearly every record of a real transcript
        part = parts[0]
        match part.k:
            case "text":
                return _ONE_TEXT
            case "call":
                return (), (), ((0, part.id, part.name),), ()
            case "result":
                return (), (), (), ((0, part.of),)
            case "reasoning":
                return (), (0,), (), ()
            case _:
                return _NO_BLOCKS
    return (
        tuple(i for i, part in enumerate(parts) if part.k == "text"),
        tuple(i for i, part in enumerate(parts) if part.k == "reasoning"),
        tuple((i, part.id, part.name) for i, part in enumerate(parts) if part.k == "call"),
        tuple((i, part.of) for i, part in enumerate(parts) if part.k == "result"),
    )


def _manifest(record: Record) -> BodyManifest | None:
    """A provider body's manifest stands in its record's last part; a body without a record id has no place."""
    if not record.id or not record.parts or record.parts[-1].k != "data":
        return None
    return body_manifest(record.parts[-1])
