"""Logs of a source as they are read: each decompressed, judged and decoded once, and what else is made from them.

A log that its own program would refuse is refused whole, with the rule it breaks. One that is cut short has what is
whole of it. Limits on size and ratio meet what a few bytes can ask for.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

from schemas.dsh import LogHeader, StoredLog, read_log_and_text
from schemas.dsh_lineage import ChildsWord, ParentsWord, childs_word, parents_word
from storage.objects import ObjectStore
from tasks.land.dsh.children import tools_by_result
from tasks.land.dsh.databases import Databases, database_of

__all__ = ["LogShelf", "OpenLog"]

_LARGEST_RATIO = 2_000
_SMALL = 16 << 20
_KEPT = 2
_KEPT_BYTES = 256 << 20
"""Of text that is kept beside the log that was opened last."""


@dataclass(frozen=True, slots=True)
class OpenLog:
    """A log, the text that lands of it, and what stands behind that and waits."""

    log: StoredLog
    text: bytes
    waiting: str


class LogShelf:
    """The last few logs that were opened, and what every one of them said of its family."""

    def __init__(self, store: ObjectStore, databases: Databases, *, max_bytes: int) -> None:
        self._store = store
        self._databases = databases
        self._max_bytes = max_bytes
        self._open: OrderedDict[str, tuple[str, OpenLog]] = OrderedDict()
        self._parents: dict[str, tuple[str, tuple[ParentsWord, dict[int, str]]]] = {}
        self._children: dict[str, tuple[str, ChildsWord]] = {}
        self.parents: set[str] = set()
        """The keys of the logs whose sessions have sub-agents."""

    def open(self, key: str, etag: str | None = None) -> OpenLog:
        """The log at `key`, read anew unless it was last read as `etag` or that is None.

        Raises `LogRejected`, and as the store does.
        """
        held = self._open.get(key)
        if held is not None and etag in (None, held[0]):
            self._open.move_to_end(key)
            return held[1]
        self._open.pop(key, None)
        while len(self._open) >= _KEPT or sum(len(each.text) for _, each in self._open.values()) > _KEPT_BYTES:
            self._open.popitem(last=False)
        opened = self._read(key)
        self._open[key] = etag or "", opened
        self._note(key, etag or "", opened)
        return opened

    def parents_word(self, key: str, etag: str) -> tuple[ParentsWord, dict[int, str]]:
        """What the log at `key` says of its children, and the tool ids of its results. Raises as `open` does."""
        if self._parents.get(key, ("", None))[0] != etag:
            self.parents.add(key)
            self._note(key, etag, self.open(key, etag))
        return self._parents[key][1]

    def childs_word(self, key: str, etag: str) -> ChildsWord:
        """What the log at `key` says of how it began. Raises as `open` does."""
        if self._children.get(key, ("", None))[0] != etag:
            self._children[key] = etag, childs_word(self.open(key, etag).log)
        return self._children[key][1]

    def _note(self, key: str, etag: str, opened: OpenLog) -> None:
        if key in self.parents:
            self._parents[key] = etag, (parents_word(opened.log), tools_by_result(opened.log))
        if opened.log.header.origin is not None:
            self._children[key] = etag, childs_word(opened.log)

    def _read(self, key: str) -> OpenLog:
        if database_of(key) is not None:
            log, text = self._databases.read(key)
            return OpenLog(log, text, log.torn or "")
        packed = self._store.read(key)
        limit = min(self._max_bytes, max(_SMALL, len(packed) * _LARGEST_RATIO))
        log, text = read_log_and_text(packed, name=key, limit=limit)
        if log.torn is not None and log.torn_frame is not None and len(log.frames) == 1 and _is_seeded(log.header):
            # Where what it inherited ends, only the whole first batch says.
            events: list[dict[str, object]] = []
            log = replace(log, events=events, lines=[], text_end=log.frames_end)
            return OpenLog(log, text[: log.frames_end], "what it inherited is not there whole")
        return OpenLog(log, text, log.torn or "")


def _is_seeded(header: LogHeader) -> bool:
    return header.version >= 2 and header.is_seeded is True
