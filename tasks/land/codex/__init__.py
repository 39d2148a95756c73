"""Codex' own folder as a source, dialect `codex/1`."""

from collections.abc import Iterator
from dataclasses import replace

from schemas.errors import ObjectMissing, StoreError
from storage.objects import ObjectStat, ObjectStore
from storage.zone import Zone
from tasks.land.codex import discover as _discover
from tasks.land.codex.at_hand import ParentsAtHand
from tasks.land.codex.before import lines_before
from tasks.land.codex.convert import Reading, ThreadReader
from tasks.land.codex.copied import read_copies
from tasks.land.codex.families import Families
from tasks.land.codex.kinds import rollout_name
from tasks.land.codex.placed import placed_again
from tasks.land.codex.titles import INDEX, TITLE, convert_title, home_of, title_file, titles_in
from tasks.land.codex.unpacked import UnpackedStore, is_packed
from tasks.land.source import Converted, Discovery, Line, Pass, Sighting, SourceFile

__all__ = ["Codex"]


class Codex:
    """A `tasks.land.source.Dialect` for one folder. What a line means depends on the lines before it, so those that an
    earlier pass landed are read again, from `source`, which the collector has to read from as well."""

    name = "codex/1"
    kind = "codex"
    place = "Codex' own folder, with `sessions`"
    adapter = "codex-local/0.1.0"
    is_stateless = False

    def __init__(self, store: ObjectStore) -> None:
        self._unpacked = UnpackedStore(store)
        self.source: ObjectStore = self._unpacked
        self._located: dict[str, SourceFile] = {}
        self._rollouts: dict[str, ObjectStat] = {}
        self._families = Families({})
        self._parents = ParentsAtHand(self.source, self._rollouts, self._families, None)
        self._readings: dict[str, Reading] = {}
        self._target = ""
        self._reader = ThreadReader("")
        self._next = (0, 0)

    def discover(self, store: ObjectStore) -> Discovery:
        found, self._families = _discover.discover(store)
        found = self._with_titles(found)
        self._located = {each.file.key: each.file for sightings in found.sessions.values() for each in sightings}
        self._rollouts = _first_parts(found)
        self._parents = ParentsAtHand(self.source, self._rollouts, self._families, None)
        return found

    def placed(self, found: Discovery, zone: Zone) -> Discovery:
        """What was found, with what has landed of it before: a thread whose session is only known from its parents
        stays where it is, and threads are found in `zone` too from now on."""
        self._parents = ParentsAtHand(self.source, self._rollouts, self._families, zone)
        placed = placed_again(found, self._families, self._parents, zone.store.read_ahead)
        self._located = {each.file.key: each.file for sightings in placed.sessions.values() for each in sightings}
        return placed

    def locate(self, key: str) -> SourceFile | None:
        """What lies or lay at `key`. Of one that is gone only the name is known, so it is taken for a main thread's."""
        name = rollout_name(key)
        if name is None or key in self._located:
            index, _, thread = key.rpartition("#")
            gone = title_file(thread, key) if index.endswith(INDEX) else None
            return self._located.get(key, gone)
        return _discover.source_file(name.thread, name.thread, name.segment, key)

    def opened(self, sighting: Sighting, at: Pass) -> Sighting:
        """A rollout as it is read: a packed one with the size that it has unpacked, which no listing tells, and one
        that begins with copies with where they end."""
        key = sighting.file.key
        if is_packed(key):
            if (stat := self._unpacked.stat(key)) is None:
                raise ObjectMissing(key)
            sighting = replace(sighting, stat=stat, damaged=self._unpacked.damaged.get(key, ""))
        name = rollout_name(key)
        if name is None or name.segment:
            return sighting

        self._parents.max_line_bytes = at.max_line_bytes

        def lines(piece: int) -> Iterator[Line]:
            end = sighting.stat.size
            return lines_before(self.source, key, end, max_line_bytes=at.max_line_bytes, piece=piece)

        read, reading = read_copies(sighting, name.thread, lines, self._parents, at)
        self._readings[read.file.target] = reading
        self._target = ""  # a reader that was at work may read otherwise
        return read

    def convert(self, line: Line, file: SourceFile) -> Converted:
        if file.kind == TITLE:
            return convert_title(line)
        if (self._target, self._next) != (file.target, (line.ord, line.off)):
            self._begin(line, file)
        self._next = line.ord + 1, line.off + len(line.body) + 1
        return self._reader.convert(line)

    def _with_titles(self, found: Discovery) -> Discovery:
        """The sessions with the titles that the indexes beside their rollouts have for them."""
        homes = {home_of(each.file.key) for sightings in found.sessions.values() for each in sightings}
        sessions = dict(found.sessions)
        damaged = list(found.damaged)
        for home in sorted(homes):
            try:
                titles = self._titles(home)
            except StoreError as error:
                damaged.append((f"{home}{INDEX}", str(error)))
                continue
            for thread, title, body in titles:
                known = sessions.get(thread, [])
                # The copy that is read stands first; another machine's title of it does not count.
                if known and known[0].file.place == "main" and home_of(known[0].file.key) == home:
                    self._unpacked.make(title, body)
                    sessions[thread] = [*known, Sighting(title_file(thread, title.key), title)]
        return replace(found, sessions=sessions, damaged=tuple(damaged))

    def _titles(self, home: str) -> list[tuple[str, ObjectStat, bytes]]:
        stat = self.source.stat(f"{home}{INDEX}")
        return [] if stat is None else list(titles_in(self.source, stat))

    def _begin(self, line: Line, file: SourceFile) -> None:
        """Read what comes before `line`."""
        name = rollout_name(file.key)
        assert name is not None
        reading = self._readings.get(file.target, Reading())
        self._target, self._reader = file.target, ThreadReader(name.thread, name.segment, self._parents.find, reading)
        longest = self._parents.max_line_bytes
        for before in lines_before(self.source, file.key, line.off, max_line_bytes=longest):
            self._reader.convert(before)


def _first_parts(found: Discovery) -> dict[str, ObjectStat]:
    """The rollout that is read of each thread, without the parts that reverts began."""
    rollouts: dict[str, ObjectStat] = {}
    for sightings in found.sessions.values():
        for each in sightings:
            name = rollout_name(each.file.key)
            if name is not None and not name.segment:
                rollouts.setdefault(name.thread, each.stat)
    return rollouts
