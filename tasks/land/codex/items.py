"""Response items: what a thread and its model exchange (Codex notes, section 2)."""

from __future__ import annotations

from tasks.land.codex.draft import Draft
from tasks.land.codex.outcomes import member_json, output_outcome
from tasks.land.codex.parts import (
    call_part,
    encrypted,
    media_part,
    output_text,
    own_result,
    reasoning_part,
    result_part,
    text_part,
)
from tasks.land.codex.prompts import Message, read_message
from tasks.land.codex.rows import Row, objects, text
from tasks.land.codex.state import ThreadState

__all__ = ["item", "prompt"]

_SIDE = "item"


def item(state: ThreadState, row: Row, draft: Draft) -> None:
    match row.name:
        case "message":
            _message(state, row, draft)
        case "reasoning":
            _reasoning(state, row, draft)
        case "function_call" | "custom_tool_call" | "tool_search_call":
            state.answers(draft)
            draft.parts.append(call_part(row))
        case "web_search_call" | "image_generation_call" | "local_shell_call":
            state.answers(draft)
            draft.parts += [call_part(row), own_result(row)]
            if row.payload.get("result"):
                draft.parts.append(media_part(row.payload))
        case "function_call_output" | "custom_tool_call_output" | "tool_search_output":
            _output(state, row, draft)
        case "agent_message":
            draft.keep_line("injected")
            draft.trigger = "notification"
        case _:
            draft.keep_line()


def prompt(state: ThreadState, draft: Draft, side: str, texts: list[str]) -> bool:
    """Whether the record is the one of what a person, or the agent in a person's place, asked."""
    if not state.turns.said.is_new(side, "user", texts):
        draft.keep_line()
        return False
    state.turns.prompted(draft.id, side, texts)
    draft.from_ = "external"
    if state.is_agents:
        draft.flags.append("injected")
    else:
        draft.flags.append("external_input")
        draft.trigger = "external"
    return True


def _message(state: ThreadState, row: Row, draft: Draft) -> None:
    message = read_message(row.payload)
    match text(row.payload, "role"):
        case "assistant":
            _answer(state, message, draft)
        case "user" if message.is_written:
            if prompt(state, draft, _SIDE, ["\n".join(message.written)]):
                _fill(draft, message)
        case "user":
            draft.from_ = "external"
            if message.is_shell:
                draft.flags.append("command")
                draft.trigger = "unknown"
            else:
                draft.flags.append("injected")
            if message.is_notification:
                draft.trigger, draft.child = "notification", message.child
            _fill(draft, message)
        case _:
            draft.flags.append("injected")
            _fill(draft, message)


def _answer(state: ThreadState, message: Message, draft: Draft) -> None:
    if message.written and not state.turns.said.is_new(_SIDE, "agent", ["\n".join(message.written)]):
        draft.keep_line()
        return
    if state.turns.has_reviewed:
        # What came of a review is written by the client; no provider was asked.
        draft.from_, draft.call = "agent", draft.id
        draft.flags.append("synthetic")
    else:
        state.answers(draft)
    _fill(draft, message)


def _fill(draft: Draft, message: Message) -> None:
    draft.parts += [text_part(words) for words in (*message.written, *message.put_in)]
    draft.parts += map(media_part, message.images)
    if not draft.parts:
        draft.keep_line()


def _reasoning(state: ThreadState, row: Row, draft: Draft) -> None:
    texts = [words for each in objects(row.payload.get("summary")) if (words := text(each, "text"))]
    texts = texts or [words for each in objects(row.payload.get("content")) if (words := text(each, "text"))]
    if texts and not state.turns.said.is_new(_SIDE, "reasoning", texts):
        draft.keep_line()
        return
    state.answers(draft)
    draft.parts.append(reasoning_part("\n".join(texts)))
    draft.dropped = encrypted(row.payload)


def _output(state: ThreadState, row: Row, draft: Draft) -> None:
    identity = text(row.payload, "call_id")
    output = row.payload.get("output")
    words = output_text(output)
    failed = output_outcome(output, words, state.outcomes.get(identity))
    draft.child = text(member_json(words), "agent_id")
    draft.parts.append(result_part(identity, words, failed))
    images = [each for each in objects(output) if text(each, "type") == "input_image"]
    draft.parts += map(media_part, images)
    if not words and not images:
        draft.keep_line()
