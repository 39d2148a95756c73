"""Claude Code's `projects` folder as a source, dialect `claude-code/1`."""

from schemas.session_data import Record
from storage.objects import ObjectStore
from tasks.land.claude_code import convert as _convert
from tasks.land.claude_code import discover as _discover
from tasks.land.source import Discovery, Line, SourceFile

__all__ = ["ClaudeCode"]


class ClaudeCode:
    """A `tasks.land.source.Dialect`."""

    name = "claude-code/1"
    adapter = "claude-code-local/0.1.0"

    def discover(self, store: ObjectStore) -> Discovery:
        return _discover.discover(store)

    def convert(self, line: Line, file: SourceFile) -> Record:
        return _convert.convert(line, file)
