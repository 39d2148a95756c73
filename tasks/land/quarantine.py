"""What is wrong with a session's sources, noted until it is right in `_quarantine/landing/<session>-<source>.json`.

A line that could not be understood has landed as it is and stays so, and is kept for good. Everything else is about a
file as it now stands: it is in the note while a pass still meets it, and a file that was mended leaves it by itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from storage.caches import read_cache, write_cache
from storage.keys import escape_id
from storage.objects import ObjectStore
from tasks.land.outcome import NOT_UNDERSTOOD, PROBLEMS_KEPT, LandProblem

__all__ = ["Note", "add_notes", "all_notes", "note_key", "places_key", "read_notes", "update_notes"]

NOTES = "_quarantine/landing/"


class Note(BaseModel):
    """A problem, and the clock of the pass that met it first, RFC 3339."""

    model_config = ConfigDict(frozen=True)

    problem: LandProblem
    first_seen: str


_Notes = TypeAdapter(list[Note])


def note_key(session: str, root: str) -> str:
    """Where the note about a session's files in one source lies."""
    return f"{NOTES}{escape_id(session)}-{root}.json"


def places_key(dialect: str, root: str) -> str:
    """Where the note lies about places of a source that could not be read at all. No session is called so."""
    return f"{NOTES}%{escape_id(dialect)}-{root}.json"


def all_notes(store: ObjectStore, root: str) -> list[Note]:
    """Every note about one source, by session."""
    keys = [stat.key for stat in store.children(NOTES)[1] if stat.key.endswith(f"-{root}.json")]
    return [note for key in keys for note in read_notes(store, key)]


def read_notes(store: ObjectStore, key: str) -> list[Note]:
    """The notes at `key`; none when there is no such object."""
    try:
        return _Notes.validate_json(read_cache(store, key) or b"[]")
    except ValidationError:
        return []


def add_notes(store: ObjectStore, key: str, problems: Iterable[LandProblem], now: str) -> None:
    """Note problems beside those that are noted, at most 1,000 in all."""
    before = read_notes(store, key)
    there = {note.problem for note in before}
    new = [Note(problem=each, first_seen=now) for each in dict.fromkeys(problems) if each not in there]
    if new and len(before) < PROBLEMS_KEPT:
        write_cache(store, key, _Notes.dump_json([*before, *new][:PROBLEMS_KEPT], indent=2) + b"\n")


def update_notes(store: ObjectStore, key: str, problems: Iterable[LandProblem], now: str) -> list[Note]:
    """Note what a pass met, and forget what it did not meet again: the notes that then stand, at most 1,000."""
    before = read_notes(store, key)
    first = {note.problem: note.first_seen for note in before}
    kept = [note for note in before if note.problem.rule == NOT_UNDERSTOOD]
    there = {note.problem for note in kept}
    new = [Note(problem=each, first_seen=first.get(each, now)) for each in dict.fromkeys(problems) if each not in there]
    notes = [*kept, *new][:PROBLEMS_KEPT]
    if notes and notes != before:
        write_cache(store, key, _Notes.dump_json(notes, indent=2) + b"\n")
    elif before and not notes:
        store.delete(key)
    return notes
