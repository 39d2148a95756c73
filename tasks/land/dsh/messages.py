"""The messages of a log: prompts, answers, results (DSH version 4, sections 5, 6, 9 and 12)."""

from __future__ import annotations

from typing import Any

from schemas._dsh_messages import field, message_of
from schemas.dsh_lineage import delegates, named_child
from tasks.land.dsh.draft import Draft
from tasks.land.dsh.kinds import name_of
from tasks.land.dsh.parts import block_parts, data_part, dropped, plain, result_part
from tasks.land.dsh.sources import is_checkpoint, is_context, is_settled, producer, trigger_of
from tasks.land.dsh.state import LogState
from tasks.land.dsh.stream import SAID_AGAIN, finish_of, pieces_of, without_pieces
from tasks.land.dsh.usage import usage_of

__all__ = ["answer", "attempt", "prompt", "result", "system"]

Event = dict[str, Any]

_CLOSED = {"TOOL_OUTCOME_UNKNOWN": "unknown", "TOOL_NOT_STARTED": "not-started"}


def prompt(state: LogState, event: Event, draft: Draft) -> None:
    """A message in a user's role: a person's words, or what a program says in a person's place."""
    data, operation = event["data"], event.get("surfaceOp")
    source = data["source"]
    is_person = producer(source) == "user"
    if is_person and state.is_delegated:
        state.is_delegated = is_person = False
        draft.flags = ("injected",)
    elif is_person:
        draft.from_, draft.flags = "external", ("external_input",)
        draft.trigger = _entering(state, "external")
    elif is_checkpoint(source, operation):
        draft.flags = ("context_reset",)
        draft.continues = state.id_of(field(operation, "endSeq" if state.header.version >= 3 else "end"))
    else:
        draft.flags = ("injected",)
        if is_settled(source):
            _settled(state, field(source, "senderSessionId"), draft)
        elif not is_context(source):
            draft.trigger = _entering(state, trigger_of(source))
    if draft.wanted:
        draft.parts = [*block_parts(data["content"], {}), data_part(_without(event, data, "content"))]


def _entering(state: LogState, trigger: str) -> str:
    """`trigger` for the first message of its kind that a turn begins with; none for one that comes while it goes on."""
    turns = state.turns
    if not turns.run or turns.has_answer or trigger in turns.entered or (turns.entered and trigger != "external"):
        return ""
    turns.entered.add(trigger)
    return trigger


def _settled(state: LogState, child: Any, draft: Draft) -> None:
    """A sub-agent has stopped. It is told whenever it happens, so not every such message begins a turn."""
    draft.trigger = "notification"
    state.turns.entered.add("notification")
    if isinstance(child, str):
        draft.child, draft.tool = name_of(child), state.launched.get(child, "")


def answer(state: LogState, event: Event, draft: Draft) -> None:
    """A model's settled answer."""
    data, message = event["data"], message_of(event)
    source, content = message["source"], message["content"]
    draft.from_, draft.call = "agent", state.turns.answer(event)
    draft.parent = state.turns.step_record
    draft.model = plain(source["model"])
    draft.usage = None if data.get("interrupted") is True else usage_of(data.get("usage"))
    if draft.usage is not None:
        draft.tokens, draft.flags = data["usage"], ("finished",)
    tools = state.advertise_all(event, draft.id)
    if not draft.wanted:
        return
    rest, left_out = _without(event, message, "content"), []
    stream, replay = data.get("stream"), source.get("replayState")
    finish = finish_of(stream)
    if stream is not None and str(field(finish, "kind")) in SAID_AGAIN and "interrupted" not in data:
        del rest["data"]["stream"]
        rest["data"]["finish"] = finish
        left_out.append(dropped("stream", stream, "the message says the same"))
    if replay is not None:
        rest["data"]["message"]["source"] = {key: value for key, value in source.items() if key != "replayState"}
        left_out.append(dropped("replay state", replay, "a provider verifies it; a reader cannot read it"))
    draft.parts = [*block_parts(content, tools), data_part(rest)]
    draft.dropped = tuple(left_out)


def attempt(state: LogState, event: Event, draft: Draft) -> None:
    """A model call that failed. What it asked for was not done, so it has no calls of tools."""
    data = event["data"]
    draft.from_, draft.call, draft.model = "agent", state.turns.attempt(event), state.model
    draft.parent, draft.flags = state.turns.step_record, ("error",)
    if not draft.wanted:
        return
    stream = field(data, "stream")
    rest = {**event, "data": {**data, "stream": without_pieces(stream)}} if isinstance(data, dict) else event
    draft.parts = [*pieces_of(stream).parts(), data_part(rest)]


def result(state: LogState, event: Event, draft: Draft) -> None:
    """What a tool gave back. One that takes another's place is the same result, shortened."""
    data, message = event["data"], message_of(event)
    call = message["source"]["callId"]
    holder = message if message["role"] == "tool" else message["content"][0]
    content, failed = holder.get("content"), holder.get("isError")
    called = state.answers(call)
    state.under_way.pop(str(call), None)
    draft.parent = called.answer
    if isinstance(event.get("surfaceOp"), dict) or not called.tool:
        draft.parts = [data_part(event)]
        return
    if (child := named_child(called.name, message)) is not None:
        state.launched[child] = called.tool
        draft.child, draft.tool, draft.flags = name_of(child), called.tool, ("launch_ack",)
    elif delegates(called.name) or str(call) in state.batches:
        draft.batch = called.tool  # by which a sub-agent may be found to be this call's
    if not draft.wanted:
        return
    more = {key: data[key] for key in ("error", "meta") if key in data}
    closed = _CLOSED.get(str(field(data.get("error"), "code")), "available")
    rest = _without(event, message, "content")
    rest["data"] = {key: value for key, value in rest["data"].items() if key not in more}
    draft.parts = [*result_part(called.tool, content, failed is True, state=closed, more=more), data_part(rest)]


def system(state: LogState, event: Event, draft: Draft) -> None:
    """The system prompt."""
    if not draft.wanted:
        return
    message = message_of(event)
    draft.parts = [data_part(_without(event, message, "content"))]
    draft.dropped = (dropped("system prompt", message["content"], "the same in every session of a program"),)


def _without(event: Event, holder: Event, key: str) -> Event:
    """A copy of `event` in which `holder`, its data or something within, has no `key`, and may be written to."""

    def copied(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        kept = {name: each for name, each in value.items() if value is not holder or name != key}
        return {name: copied(each) if name in ("data", "message") else each for name, each in kept.items()}

    found: Event = copied(event)
    return found
