"""Claude Code's `projects` folder as a source, dialect `claude-code/1`."""

from storage.objects import ObjectStore
from tasks.land.claude_code import convert as _convert
from tasks.land.claude_code import discover as _discover
from tasks.land.source import Converted, Discovery, Line, SourceFile

__all__ = ["ClaudeCode"]


class ClaudeCode:
    """A `tasks.land.source.Dialect`."""

    name = "claude-code/1"
    adapter = "claude-code-local/0.1.0"

    def discover(self, store: ObjectStore) -> Discovery:
        return _discover.discover(store)

    def locate(self, key: str) -> SourceFile | None:
        return _discover.source_file(key)

    def convert(self, line: Line, file: SourceFile) -> Converted:
        return _convert.convert(line, file)
