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
from storage.zone import Zone
from tasks.land.cursors import SourceCursor

__all__ = ["Converted", "Dialect", "Discovery", "Line", "Pass", "Sighting", "SourceFile"]


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
    """A source file as the listing showed it; once it is opened, as it is read. `waiting` says what stands at its end
    and cannot be read yet, or, of one that is `held`, why nothing more of it lands for now; `damaged` that what comes
    after a place in it cannot be read at all.

    `memo` and `mark` are what the cursor keeps for the dialect: how it reads the file, and why it has to look again.
    `replaces` is the target that the file has landed as before, and counts as no more once all that lies there has
    landed anew. `beside` says how another file was listed that has a say in how this one is read.
    """

    file: SourceFile
    stat: ObjectStat
    waiting: str = ""
    damaged: str = ""
    held: bool = False
    memo: str = ""
    mark: str = ""
    replaces: str = ""
    beside: str = ""


@dataclass(frozen=True, slots=True)
class Pass:
    """What a dialect may ask of the pass it works for: its clock (nanoseconds), how long a thread waits for its parent
    (seconds), the longest line that is read (bytes), and the session's cursors by target."""

    now: int
    parent_wait: int
    max_line_bytes: int
    cursors: Mapping[str, SourceCursor]


@dataclass(frozen=True, slots=True)
class Discovery:
    """What a listing of the source came to: each session's files in landing order, places that could not be listed
    (place, reason), and files that can only be read in part (key, reason)."""

    sessions: Mapping[str, list[Sighting]] = field(default_factory=dict)
    unreadable: tuple[tuple[str, str], ...] = ()
    damaged: tuple[tuple[str, str], ...] = ()


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
    def kind(self) -> str:
        """The kind of source as people name it."""

    @property
    def place(self) -> str:
        """What a source of this kind is, or holds, in words that follow "it should be, or hold,"."""

    @property
    def adapter(self) -> str:
        """Who collected, as landed headers name it."""

    @property
    def is_stateless(self) -> bool:
        """Whether a line means the same whatever was read before, so that several sessions may be read at once."""

    def discover(self, store: ObjectStore) -> Discovery:
        """Every session of the source with its files."""

    def placed(self, found: Discovery, zone: Zone) -> Discovery:
        """What was found, each file where it has landed before, if it can be told so only from the zone."""

    def locate(self, key: str) -> SourceFile | None:
        """What lies at `key`, None for what is none of a session's."""

    def opened(self, sighting: Sighting, at: Pass) -> Sighting:
        """The file as it is read, before anything of it is: its size may be another than the listed one, and it may
        land as another file than it did before.

        Raises `LogRejected` for a file of which nothing may land.
        """

    def convert(self, line: Line, file: SourceFile) -> Converted:
        """The record of a line. It never refuses one: what cannot be understood becomes an `unknown` part."""
