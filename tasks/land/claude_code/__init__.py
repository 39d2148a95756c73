"""Claude Code's `projects` folder as a source, dialect `claude-code/1`."""

from storage.objects import ObjectStore
from storage.zone import Zone
from tasks.land.claude_code import convert as _convert
from tasks.land.claude_code import discover as _discover
from tasks.land.source import Converted, Discovery, Line, Pass, Sighting, SourceFile

__all__ = ["ClaudeCode"]


class ClaudeCode:
    """A `tasks.land.source.Dialect`."""

    name = "claude-code/1"
    kind = "claude-code"
    place = "a folder `projects` with `<project>/<session>.jsonl`"
    adapter = "claude-code-local/0.1.0"
    is_stateless = True

    def discover(self, store: ObjectStore) -> Discovery:
        return _discover.discover(store)

    def placed(self, found: Discovery, zone: Zone) -> Discovery:
        return found

    def locate(self, key: str) -> SourceFile | None:
        return _discover.source_file(key)

    def opened(self, sighting: Sighting, at: Pass) -> Sighting:
        return sighting

    def convert(self, line: Line, file: SourceFile) -> Converted:
        return _convert.convert(line, file)
