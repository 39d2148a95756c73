"""Events: what a client saw happen. They are evidence about items, and records of what has none (Codex notes, sections
2 and 3).
"""

from __future__ import annotations

from tasks.land.codex.draft import Draft
from tasks.land.codex.items import prompt
from tasks.land.codex.outcomes import event_outcome
from tasks.land.codex.parts import reasoning_part, text_part
from tasks.land.codex.prompts import event_texts
from tasks.land.codex.rows import Row, strings, text, within
from tasks.land.codex.state import ThreadState

__all__ = ["event"]

_EVENT, _COMPLETED = "event", "completed"


def event(state: ThreadState, row: Row, draft: Draft) -> None:
    match row.name:
        case "user_message":
            _prompted(state, draft, _EVENT, text(row.payload, "message"))
        case "agent_message":
            _answered(state, draft, _EVENT, text(row.payload, "message"))
        case "agent_reasoning" | "agent_reasoning_raw_content":
            _reasoned(state, draft, _EVENT, [text(row.payload, "text")])
        case "item_completed":
            _completed(state, row, draft)
        case "task_complete" | "turn_complete":
            _closed(row, draft)
        case "turn_aborted" | "thread_rolled_back":
            draft.keep_line("notice")
        case "error" | "stream_error":
            draft.parts.append(text_part(text(row.payload, "message")))
            draft.keep_line("error")
        case "context_compacted":
            _summarised(state, draft)
        case _:
            _evidence(state, row, draft)


def _completed(state: ThreadState, row: Row, draft: Draft) -> None:
    match text(row.item, "type"):
        case "UserMessage":
            _prompted(state, draft, _COMPLETED, "\n".join(event_texts(row.item)))
        case "AgentMessage":
            _answered(state, draft, _COMPLETED, "\n".join(event_texts(row.item)))
        case "Reasoning":
            _reasoned(state, draft, _COMPLETED, strings(row.item.get("summary_text")))
        case "ContextCompaction":
            _summarised(state, draft)
        case _:
            _evidence(state, row, draft)


def _prompted(state: ThreadState, draft: Draft, side: str, words: str) -> None:
    if not words:
        draft.keep_line()
    elif prompt(state, draft, side, [words]):
        draft.parts.append(text_part(words))


def _answered(state: ThreadState, draft: Draft, side: str, words: str) -> None:
    if not words or not state.turns.said.is_new(side, "agent", [words]):
        draft.keep_line()
        return
    state.answers(draft)
    draft.parts.append(text_part(words))


def _reasoned(state: ThreadState, draft: Draft, side: str, texts: list[str]) -> None:
    texts = [words for words in texts if words]
    if not texts or not state.turns.said.is_new(side, "reasoning", texts):
        draft.keep_line()
        return
    state.answers(draft)
    draft.parts.append(reasoning_part("\n".join(texts)))


def _closed(row: Row, draft: Draft) -> None:
    error = within(row.payload, "error")
    if error:
        draft.parts.append(text_part(text(error, "message")))
    draft.keep_line("error" if error else "turn_duration")


def _summarised(state: ThreadState, draft: Draft) -> None:
    draft.parent = state.compacted
    draft.keep_line("reset_summary")


def _evidence(state: ThreadState, row: Row, draft: Draft) -> None:
    draft.keep_line()
    call, failed = event_outcome(row)
    if not call:
        return
    if failed is not None:
        state.outcomes.setdefault(call, failed)
    if child := _child(row):
        draft.child, draft.tool = child, call


def _child(row: Row) -> str:
    """The thread that a call started."""
    match text(row.item, "type") or row.name:
        case "CollabAgentToolCall" if "spawn" in text(row.item, "tool").lower():
            return next(iter(strings(row.item.get("receiver_thread_ids"))), "")
        case "SubAgentActivity" if text(row.item, "kind") == "started":
            return text(row.item, "agent_thread_id")
        case "collab_agent_spawn_end":
            return text(row.payload, "new_thread_id")
    return ""
