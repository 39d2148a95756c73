"""DeepSeek Harness' sessions as a source, dialect `deepseek-harness/1`."""

from hashlib import sha256

from schemas.dsh_root import place_of
from storage.objects import ObjectStat, ObjectStore
from storage.zone import Zone
from tasks.land.cursors import cursor_key
from tasks.land.dsh.children import described
from tasks.land.dsh.convert import LogReader
from tasks.land.dsh.databases import database_of
from tasks.land.dsh.discover import Found, find_sessions, log_file
from tasks.land.dsh.heads import id_of_directory
from tasks.land.dsh.kinds import MAIN, TRANSCRIPT, name_of
from tasks.land.dsh.opened import LogStore
from tasks.land.listing import list_all
from tasks.land.source import Converted, Discovery, Line, Pass, Sighting, SourceFile

__all__ = ["DeepSeekHarness"]

_DEEPEST = 12
"""Folders above a log, with some to spare for those above the root."""


class DeepSeekHarness:
    """A `tasks.land.source.Dialect` for one source. Logs are judged whole before anything of them lands, so the
    collector has to read from `source`, which has them open."""

    name = "deepseek-harness/1"
    kind = "dsh"
    place = "DeepSeek Harness' `sessions`"
    adapter = "deepseek-harness-local/0.1.0"
    is_stateless = False

    def __init__(self, store: ObjectStore) -> None:
        self.source = LogStore(store)
        self._listed: list[ObjectStat] = []
        self._unreadable: list[tuple[str, str]] = []
        self._located: dict[str, SourceFile] = {}
        self._key = ""
        self._reader: LogReader | None = None

    def discover(self, store: ObjectStore) -> Discovery:
        self._listed, self._unreadable = list_all(store, deepest=_DEEPEST)
        return self._discovered(find_sessions(self._listed, self.source))

    def placed(self, found: Discovery, zone: Zone) -> Discovery:
        """Sub-agents whose parents' logs are gone stay with the sessions that they have landed with."""
        if not self.source.found.has_orphans:
            return found

        def has_landed(parent: str, child: str) -> bool:
            file = log_file(name_of(parent), name_of(child), "")
            return zone.store.stat(cursor_key(file.target)) is not None

        return self._discovered(find_sessions(self._listed, self.source, has_landed))

    def _discovered(self, found: Found) -> Discovery:
        self.source.found = found
        self.source.shelf.parents = {parent.stat.key for parent in found.parents.values()}
        self._located = {each.file.key: each.file for sightings in found.sessions.values() for each in sightings}
        sessions = {session: found.sessions[session] for session in sorted(found.sessions)}
        return Discovery(sessions, (*self._unreadable, *found.unreadable))

    def locate(self, key: str) -> SourceFile | None:
        """What lies or lay at `key`. Of one that is gone only the directory is known, so it is taken for a root's."""
        if key in self._located:
            return self._located[key]
        if (kept := database_of(key)) is not None:
            return log_file(name_of(kept[1]), MAIN, key)
        place = place_of(key)
        return None if place is None else log_file(name_of(id_of_directory(place.session)), MAIN, key)

    def opened(self, sighting: Sighting, at: Pass) -> Sighting:
        if sighting.file.kind == TRANSCRIPT:
            self._key, self._reader = "", None
        return self.source.opened(sighting)

    def convert(self, line: Line, file: SourceFile) -> Converted:
        if file.kind != TRANSCRIPT:
            digest = sha256(line.body).hexdigest()[:12]
            return Converted(described(file.kind, file.place, line.body).record(1, 0, digest, len(line.body)))
        if self._reader is None or self._key != file.key or self._reader.next > line.ord:
            log = self.source.shelf.open(file.key).log
            self._key, self._reader = file.key, LogReader(log, is_main=file.place == MAIN)
        return self._reader.convert(line)
