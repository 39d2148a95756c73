"""A zone: the layout of a storage root (session-flow specification, section 2).

A session's id, as used here, is the name of its folder; an id from the data becomes one with `keys.escape_id`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from schemas.errors import ObjectMissing
from storage.ahead import read_in_order, reads_in_order
from storage.chains import CONVERSATIONS, ChainStore
from storage.keys import escape_id, unescape_id
from storage.objects import ObjectStore

__all__ = ["Cursor", "Folder", "LandedRef", "Zone"]

Folder = Literal["streams", "runs", "provider_body"]

QUARANTINE = "_quarantine/"
INDEX = "index/sessionmill.state"
CURSOR = ".cursor"

# The order in which the original walks them; it decides between files of one sequence.
_FOLDERS: tuple[Folder, ...] = ("streams", "runs", "provider_body")
_LANDED_NAME = re.compile(r".*-([0-9]{6,})\.sd", re.DOTALL)


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


class Zone:
    """The sessions, landed files and conversation chains of one storage root."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store

    def sessions(self) -> list[str]:
        """Every session that has a folder, sorted. A folder without landed files counts."""
        folders, _ = self.store.children("")
        return [name for name in folders if not name.startswith("_")]

    def conversations(self) -> list[str]:
        """Every conversation that has a folder, sorted."""
        return self.store.children(CONVERSATIONS)[0]

    def chain(self, conversation: str) -> ChainStore:
        """The chain of one conversation, empty when it has no folder."""
        return ChainStore(self.store, conversation)

    def landed_files(self, session: str) -> list[LandedRef]:
        """The session's landed files in sequence order."""
        found = [ref for folder in _FOLDERS for ref in self._landed_in(session, folder)]
        return sorted(found, key=lambda ref: (ref.seq, _FOLDERS.index(ref.folder), ref.place, ref.name))

    def read(self, ref: LandedRef) -> bytes:
        """One landed file; raises as `ObjectStore.read` does."""
        return self.store.read(ref.key)

    def read_many(self, refs: Iterable[LandedRef]) -> Iterator[tuple[LandedRef, bytes]]:
        """Landed files with their bytes, in the order given, read ahead where the store is far."""
        return read_in_order(self.store, refs)

    def reads(self, refs: Iterable[LandedRef]) -> Iterator[tuple[LandedRef, Callable[[], bytes]]]:
        """As `read_many`, but each file's bytes are asked for by a call, which raises that file's own error."""
        return reads_in_order(self.store, refs)

    def cursors(self, session: str) -> list[Cursor]:
        """The collector's cursors of the session, streams before runs, each sorted by key."""
        found = []
        for folder in _FOLDERS[:2]:
            for stat in self.store.list(f"{session}/{folder}/"):
                place, _, name = stat.key[len(f"{session}/{folder}/") :].partition("/")
                if name.endswith(CURSOR) and "/" not in name:
                    values = _values(self.store.read(stat.key))
                    found.append(Cursor(stat.key, folder, place, name.removesuffix(CURSOR), values))
        return found

    def read_index(self, session: str) -> bytes | None:
        """The session's derived index as `write_index` left it, or None."""
        try:
            return self.store.read(f"{session}/{INDEX}")
        except ObjectMissing:
            return None

    def write_index(self, session: str, data: bytes) -> None:
        """Keep the session's derived index; it may be lost at any time."""
        self.store.replace(f"{session}/{INDEX}", data)

    def quarantine(self, session: str, reason: dict[str, Any]) -> None:
        """Note why a session was left out; the note is derived, and a later success clears it."""
        text = orjson.dumps(reason, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
        self.store.replace(_quarantine_key(session), text)

    def clear_quarantine(self, session: str) -> None:
        """Take the note back; nothing happens when there is none."""
        self.store.delete(_quarantine_key(session))

    def quarantined(self) -> list[str]:
        """Every session with a note, sorted."""
        names = (stat.key.removeprefix(QUARANTINE) for stat in self.store.children(QUARANTINE)[1])
        return sorted(unescape_id(name.removesuffix(".json")) for name in names if name.endswith(".json"))

    def quarantine_reason(self, session: str) -> dict[str, Any] | None:
        """The note as `quarantine` took it, or None."""
        try:
            reason: dict[str, Any] = orjson.loads(self.store.read(_quarantine_key(session)))
        except ObjectMissing:
            return None
        return reason

    def _landed_in(self, session: str, folder: Folder) -> Iterator[LandedRef]:
        """Files at exactly the depth where landed files lie: nothing deeper is looked at."""
        below = f"{session}/{folder}/"
        for stat in self.store.list(below):
            place, _, name = stat.key[len(below) :].rpartition("/")
            found = _LANDED_NAME.fullmatch(name)
            if found is None or "/" in place or bool(place) == (folder == "provider_body"):
                continue
            yield LandedRef(int(found[1]), stat.key, stat.size, folder, place, name, name.partition("-")[0])


def _quarantine_key(session: str) -> str:
    return f"{QUARANTINE}{escape_id(session)}.json"


def _values(data: bytes) -> dict[str, str]:
    lines = (line.partition(" ") for line in data.decode("utf-8", "replace").split("\n"))
    return {key: value.strip() for key, _, value in lines if key}
