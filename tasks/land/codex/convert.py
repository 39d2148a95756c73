"""A thread's lines as Session Data records, one a line, in order.

What a line means depends on the lines before it and on nothing else, so that a thread may be read in as many passes as
one likes. Nothing is refused: a line that is not JSON lands whole as an `unknown` part.
"""

from __future__ import annotations

from hashlib import sha256

from schemas.lenient_json import UndecodableJSON, check
from schemas.session_data import Record, encode_record
from tasks.land.codex.calls import call_facts
from tasks.land.codex.draft import Draft
from tasks.land.codex.events import event
from tasks.land.codex.items import item
from tasks.land.codex.parts import meta_parts, text_part, unknown_part
from tasks.land.codex.replay import Replay
from tasks.land.codex.rows import Row, read_row, text, within
from tasks.land.codex.state import ThreadState
from tasks.land.codex.usage import Tokens, usage_of
from tasks.land.source import Converted, Line

__all__ = ["ThreadReader"]

_BRACKETS_WITHOUT_DOUBT = 9_000
"""Fewer than this cannot be nested too deep once they stand inside a record."""


class ThreadReader:
    """Reads one rollout file. `thread` is its thread's id, `segment` the part of it that a revert began."""

    def __init__(self, thread: str, segment: str = "") -> None:
        self._name = f"{thread}_{segment}" if segment else thread
        self._state = ThreadState(thread)
        self._replay = Replay(thread)

    def convert(self, line: Line) -> Converted:
        """The record of the next line."""
        row = read_row(line.body, first=line.ord == 1)
        if row is None:
            reason = "the record is not a JSON object"
            return Converted(self._record(line, Draft(parts=[unknown_part(line.body, reason)])), reason)
        if line.ord == 1 and row.kind == "session_meta":
            self._state.begin(row.payload)
        draft, used = Draft(body=line.body, time=row.time), None
        if self._replay.is_copy(row):
            self._copied(row)
            draft.keep_line()
        else:
            draft.id = f"{self._name}#{row.ordinal}" if row.ordinal is not None else f"{self._name}@{line.ord}"
            used = self._own(row, draft)
        record = self._record(line, draft)
        if line.body.count(b"[") + line.body.count(b"{") > _BRACKETS_WITHOUT_DOUBT and not _fits(record):
            reason = "the record is nested too deep to stand inside another"
            return Converted(self._record(line, Draft(parts=[unknown_part(line.body, reason)])), reason)
        return Converted(record, call=None if used is None else call_facts(row, record, used, self._state.meta))

    def _copied(self, row: Row) -> None:
        """A copy of another thread's line is no record of this one, but counters and model go on from it."""
        if row.kind == "turn_context":
            self._state.model = text(row.payload, "model") or self._state.model
        elif row.name == "token_count":
            self._state.usage.replayed(row.payload)

    def _own(self, row: Row, draft: Draft) -> Tokens | None:
        """Fill in a line of the thread's own; what the response cost that it tells the usage of."""
        state = self._state
        used = None
        state.turns.enter(row, draft.id)
        if state.is_anothers(row):
            draft.keep_line()
        else:
            self._read(row, draft)
            used = _used(state, row)
            if used is not None:
                state.answered(draft, usage_of(used), text(within(row.payload, "info"), "model"))
        draft.run = state.turns.of(row)
        state.turns.leave(row)
        state.before = draft.id
        return used

    def _read(self, row: Row, draft: Draft) -> None:
        state = self._state
        match row.kind:
            case "session_meta":
                part, draft.dropped = meta_parts(row.payload)
                draft.parts.append(part)
                draft.label = text(row.payload, "agent_nickname")
            case "turn_context":
                state.model = text(row.payload, "model") or state.model
                draft.keep_line("injected")
            case "world_state":
                draft.keep_line("injected")
            case "response_item":
                item(state, row, draft)
            case "event_msg":
                event(state, row, draft)
            case "compacted":
                draft.parts.append(text_part(text(row.payload, "message")))
                draft.keep_line("context_reset")
                draft.trigger = "unknown"
                draft.continues = state.before
                state.compacted = draft.id
                state.turns.call = ""
            case _:
                draft.keep_line()

    @staticmethod
    def _record(line: Line, draft: Draft) -> Record:
        return draft.record(line.ord, line.off, sha256(line.body).hexdigest()[:12], len(line.body))


def _used(state: ThreadState, row: Row) -> Tokens | None:
    if row.kind == "token_usage_record":
        return state.usage.record(row.payload)
    is_count = row.kind == "event_msg" and row.name == "token_count"
    return state.usage.count(row.payload) if is_count else None


def _fits(record: Record) -> bool:
    try:
        check(encode_record(record))
    except UndecodableJSON:
        return False
    return True
