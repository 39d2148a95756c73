"""A thread's lines as Session Data records, one a line, in order.

What a line means depends on the lines before it and on nothing else, so that a thread may be read in as many passes as
one likes. Nothing is refused: a line that is not JSON lands whole as an `unknown` part.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from schemas.lenient_json import is_deeper_than
from schemas.session_data import Record
from storage.replacements import anew
from tasks.land.codex.calls import call_facts
from tasks.land.codex.draft import Draft
from tasks.land.codex.events import event
from tasks.land.codex.items import item
from tasks.land.codex.mutations import mutation
from tasks.land.codex.parents import FindParent
from tasks.land.codex.parts import meta_parts, text_part, unknown_part
from tasks.land.codex.replay import Replay
from tasks.land.codex.rows import DEEPEST, Row, read_row, text, unmarked, within
from tasks.land.codex.state import ThreadState
from tasks.land.codex.usage import Tokens, usage_of
from tasks.land.nesting import TOO_DEEP, is_too_deep
from tasks.land.source import Converted, Line

__all__ = ["CORRECTED", "GUESSED", "UNCOUNTED", "Reading", "ThreadReader"]

GUESSED, CORRECTED = "replay_guessed", "replay_corrected"
"""Flags of a thread that begins with copies: of its first copied record, that where they end was guessed; of its first
record, that this is another landing of the thread, in which they end where they do."""

UNCOUNTED = "usage_unknown"
"""Flag of a counter's line that stands for responses of which nobody knows what they used, so that none is counted."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How a file is read: `copied` is its last copied line, 0 when lines tell that as they come; `is_guess` says that
    it may be another; `generation` counts the file's landings."""

    copied: int = 0
    is_guess: bool = False
    generation: int = 1


class ThreadReader:
    """Reads one rollout file. `thread` is its thread's id, `segment` the part of it that a revert began; `find_parent`
    has the threads that are at hand."""

    def __init__(
        self,
        thread: str,
        segment: str = "",
        find_parent: FindParent = lambda meta: None,
        reading: Reading = Reading(),
    ) -> None:
        self._name = f"{thread}_{segment}" if segment else thread
        self._state = ThreadState(thread)
        self._reading = reading
        self._replay = Replay(thread, find_parent, copied=reading.copied)
        self._copies = 0

    def convert(self, line: Line) -> Converted:
        """The record of the next line."""
        body = unmarked(line.body, first=line.ord == 1)
        row = read_row(body, first=line.ord == 1)
        if row is None:
            return self._unknown(line, "the record is not a JSON object")
        if is_deeper_than(DEEPEST, body):
            return self._unknown(line, TOO_DEEP)
        if line.ord == 1 and row.kind == "session_meta":
            self._state.begin(row.payload)
        draft, used = Draft(body=body, time=row.time), None
        if self._replay.is_copy(line, row):
            self._copied(row)
            self._copies += 1
            draft.keep_line(*([GUESSED] if self._reading.is_guess and self._copies == 1 else []))
        else:
            draft.id = f"{self._name}#{row.ordinal}" if row.ordinal is not None else f"{self._name}@{line.ord}"
            used = self._own(row, draft)
            if line.ord == 1 and self._reading.generation > 1:
                # What has landed under the id stays as it is; this one says that the thread has landed anew.
                draft.id = anew(draft.id, self._reading.generation)
                draft.flags.append(CORRECTED)
        record = self._record(line, draft)
        if is_too_deep(line.body, record):
            return self._unknown(line, TOO_DEEP)
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
            if _is_count(row) and state.usage.is_unknown(row.payload):
                draft.flags.append(UNCOUNTED)
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
                draft.continues = _cut(state.thread, row)
            case "turn_context":
                state.model = text(row.payload, "model") or state.model
                draft.keep_line("injected")
            case "world_state":
                draft.keep_line("injected")
            case "response_item":
                item(state, row, draft)
            case "event_msg":
                event(state, row, draft)
            case "history_mutation":
                mutation(state, row, draft)
            case "compacted":
                draft.parts.append(text_part(text(row.payload, "message")))
                draft.keep_line("context_reset")
                draft.trigger = "unknown"
                draft.continues = state.before
                state.compacted = draft.id
                state.turns.call = ""
            case _:
                draft.keep_line()

    def _unknown(self, line: Line, reason: str) -> Converted:
        return Converted(self._record(line, Draft(parts=[unknown_part(line.body, reason)])), reason)

    @staticmethod
    def _record(line: Line, draft: Draft) -> Record:
        return draft.record(line.ord, line.off, sha256(line.body).hexdigest()[:12], len(line.body))


def _cut(thread: str, row: Row) -> str:
    """The record after which a revert cut the thread: it goes on from there in this file, and what came after in the
    earlier one is taken back."""
    base = within(row.payload, "history_base")
    end = base.get("end_ordinal_exclusive")
    return f"{thread}#{end - 1}" if text(base, "thread_id") == thread and type(end) is int and end > 0 else ""


def _used(state: ThreadState, row: Row) -> Tokens | None:
    if row.kind == "token_usage_record":
        return state.usage.record(row.payload)
    return state.usage.count(row.payload) if _is_count(row) else None


def _is_count(row: Row) -> bool:
    return row.kind == "event_msg" and row.name == "token_count"
