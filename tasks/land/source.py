"""What every source of sessions offers the collector, and the plain values that pass between them.

A source is one program's way of keeping sessions: it says which objects belong to which session, and makes a record of
each line or whole document. It reads nothing itself but listings, and knows nothing of cursors, sequences or landed
files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from schemas.call_facts import CallFacts
from schemas.session_data import Record
from storage.objects import ObjectStat, ObjectStore

__all__ = ["Converted", "Dialect", "Discovery", "Line", "Sighting", "SourceFile"]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One object of the source, and where its records land: `kind` is the landed file's, `prefix` its name's.

    `grows` tells the two ways to read: line by line from where the cursor stands, or whole, when it has changed.
    """

    session: str
    key: str
    kind: str
    prefix: str
    folder: Literal["streams", "runs"]
    place: str
    grows: bool

    @property
    def stream(self) -> str:
        """The stream that the landed header names, empty for a run's files."""
        return self.place if self.folder == "streams" else ""

    @property
    def batch(self) -> str:
        """The run that the landed header names, empty for a stream's files."""
        return self.place if self.folder == "runs" else ""

    @property
    def target(self) -> str:
        """What the file's landed names and its cursor have in common, below the zone's root."""
        return f"{self.session}/{self.folder}/{self.place}/{self.prefix}"


@dataclass(frozen=True, slots=True)
class Sighting:
    """A source file as the listing showed it."""

    file: SourceFile
    stat: ObjectStat


@dataclass(frozen=True, slots=True)
class Discovery:
    """What a listing of the source came to: each session's files in landing order, and places that could not be listed
    (place, reason)."""

    sessions: Mapping[str, list[Sighting]] = field(default_factory=dict)
    unreadable: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a growing file without its newline, or a whole document: its number from 1, its byte offset."""

    ord: int
    off: int
    body: bytes


class Converted(NamedTuple):
    """A line's record; why it could not be understood if so, it then holds the line as it is; and what the line says
    about a provider's call beyond the record."""

    record: Record
    problem: str = ""
    call: CallFacts | None = None


class Dialect(Protocol):
    """One kind of source."""

    @property
    def name(self) -> str:
        """The dialect as landed headers name it."""

    @property
    def adapter(self) -> str:
        """Who collected, as landed headers name it."""

    def discover(self, store: ObjectStore) -> Discovery:
        """Every session of the source with its files."""

    def locate(self, key: str) -> SourceFile | None:
        """What lies at `key`, None for what is none of a session's."""

    def convert(self, line: Line, file: SourceFile) -> Converted:
        """The record of a line. It never refuses one: what cannot be understood becomes an `unknown` part."""
