"""Titles that people gave their threads: the newest line for each in `session_index.jsonl` (Codex notes, section 1).

All threads share that file, so each title is read as if it were a file of its own, which changes when it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from schemas.session_data import Record
from storage.objects import ObjectStat, ObjectStore
from tasks.land.codex.before import lines_before
from tasks.land.codex.parts import data_part
from tasks.land.codex.rows import read_row, text, unmarked
from tasks.land.source import Converted, Line, SourceFile

__all__ = ["INDEX", "TITLE", "convert_title", "home_of", "title_file", "titles_in"]

INDEX = "session_index.jsonl"
TITLE = "session_index"
"""The kind of a landed title's file, and what its name begins with."""

_MOST_BRACKETS = 100
"""A line nested deeper may not fit into a record, and is none of the client's."""

_HOME = frozenset(("sessions", "archived_sessions"))


def home_of(key: str) -> str:
    """The folder of Codex that a rollout lies in, with a slash at its end, empty for the source itself."""
    folders = key.split("/")[:-1]
    place = next(place for place, name in enumerate(folders) if name in _HOME)
    return "".join(f"{name}/" for name in folders[:place])


def title_file(session: str, key: str) -> SourceFile:
    """A title as a file of its own; `key` is the index with `#` and the thread after it."""
    return SourceFile(session, key, TITLE, TITLE, "streams", "main", False)


def titles_in(store: ObjectStore, stat: ObjectStat) -> Iterator[tuple[str, ObjectStat, bytes]]:
    """Each thread that the index names, with its title as a file. A half last line is not there yet; what is no title
    says nothing."""
    newest: dict[str, bytes] = {}
    for line in lines_before(store, stat.key, stat.size):
        if line.body.count(b"[") + line.body.count(b"{") > _MOST_BRACKETS:
            continue
        row = read_row(unmarked(line.body, first=line.ord == 1), first=True)
        if row is not None and (thread := text(row.payload, "id")) and text(row.payload, "thread_name"):
            newest[thread] = line.body
    home = stat.key.removesuffix(INDEX)
    for thread, body in newest.items():
        yield (
            thread,
            ObjectStat(f"{home}{INDEX}#{thread}", len(body), stat.modified, sha256(body).hexdigest()[:32]),
            body,
        )


def convert_title(line: Line) -> Converted:
    """A title's record: its label names the session, and it has no id, for a later one takes its place."""
    body = unmarked(line.body, first=True)
    row = read_row(body, first=True)
    payload = {} if row is None else row.payload
    return Converted(
        Record(
            ord=line.ord,
            off=line.off,
            sha=sha256(line.body).hexdigest()[:12],
            bytes=len(line.body),
            label=text(payload, "thread_name"),
            from_="runtime",
            time=text(payload, "updated_at"),
            parts=(data_part(body),),
        )
    )
