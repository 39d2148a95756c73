"""Relavium's sessions as a source, dialect `relavium/1`: JSON records with their messages, and `history.db`."""

from storage.objects import ObjectStore
from storage.zone import Zone
from tasks.land.relavium import convert as _convert
from tasks.land.relavium import discover as _discover
from tasks.land.relavium.documents import DocumentStore
from tasks.land.relavium.kinds import DocumentKey
from tasks.land.relavium.kinds import source_file as _source_file
from tasks.land.source import Converted, Discovery, Line, Pass, Sighting, SourceFile

__all__ = ["Relavium"]


class Relavium:
    """A `tasks.land.source.Dialect` for one folder. The collector has to read from `source`, which shows each session
    as two documents."""

    name = "relavium/1"
    kind = "relavium"
    place = "Relavium's `history.db`, or documents of its sessions"
    adapter = "relavium-local/0.1.0"
    is_stateless = False

    def __init__(self, store: ObjectStore) -> None:
        self._documents = DocumentStore(store)

    @property
    def source(self) -> ObjectStore:
        return self._documents

    def discover(self, store: ObjectStore) -> Discovery:
        """The sessions of the folder that this was made for, which `store` has to be as well."""
        return _discover.discover(self._documents)

    def placed(self, found: Discovery, zone: Zone) -> Discovery:
        return found

    def locate(self, key: str) -> SourceFile | None:
        found = DocumentKey.read(key)
        return None if found is None else _source_file(found)

    def opened(self, sighting: Sighting, at: Pass) -> Sighting:
        return sighting

    def convert(self, line: Line, file: SourceFile) -> Converted:
        return _convert.convert(line, file)
