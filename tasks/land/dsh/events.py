"""Events that are no messages: turns, steps, chunks, compaction, titles (DSH version 4, sections 7 to 12)."""

from __future__ import annotations

from typing import Any

from schemas._dsh_messages import field
from tasks.land.dsh.draft import Draft
from tasks.land.dsh.parts import block_parts, data_part, dropped, encoded, plain
from tasks.land.dsh.sources import trigger_of
from tasks.land.dsh.state import LogState
from tasks.land.dsh.stream import pieces_of_chunks
from tasks.land.dsh.usage import usage_of

__all__ = [
    "chunk",
    "command",
    "compaction_end",
    "inbox",
    "notice",
    "request_header",
    "step_end",
    "step_start",
    "summary",
    "title",
    "tool_call",
    "turn_end",
    "workflow_agent",
]

Event = dict[str, Any]

_STOPPED = frozenset(("aborted", "interrupted", "blocked", "max-tokens"))


def turn_end(state: LogState, event: Event, draft: Draft) -> None:
    """How a turn ended. An error is told here only where no attempt told it; so is who set going a turn that never came
    to its first step."""
    turns, reason = state.turns, field(event["data"], "reason")
    kind = str(field(reason, "kind"))
    if kind == "error" and not turns.attempts:
        draft.flags = ("error",)
    elif kind in _STOPPED and turns.run:
        draft.flags = ("notice",)
    if turns.run and not turns.has_step and not turns.entered and state.inbox.claimed:
        triggers = [trigger_of({"kind": claimed}) for claimed in state.inbox.claimed]
        draft.trigger = "external" if "external" in triggers else triggers[0]


def step_start(state: LogState, event: Event, draft: Draft) -> None:
    state.turns.begin_step(draft.id)
    state.chunks.clear()


def step_end(state: LogState, event: Event, draft: Draft) -> None:
    state.turns.end_step()


def inbox(state: LogState, event: Event, draft: Draft) -> None:
    """A message that waits, or waits no longer; it comes again as a message."""
    turns = state.turns
    state.inbox.take(event["data"], entering=turns.is_open and not turns.has_step)


def chunk(state: LogState, event: Event, draft: Draft) -> None:
    """A piece of a model's stream, of generations before 2. The answer's message says all of it again, so only what
    has no message counts: a call that failed ends with a chunk that says so."""
    piece = field(event["data"], "chunk")
    if field(piece, "type") != "finish":
        state.chunks.append(piece)
        return
    how = field(field(piece, "reason"), "kind")
    pieces, tokens = pieces_of_chunks(state.chunks if how in ("error", "aborted") else ())
    usage = usage_of(tokens)
    if how == "error" or (how == "aborted" and usage is not None):
        draft.from_, draft.call, draft.model = "agent", state.turns.attempt(event), state.model
        draft.parent = state.turns.step_record
        draft.usage, draft.tokens = usage, tokens
        draft.flags = (("finished",) if usage is not None else ()) + (("error",) if how == "error" else ())
        draft.parts = [*pieces.parts(), data_part(event)] if how == "error" else None
    elif how == "aborted":
        draft.flags = ("notice",)
    state.chunks.clear()


def request_header(state: LogState, event: Event, draft: Draft) -> None:
    """What requests are made with, without what is the same in every session of a program."""
    state.requests(event["data"])
    header = field(event["data"], "header")
    if not (isinstance(header, dict) and draft.wanted):
        return
    kept, left_out = dict(header), []
    if isinstance(tools := header.get("tools"), list):
        kept["tools"] = [field(tool, "name") for tool in tools]
        left_out.append(dropped("tool schemas", tools, "the same in every session of a program"))
    if "system" in kept:
        left_out.append(dropped("system prompt", kept.pop("system"), "the same in every session of a program"))
    draft.parts = [data_part({**event, "data": {**event["data"], "header": kept}})]
    draft.dropped = tuple(left_out)


def summary(state: LogState, event: Event, draft: Draft) -> None:
    """A compaction's summary: a model call of its own. The checkpoint that puts it in place is the next event."""
    if not draft.wanted:
        return
    data = event["data"]
    identity = field(data, "compactionId")
    draft.call = f"{state.session}:c:{plain(identity) if isinstance(identity, str) else event['seq']}"
    model = field(data, "model")
    draft.from_, draft.model = "agent", plain(model) if isinstance(model, str) else ""
    draft.parent = state.id_of(event["seq"] + 1)
    draft.usage = usage_of(field(data, "usage"))
    draft.flags = ("reset_summary",)
    if draft.usage is not None:
        draft.tokens, draft.flags = data["usage"], ("reset_summary", "finished")
    blocks = field(data, "summary")
    if isinstance(blocks, list):
        rest = {key: value for key, value in data.items() if key not in ("summary", "rawOutput")}
        draft.parts = [*block_parts(blocks, {}), data_part({**event, "data": rest})]
        raw = data.get("rawOutput")
        if raw is not None and encoded(raw) == encoded(blocks):
            draft.dropped = (dropped("raw output", raw, "the summary says the same"),)
        elif raw is not None:
            rest["rawOutput"] = raw
            draft.parts[-1] = data_part({**event, "data": rest})


def compaction_end(state: LogState, event: Event, draft: Draft) -> None:
    if field(event["data"], "error") is not None:
        draft.flags = ("notice",)


def tool_call(state: LogState, event: Event, draft: Draft) -> None:
    """The answer has asked for the call; here it begins."""
    call = field(event["data"], "callId")
    draft.parent = state.answers(call).answer
    state.under_way[str(call)] = None


def workflow_agent(state: LogState, event: Event, draft: Draft) -> None:
    """A workflow begins a sub-agent, within whichever call of a tool is under way."""
    if len(state.under_way) == 1:
        state.batches |= state.under_way.keys()


def title(state: LogState, event: Event, draft: Draft) -> None:
    """The session's title: it may not have an id, for then it would be a label of something else."""
    draft.id = ""
    text = field(event["data"], "title")
    if state.is_main and isinstance(text, str):
        draft.label = plain(text)


def command(state: LogState, event: Event, draft: Draft) -> None:
    draft.flags = ("command",)


def notice(state: LogState, event: Event, draft: Draft) -> None:
    draft.flags = ("notice",)
