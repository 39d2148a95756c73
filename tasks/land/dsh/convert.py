"""A log's lines as Session Data records, one a line, in order; the log has been read and found sound.

What a line means depends on the events before it and on nothing after, so that a log may be read in as many passes as
one likes. Lines that are not asked for are read all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

from schemas.dsh import StoredLog
from schemas.dsh_facts import inherited_count
from schemas.session_data import Dropped, Part
from tasks.land.dsh import events, messages
from tasks.land.dsh.clock import Clock
from tasks.land.dsh.draft import Draft
from tasks.land.dsh.parts import json_text, line_part, plain
from tasks.land.dsh.state import LogState
from tasks.land.dsh.usage import call_facts
from tasks.land.nesting import is_too_deep
from tasks.land.source import Converted, Line

__all__ = ["LogReader"]

Event = dict[str, Any]

_TAKERS: dict[str, Callable[[LogState, Event, Draft], None]] = {
    "agent/inbox/spliced": events.inbox,
    "approval/decided": events.notice,
    "assistant/attempt": messages.attempt,
    "assistant/chunk": events.chunk,
    "assistant/message": messages.answer,
    "command/run": events.command,
    "compaction/end": events.compaction_end,
    "compaction/summary": events.summary,
    "llm/retry": events.notice,
    "request/header": events.request_header,
    "session/title": events.title,
    "step/end": events.step_end,
    "step/start": events.step_start,
    "system/message": messages.system,
    "tool-workflow/agent-start": events.workflow_agent,
    "tool/call": events.tool_call,
    "tool/result": messages.result,
    "turn/end": events.turn_end,
    "user/message": messages.prompt,
}


class LogReader:
    """Reads one log. `is_main` says whether it is its session's main stream."""

    def __init__(self, log: StoredLog, *, is_main: bool) -> None:
        self._log = log
        self._state = LogState(log.header, inherited_count(log.header, log.events), is_main=is_main)
        self._clock = Clock()
        self.next = 1
        """The number of the line that is read next."""

    def convert(self, line: Line) -> Converted:
        """The record of a line, `next` or one after it."""
        while self.next < line.ord:
            self._draft(self.next, b"{}", wanted=False)
            self.next += 1
        draft = self._draft(line.ord, line.body)
        self.next += 1
        record = draft.record(line.ord, line.off, sha256(line.body).hexdigest()[:12], len(line.body))
        if is_too_deep(line.body, record):
            reason = "the event is nested too deep to stand inside another"
            part = Part(k="unknown", text=json_text(reason), data=json_text(line.body.decode(errors="replace")))
            return Converted(draft.bare(record, part), reason)
        return Converted(record, call=call_facts(record, draft.tokens, self._log.header))

    def _draft(self, number: int, body: bytes, *, wanted: bool = True) -> Draft:
        state = self._state
        if number == 1:
            return Draft(time=self._clock.text(state.header.created_at), parts=[line_part(body)])
        line = self._log.lines[number - 2]
        held = self._log.events[line.first_seq : line.first_seq + line.events]
        draft = Draft(wanted=wanted, time=self._clock.text(int(held[0]["time"])) if wanted else "")
        if line.first_seq < state.cut:
            self._inherited(held, draft, len(body))
            return draft
        draft.id = state.id_of(line.first_seq)
        if held[0]["type"] == "turn/start":
            state.turns.begin(held[0], own=True)
            state.inbox.claimed = []
        draft.run = state.turns.run
        if len(held) > 1:  # a row of pieces
            state.chunks += [event["data"]["chunk"] for event in held]
        elif (take := _TAKERS.get(held[0]["type"])) is not None:
            take(state, held[0], draft)
        if held[0]["type"] == "turn/end":
            state.turns.end()
        if draft.parts is None and wanted:
            draft.parts = [line_part(body)]
        return draft

    def _inherited(self, held: list[Event], draft: Draft, size: int) -> None:
        """A copy of another session's event counts there, and its time is that one's too. A title stays the session's
        own until it has another."""
        for event in held:
            self._state.pass_over(event)
            if event["type"] == "session/title":
                events.title(self._state, event, draft)
        draft.time, draft.parts = "", []
        draft.dropped = (Dropped(what=plain(str(held[0]["type"])), bytes=size, why="inherited"),)
