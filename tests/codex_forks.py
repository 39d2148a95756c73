"""An old Codex client's forks, which begin with a copy of their parent's lines, in a source and a zone of their own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import zstandard

from schemas.session_data import Record, read_session_data, text_of
from storage.objects import ObjectStore
from storage.zone import Zone
from tasks.assemble import AssembleOptions, assemble_session
from tasks.export.conversation import read_conversation
from tasks.export.exchanges import exchanges_of
from tasks.land.archive import land_archive
from tasks.land.kinds import recognise
from tasks.land.outcome import LandOptions, SessionLanding
from tasks.verify import verify_session
from tests.memory_store import MemoryStore
from tests.usage_sessions import count, rows

__all__ = ["CHILD", "CREATED", "DAY", "HOUR", "LATER", "PARENT", "Forks", "answer", "at", "meta", "prompt", "said"]

PARENT = "01a19b8a-7238-7001-8a01-51d0c0de1eef"
CHILD = "01a19b8b-0000-7001-8a01-51d0c0de0000"
CREATED = 1_793_610_000_000_000_000
"""2026-11-02T09:00:00Z, when forks are made."""
HOUR, DAY = 3_600_000_000_000, 86_400_000_000_000
LATER = CREATED + 2 * DAY
Row = dict[str, Any]


def at(second: float, row: Row) -> Row:
    """The row so many seconds after the fork was made."""
    minute, rest = divmod(second, 60)
    return {"timestamp": f"2026-11-02T09:{int(minute):02}:{rest:06.3f}Z", **row}


def meta(thread: str, **fields: Any) -> Row:
    payload = {"id": thread, "timestamp": "2026-11-02T09:00:00Z", **fields}
    return {"type": "session_meta", "payload": payload}


def said(role: str, words: str) -> Row:
    content = [{"type": "output_text" if role == "assistant" else "input_text", "text": words}]
    return {"type": "response_item", "payload": {"type": "message", "role": role, "content": content}}


def prompt(words: str) -> list[Row]:
    return [said("user", words)]


def answer(words: str, total: int, last: int | None = None) -> list[Row]:
    """An answer, and the counter after it, which may say what the answer itself used."""
    info = {"total_token_usage": {"input_tokens": total}}
    info |= {} if last is None else {"last_token_usage": {"input_tokens": last}}
    return [said("assistant", words), {"type": "event_msg", "payload": {"type": "token_count", "info": info}}]


class Forks:
    """A source, a zone and a data set of usage, all in memory unless the zone is another store."""

    def __init__(self, zone: ObjectStore | None = None) -> None:
        self.source = MemoryStore()
        self.store: ObjectStore = MemoryStore() if zone is None else zone
        self.zone = Zone(self.store)
        self.usage = MemoryStore()

    def elsewhere(self, url: str) -> Forks:
        """Another machine's source, for the same zone and data set."""
        other = Forks(self.store)
        other.source.url = url
        other.usage = self.usage
        return other

    def key(self, thread: str, folder: str = "sessions/2026/11/02") -> str:
        return f"{folder}/rollout-2026-11-02T09-00-00-{thread}.jsonl"

    def put(self, thread: str, lines: Iterable[Row], *, packed: bool = False, folder: str = "") -> None:
        data = b"".join(json.dumps(row).encode() + b"\n" for row in lines)
        key = self.key(thread, folder) if folder else self.key(thread)
        self.source.objects[key + ".zst" * packed] = zstandard.compress(data) if packed else data

    def drop(self, thread: str) -> None:
        self.source.objects.pop(self.key(thread))

    def land(self, now: int = LATER, only: str = "", **limits: int) -> dict[str, SessionLanding]:
        """What came of all sessions, or of `only` this one."""
        dialect, source, found = recognise(self.source, "codex")
        options = LandOptions(now=now, **limits)
        outcomes = land_archive(self.zone, source, dialect, found, options, lambda session, _: only in ("", session))
        return {each.session: each for each in outcomes}

    def counted(self) -> list[tuple[str, str, int]]:
        """Session, stream and input of every call, from a data set kept up to date, which is that built anew."""
        assert count(self.store, self.usage).problems == []
        anew = MemoryStore()
        count(self.store, anew)
        assert _days(self.usage) == _days(anew)
        assert not count(self.store, self.usage).changed
        return sorted(rows(self.usage, "session_id", "stream_id", "input_total"))

    def own(self, thread: str = CHILD) -> list[int]:
        """The calls of a thread that is a session."""
        return [used for session, _, used in self.counted() if session == thread]

    def conversation(self, thread: str = CHILD) -> list[tuple[str, str | None]]:
        """What was asked and answered, as exports have it, of a session that assembles and verifies."""
        assemble_session(self.zone, thread, AssembleOptions(now=LATER))
        assert verify_session(self.zone, thread).problems == []
        conversation = read_conversation(self.zone, thread)
        assert conversation is not None
        found = [(each, each.answer(last=False)) for each in exchanges_of(conversation)]
        return [
            (" ".join(text for said in each.said for text in said.texts), None if given is None else given.texts[-1])
            for each, given in found
        ]

    def flags(self, thread: str = CHILD) -> set[str]:
        return {flag for each in self.records(thread) for flag in each.flags if flag.startswith("replay")}

    def records(self, thread: str) -> list[Record]:
        refs = self.zone.landed_files(thread)
        return [each for ref in refs for each in read_session_data(self.zone.read(ref), name=ref.key).records]

    def texts(self, thread: str) -> list[str]:
        """Prompts as they landed."""
        prompts = (each for each in self.records(thread) if "external_input" in each.flags)
        return [text_of(part) for each in prompts for part in each.parts if part.k == "text"]


def _days(usage: MemoryStore) -> dict[str, bytes]:
    return {key: data for key, data in usage.objects.items() if key.startswith("date=")}
