"""Codex' own folder as a source, dialect `codex/1`."""

from storage.objects import ObjectStore
from tasks.land.codex import discover as _discover
from tasks.land.codex.before import lines_before
from tasks.land.codex.convert import ThreadReader
from tasks.land.codex.kinds import rollout_name
from tasks.land.codex.unpacked import UnpackedStore
from tasks.land.source import Converted, Discovery, Line, SourceFile

__all__ = ["Codex"]


class Codex:
    """A `tasks.land.source.Dialect` for one folder. What a line means depends on the lines before it, so those that an
    earlier pass landed are read again, from `source`, which the collector has to read from as well."""

    name = "codex/1"
    adapter = "codex-local/0.1.0"

    def __init__(self, store: ObjectStore) -> None:
        self.source: ObjectStore = UnpackedStore(store)
        self._located: dict[str, SourceFile] = {}
        self._key = ""
        self._reader = ThreadReader("")
        self._next = (0, 0)

    def discover(self, store: ObjectStore) -> Discovery:
        found = _discover.discover(store)
        self._located = {each.file.key: each.file for sightings in found.sessions.values() for each in sightings}
        return found

    def locate(self, key: str) -> SourceFile | None:
        """What lies or lay at `key`. Of one that is gone only the name is known, so it is taken for a main thread's."""
        name = rollout_name(key)
        if name is None or key in self._located:
            return self._located.get(key)
        return _discover.source_file(name.thread, name.thread, name.segment, key)

    def convert(self, line: Line, file: SourceFile) -> Converted:
        if (self._key, self._next) != (file.key, (line.ord, line.off)):
            self._begin(line, file)
        self._next = line.ord + 1, line.off + len(line.body) + 1
        return self._reader.convert(line)

    def _begin(self, line: Line, file: SourceFile) -> None:
        """Read what comes before `line`."""
        name = rollout_name(file.key)
        assert name is not None
        self._key, self._reader = file.key, ThreadReader(name.thread, name.segment)
        for before in lines_before(self.source, file.key, line.off):
            self._reader.convert(before)
