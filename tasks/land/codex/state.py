"""What is known of a thread from the lines read so far."""

from __future__ import annotations

from schemas.session_data import Usage
from tasks.land.codex.draft import Draft
from tasks.land.codex.rows import Members, Row, text, within
from tasks.land.codex.turns import Turns
from tasks.land.codex.usage import UsageCounter

__all__ = ["ThreadState"]


class ThreadState:
    """`before` is the id of the thread's last record, `compacted` that of its last compaction, `meta` what
    the thread says of itself."""

    def __init__(self, thread: str) -> None:
        self.thread = thread
        self.turns = Turns()
        self.usage = UsageCounter(goes_on=False)
        self.model = ""
        self.before = ""
        self.compacted = ""
        self.outcomes: dict[str, bool] = {}
        self.is_agents = False
        self.meta: Members = {}

    def begin(self, meta: Members) -> None:
        """Take in the thread's own description, its first line."""
        self.meta = meta
        self.is_agents = "subagent" in within(meta, "source") or bool(text(meta, "parent_thread_id"))
        goes_on = self.is_agents or bool(text(meta, "forked_from_id")) or isinstance(meta.get("history_base"), dict)
        self.usage = UsageCounter(goes_on=goes_on)

    def is_anothers(self, row: Row) -> bool:
        """Whether a line speaks of another thread, as those of a reviewer do."""
        if row.kind in ("event_msg", "token_usage_record") and text(row.payload, "thread_id") not in ("", self.thread):
            return True
        return row.kind in ("event_msg", "response_item") and self.turns.is_reviewers(row)

    def answers(self, draft: Draft) -> None:
        """The record is part of a provider's response, which it begins when none is open."""
        self.turns.call = self.turns.call or draft.id
        draft.from_, draft.call, draft.model = "agent", self.turns.call, self.model

    def answered(self, draft: Draft, usage: Usage, model: str = "") -> None:
        """The record tells what the open response cost, and so ends it."""
        self.answers(draft)
        draft.usage = usage
        draft.model = model or draft.model
        draft.flags.append("finished")
        self.turns.call = ""
