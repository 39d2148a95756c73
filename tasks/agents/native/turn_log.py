"""How a turn is written into the log: the user's message, answers, results of tools, the ends of steps.

Shapes are those of a DeepSeek Harness log of version 0 (DSH specification, sections 3 and 4), so that whatever reads
such logs reads these.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tasks.agents.native.asking import chain_of_session
from tasks.agents.native.conversation import Answer, Finish, ToolCall, ToolResult
from tasks.agents.native.session import Turn
from tasks.agents.native.work import Work

__all__ = ["chunk", "deny", "end_step", "prompt", "with_log_ids", "write_answer", "write_results"]

_FINISHES: Final[dict[Finish, str]] = {
    "stop": "stop",
    "tool_use": "tool-calls",
    "length": "max-tokens",
    "content_filter": "stop",
    "context_window": "max-tokens",
}
"""How an answer's end is written; why a turn ended with it says the turn's own end."""


def prompt(work: Work, turn: Turn) -> dict[str, Any]:
    """The user's message, which waits in the queue first and has the same id there."""
    identity = f"{work.session.id}:prompt:{turn.number}"
    content = [{"type": "text", "text": turn.text}]
    return {"content": content, "source": {"kind": "user"}, "role": "user", "id": identity}


def write_answer(work: Work, answer: Answer) -> None:
    """An answer with how it ended, what it used if that was told, and the calls that it asks for."""
    turn = work.turn
    route = chain_of_session(work)[turn.attempt.entry].route
    kind = "tool-calls" if answer.calls and answer.finish == "stop" else _FINISHES[answer.finish]
    finish = chunk(work, {"type": "finish", "reason": {"kind": kind}})
    content: list[dict[str, Any]] = []
    if answer.reasoning:
        content.append({"type": "reasoning", "text": answer.reasoning})
    if answer.text or not answer.calls:
        content.append({"type": "text", "text": answer.text})
    for call in answer.calls:
        content.append({"type": "tool-call", "id": call.log_id, "name": call.name, "arguments": call.arguments})
    source = {"kind": "model", "provider": route.provider, "model": route.model}
    message = {"role": "assistant", "content": content, "source": source, "id": work.message_id()}
    data: dict[str, Any] = {"turn": turn.number, "step": turn.step, "message": message}
    if answer.usage is not None:
        data["usage"] = answer.usage.as_event()
    work.place("assistant/message", data, turn=turn.number, sources=[finish])


def write_results(work: Work, calls: tuple[ToolCall, ...], results: tuple[ToolResult, ...]) -> None:
    """The results of a round, in the order of its calls; each cites the start of its call, if there was one."""
    turn = work.turn
    seqs = dict(turn.call_seqs)
    for call, result in zip(calls, results, strict=True):
        text = [{"type": "text", "text": result.text}]
        is_error = result.outcome != "ok"
        block = {"type": "tool-result", "toolCallId": call.log_id, "content": text, "isError": is_error}
        source = {"kind": "tool", "callId": call.log_id}
        message = {"role": "user", "source": source, "content": [block], "id": work.message_id()}
        data: dict[str, Any] = {"turn": turn.number, "step": turn.step, "message": message}
        if result.code is not None:
            data["error"] = {"name": "ToolError", "code": result.code}
        sources = [seqs[call.id]] if call.id in seqs else []
        work.place("tool/result", data, turn=turn.number, sources=sources)


def with_log_ids(work: Work, answer: Answer) -> Answer:
    """Providers count their calls anew now and then; in one session's log an id stands for one call."""
    used = set(work.session.call_ids)
    calls = []
    for place, call in enumerate(answer.calls):
        log_id = call.id if call.id and call.id not in used else f"{call.id}:{work.session.next_seq}.{place}"
        used.add(log_id)
        calls.append(replace(call, log_id=log_id))
    work.put(call_ids=frozenset(used))
    return replace(answer, calls=tuple(calls))


def chunk(work: Work, chunk: dict[str, Any]) -> int:
    """A piece of a model's stream; its number."""
    return work.mark("assistant/chunk", turn=work.turn.number, step=work.turn.step, chunk=chunk)


def end_step(work: Work) -> None:
    """End the step that is open, if one is."""
    turn = work.turn
    if turn.open_step:
        work.mark("step/end", turn=turn.number, step=turn.step)
        work.put_turn(open_step=False)


def deny(work: Work, call: ToolCall) -> None:
    """Nobody is there to be asked, so the question is answered as it is put."""
    question = f"{work.session.id}:approval:{work.session.next_seq}"
    work.mark("approval/asked", id=question, toolName=call.name, callId=call.log_id)
    work.mark("approval/decided", id=question, outcome="unavailable")
