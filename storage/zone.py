"""A zone: the layout of a storage root (session-flow specification, section 2).

A session's id, as used here, is the name of its folder; an id from the data becomes one with `keys.escape_id`.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from schemas.errors import KeyRefused, ObjectMissing
from storage.ahead import read_in_order, reads_in_order
from storage.caches import read_cache, write_cache
from storage.chains import CONVERSATIONS, ChainStore
from storage.keys import escape_id, unescape_id
from storage.objects import ObjectStat, ObjectStore

__all__ = ["RESERVED", "Cursor", "Folder", "LandedRef", "Zone", "quarantine_key"]

Folder = Literal["streams", "runs", "provider_body"]

QUARANTINE = "_quarantine/"
INDEX = "index/sessionmill.state"
CURSOR = ".cursor"
RESERVED = frozenset(("_calls", "_conversations", "_landing", "_quarantine"))
"""The folders of a zone that are not sessions and have a meaning; nothing else may be put there."""

_FOLDERS: tuple[Folder, ...] = ("streams", "runs", "provider_body")
_EVIDENCE = frozenset(_FOLDERS)
_LANDED_NAME = re.compile(r".*-([0-9]{6,})\.sd", re.DOTALL)
_STAMPED_NAME = re.compile(r"(.+)-[0-9]{8}T[0-9]{6}\.[0-9]{9}Z-[0-9]{6,}\.sd", re.DOTALL)


@dataclass(frozen=True, slots=True)
class LandedRef:
    """Where a landed file lies. `seq` is the number in its name, THE sequence; `place` the stream or run (empty for
    provider bodies); `prefix` the name's kind, as in ``transcript-…``; `size` in bytes."""

    seq: int
    key: str
    size: int
    folder: Folder
    place: str
    name: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far the collector says it has read one source: a text of ``key value`` lines beside what it landed."""

    key: str
    folder: Folder
    place: str
    prefix: str
    values: dict[str, str]


class _File(NamedTuple):
    folder: Folder
    place: str
    name: str
    stat: ObjectStat


class Zone:
    """The sessions, landed files and conversation chains of one storage root."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store

    def sessions(self) -> list[str]:
        """Every session that has a folder, sorted. A folder without landed files counts."""
        folders, _ = self.store.children("")
        return [name for name in folders if not name.startswith("_")]

    def has_evidence(self, session: str) -> bool:
        """Whether the session's folder is one of a session: landed files lie in it. Other things have folders of the
        same names, as an archive of agents' runs has."""
        return not _EVIDENCE.isdisjoint(self.store.children(f"{session}/")[0]) and bool(self.landed_files(session))

    def conversations(self) -> list[str]:
        """Every conversation that has a folder, sorted."""
        return self.store.children(CONVERSATIONS)[0]

    def chain(self, conversation: str) -> ChainStore:
        """The chain of one conversation, empty when it has no folder."""
        return ChainStore(self.store, conversation)

    def landed_files(self, session: str) -> list[LandedRef]:
        """The session's landed files in sequence order."""
        return _landed(self._files(session))

    def cursors(self, session: str) -> list[Cursor]:
        """The collector's cursors of the session, streams before runs, each sorted by place and name."""
        return self._cursors(self._files(session))

    def cursor_values(self, key: str) -> dict[str, str] | None:
        """The lines of the cursor that lies there, None when there is none."""
        try:
            return _values(self.store.read(key))
        except ObjectMissing:
            return None

    def landed_files_and_cursors(self, session: str) -> tuple[list[LandedRef], list[Cursor]]:
        """Both from one listing."""
        files = self._files(session)
        return _landed(files), self._cursors(files)

    def read(self, ref: LandedRef) -> bytes:
        """One landed file; raises as `ObjectStore.read` does."""
        return self.store.read(ref.key)

    def read_many(self, refs: Iterable[LandedRef]) -> Iterator[tuple[LandedRef, bytes]]:
        """Landed files with their bytes, in the order given, read ahead where the store is far."""
        return read_in_order(self.store, refs)

    def reads(self, refs: Iterable[LandedRef]) -> Iterator[tuple[LandedRef, Callable[[], bytes]]]:
        """As `read_many`, but each file's bytes are asked for by a call, which raises that file's own error."""
        return reads_in_order(self.store, refs)

    def read_index(self, session: str) -> bytes | None:
        """The session's derived index as `write_index` left it, or None."""
        return read_cache(self.store, f"{session}/{INDEX}")

    def write_index(self, session: str, data: bytes) -> None:
        """Keep the session's derived index; it may be lost at any time."""
        write_cache(self.store, f"{session}/{INDEX}", data)

    def quarantine(self, session: str, reason: dict[str, Any]) -> None:
        """Note why a session was left out; the note is derived, and a later success clears it."""
        # The standard encoder: names from a file system may hold surrogates, which others refuse.
        text = json.dumps(reason, indent=2, sort_keys=True)
        self.store.replace(quarantine_key(session), text.encode() + b"\n")

    def clear_quarantine(self, session: str) -> None:
        """Take the note back; nothing happens when there is none."""
        self.store.delete(quarantine_key(session))

    def quarantined(self) -> list[str]:
        """Every session with a note, sorted."""
        found = []
        for stat in self.store.children(QUARANTINE)[1]:
            name = stat.key.removeprefix(QUARANTINE)
            with contextlib.suppress(KeyRefused):  # not a note of ours
                found.append(unescape_id(name.removesuffix(".json")))
        return sorted(found)

    def quarantine_reason(self, session: str) -> dict[str, Any] | None:
        """The note as `quarantine` took it, or None."""
        try:
            reason: dict[str, Any] = json.loads(self.store.read(quarantine_key(session)))
        except ObjectMissing:
            return None
        return reason

    def _files(self, session: str) -> list[_File]:
        """Every object at exactly the depth where landed files lie: nothing deeper is looked at."""
        found = []
        for folder in _FOLDERS:
            below = f"{session}/{folder}/"
            for stat in self.store.list(below):
                place, _, name = stat.key[len(below) :].rpartition("/")
                if "/" not in place and bool(place) != (folder == "provider_body"):
                    found.append(_File(folder, place, name, stat))
        return found

    def _cursors(self, files: list[_File]) -> list[Cursor]:
        return [
            Cursor(stat.key, folder, place, name.removesuffix(CURSOR), _values(self.store.read(stat.key)))
            for folder, place, name, stat in files
            if name.endswith(CURSOR) and place
        ]


def _landed(files: list[_File]) -> list[LandedRef]:
    """Ordered by sequence; of two with one sequence, in the order in which the original walks the folders."""
    found = [
        LandedRef(int(match[1]), stat.key, stat.size, folder, place, name, _prefix(name))
        for folder, place, name, stat in files
        if (match := _LANDED_NAME.fullmatch(name))
    ]
    return sorted(found, key=lambda ref: (ref.seq, _FOLDERS.index(ref.folder), ref.place, ref.name))


def _prefix(name: str) -> str:
    """What stands before the time and the sequence; the part of a Codex thread that is named in it has dashes, too."""
    stamped = _STAMPED_NAME.fullmatch(name)
    return stamped[1] if stamped else name.partition("-")[0]


def quarantine_key(session: str) -> str:
    """Where the note of a session that is set aside lies."""
    return f"{QUARANTINE}{escape_id(session)}.json"


def _values(data: bytes) -> dict[str, str]:
    lines = (line.partition(" ") for line in data.decode("utf-8", "replace").split("\n"))
    return {key: value.strip() for key, _, value in lines if key}
