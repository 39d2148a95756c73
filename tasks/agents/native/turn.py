"""A turn: from the user's message over tool rounds to one answer, or to the reason why there is none.

Each request is a step of its own in the log, and what came before it is durable before it is sent: a step without an
answer is a request whose usage nobody knows. A turn is completed by one batch, the answer and both ends; until that is
stored it never was (agent-session specification, "Session messages").
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tasks.agents.native import compacting
from tasks.agents.native.asking import chain_of_session, output_reserve, register, turn_request
from tasks.agents.native.budget import Refusal, admit, engage, release, resolve
from tasks.agents.native.conversation import Answer, Exchange, Failure, Round, ToolResult, Usage
from tasks.agents.native.fallback import next_attempt
from tasks.agents.native.memory import refusal_of
from tasks.agents.native.protocol import Ask, Pause, Report, Run, StopReason, TurnResult
from tasks.agents.native.session import Turn
from tasks.agents.native.titles import title_of
from tasks.agents.native.tool_loop import loop_found
from tasks.agents.native.turn_log import (
    chunk,
    deny,
    end_step,
    prompt,
    with_log_ids,
    write_answer,
    write_results,
)
from tasks.agents.native.work import Work

__all__ = ["answered", "ask", "begin", "compaction_ended", "failed", "refuse_over_limit", "stop_work", "tools_ran"]

_NOT_RUN: Final = "This call was not run: "
_STOPPED: Final = "This call was stopped, so what it did until then is not known: "


def begin(work: Work, text: str) -> None:
    """Open a turn with the user's message, and ask."""
    _open(work, text)
    due = compacting.due(work, text)
    if due == "skip":
        work.put_turn(compacted="tried")
    if due == "yes":
        _compact(work, "pre_send")
    else:
        ask(work)


def compaction_ended(work: Work, origin: compacting.Origin, ending: compacting.Ending) -> None:
    """Go on with a turn whose older turns were folded, or were not."""
    if ending.kind == "budget_refused":
        settle(work, "budget_exceeded", ending.message, code="BUDGET_EXCEEDED", cap=ending.cap)
    elif ending.kind == "compacted":
        work.put_turn(compacted="done")
        ask(work)
    elif origin == "pre_send":
        work.put_turn(compacted="tried")
        ask(work)
    else:
        settle(work, "context_overflow", _overflow_message(work), code="CONTEXT_WINDOW_EXCEEDED")


def refuse_over_limit(work: Work, text: str, limit: int) -> None:
    """The turn past the session's cap: nothing is sent."""
    _open(work, text)
    message = f"this session has had its {limit} turns, so nothing was sent; start a new session"
    settle(work, "turn_limit", message, code="TURN_LIMIT")


def ask(work: Work) -> None:
    """Send the turn's next request, if the budget admits it."""
    turn, session = work.turn, work.session
    route = chain_of_session(work)[turn.attempt.entry].route
    request = turn_request(work)
    estimate = Usage(request.estimate, output_reserve(work.rules))
    admitted = admit(
        work.rules.caps,
        session.run,
        route,
        estimate,
        price=work.rules.price,
        started_ms=session.started_ms,
        now_ms=work.now,
    )
    if isinstance(admitted, Refusal):
        settle(work, "budget_exceeded", admitted.message, code="BUDGET_EXCEEDED", cap=admitted.cap)
        return
    step = turn.step + 1
    if turn.retry is not None:
        work.mark(
            "llm/retry-started", retryId=turn.retry, turn=turn.number, step=turn.step, retry=turn.attempt.total - 1
        )
    work.mark("step/start", turn=turn.number, step=step)
    if not turn.said:
        said = work.place("user/message", prompt(work, turn), turn=turn.number)
        if turn.number == 1 and (title := title_of(turn.text)):
            work.mark("session/title", title=title, messageSeqs=[said], source={"kind": "fallback"})
    work.put_turn(step=step, open_step=True, said=True, retry=None)
    register(work, route, request)
    work.put(run=engage(work.session.run, admitted))
    work.then(Ask(route, request))


def answered(work: Work, answer: Answer) -> bool:
    """Take the answer to the last request; true when it completed the turn."""
    work.put(run=resolve(work.session.run, answer.usage, price=work.rules.price, now_ms=work.now))
    work.put(run=replace(work.session.run, answers=work.session.run.answers + 1))
    _engaged(work)
    answer = with_log_ids(work, answer)
    write_answer(work, answer)
    if answer.finish == "context_window":
        _overflow(work)
    elif answer.finish == "length":
        message = "the answer was cut off at the output limit; raise the agent's max_tokens"
        settle(work, "max_tokens", message, text=answer.text, reason={"kind": "max-tokens"})
    elif answer.finish == "content_filter":
        settle(work, "content_filter", "the provider withheld the answer", code="CONTENT_FILTER")
    elif answer.calls:
        _begin_round(work, answer)
    else:
        _complete(work, answer)
        return True
    return False


def failed(work: Work, failure: Failure) -> None:
    """Take the failure of the last request: try again, recover, or end the turn."""
    run = work.session.run
    if failure.usage is not None or failure.maybe_billed:
        work.put(run=resolve(run, failure.usage, price=work.rules.price, now_ms=work.now))
    else:
        work.put(run=release(run))
    if failure.sent:
        _engaged(work)
    turn = work.turn
    if failure.usage is not None:
        chunk(work, {"type": "usage", "usage": failure.usage.as_event()})
    chunk(work, {"type": "finish", "reason": {"kind": "error", "failure": failure.as_event()}})
    if failure.code == "CONTEXT_WINDOW_EXCEEDED":
        _overflow(work)
        return
    chain = chain_of_session(work)
    following = next_attempt(work.rules.agent, chain, turn.attempt, failure)
    if following is None:
        settle(work, "provider_error", failure.message, code=failure.code, failure=failure)
        return
    retry = f"{work.session.id}:retry:{work.session.next_seq}"
    route = chain[following.entry].route
    most = sum(entry.attempts for entry in chain) - 1
    about = {"retryId": retry, "turn": turn.number, "step": turn.step, "provider": route.provider, "mode": "normal"}
    about |= {"retry": turn.attempt.total, "maxRetries": most, "policyKey": "sessionmill-native"}
    work.mark("llm/retry", **about, delayMs=following.wait_ms, failure=failure.as_event())
    end_step(work)
    work.put_turn(attempt=following, retry=retry)
    if following.wait_ms:
        work.then(Pause(following.wait_ms))
    else:
        ask(work)


def tools_ran(work: Work, results: tuple[ToolResult, ...]) -> None:
    """Take the results of the round's tools, and go on."""
    turn = work.turn
    assert turn.answer is not None
    by_call = {result.call_id: result for result in (*turn.ready, *results)}
    ordered = tuple(by_call[call.id] for call in turn.answer.calls)
    write_results(work, turn.answer.calls, ordered)
    end_step(work)
    rounds = (*turn.rounds, Round(turn.answer, ordered))
    run = work.session.run
    work.put(run=replace(run, tool_rounds=run.tool_rounds + 1))
    work.put_turn(rounds=rounds, answer=None, ready=(), call_seqs=(), attempt=replace(turn.attempt, number=1, total=1))
    if why := loop_found(work.rules.loops, rounds):
        settle(work, "tool_loop", why, code="TOOL_LOOP")
    else:
        ask(work)


def stop_work(work: Work, stop: StopReason, message: str, *, why: str) -> None:
    """End the turn while something is under way, because of its user (``why``: ``user`` or ``disposed``), or because
    the time is over (``budget``). The user's message is rolled back: no later request carries it.
    """
    turn = work.turn
    if work.session.run.pending is not None:
        work.put(run=resolve(work.session.run, None, price=work.rules.price, now_ms=work.now))
        _engaged(work)
        failure = {"message": message, "code": "ABORTED"}
        chunk(work, {"type": "finish", "reason": {"kind": "aborted", "failure": failure}})
    elif turn.answer is not None:
        ready = {result.call_id: result for result in turn.ready}
        cancelled = [
            ready.get(call.id) or ToolResult(call.id, f"{_STOPPED}{message}.", "cancelled", "ABORTED")
            for call in turn.answer.calls
        ]
        write_results(work, turn.answer.calls, tuple(cancelled))
    if why == "budget":
        settle(work, stop, message, code="BUDGET_EXCEEDED", cap="wall_time")
    else:
        settle(work, stop, message, reason={"kind": "aborted", "reason": {"kind": why}})


def settle(
    work: Work,
    stop: StopReason,
    message: str,
    *,
    code: str = "",
    reason: dict[str, Any] | None = None,
    text: str = "",
    cap: str | None = None,
    failure: Failure | None = None,
) -> None:
    """End the turn without an answer, and say why."""
    turn = work.turn
    end_step(work)
    error: dict[str, Any] = failure.as_event() if failure else {"message": message, "code": code}
    work.mark("turn/end", turn=turn.number, reason=reason or {"kind": "error", "error": error})
    work.put(turn=None, status="idle")
    result = TurnResult(stop, message, text, cap, failure, turn.number, len(turn.rounds))
    work.then(Report(result))


def _complete(work: Work, answer: Answer) -> None:
    turn = work.turn
    end_step(work)
    work.mark("turn/end", turn=turn.number, reason={"kind": "completed"})
    exchange = Exchange(turn.number, turn.text, answer.text)
    work.put(turn=None, status="idle", exchanges=(*work.session.exchanges, exchange))
    work.then(Report(TurnResult("completed", "", answer.text, turn=turn.number, rounds=len(turn.rounds))))


def _overflow(work: Work) -> None:
    """The request was too large for the model: fold older turns once, if nothing has been done yet, and ask again."""
    turn = work.turn
    end_step(work)
    route = chain_of_session(work)[turn.attempt.entry].route
    window = work.rules.windows(route)
    recoverable = not turn.rounds and not turn.recovered and turn.compacted != "tried" and window is not None
    if recoverable and refusal_of(work.rules.agent) is None:
        work.put_turn(recovered=True)
        _compact(work, "recovery")
    else:
        settle(work, "context_overflow", _overflow_message(work), code="CONTEXT_WINDOW_EXCEEDED")


def _compact(work: Work, origin: compacting.Origin) -> None:
    ending = compacting.start(work, origin)
    if ending is not None:
        compaction_ended(work, origin, ending)


def _overflow_message(work: Work) -> str:
    """What is said of an overflow: never the provider's words."""
    route = chain_of_session(work)[work.turn.attempt.entry].route
    window = work.rules.windows(route)
    size = f"{window} tokens" if window is not None else "of unknown size"
    ran = "tools had already run in this turn" if work.turn.rounds else "no tool had run in this turn"
    return f"the request is too large for {route}, whose context window is {size}; {ran}"


def _begin_round(work: Work, answer: Answer) -> None:
    turn, cap = work.turn, _round_cap(work)
    if cap is not None:
        name, message = cap
        results = [
            ToolResult(call.id, f"{_NOT_RUN}{message}.", "cancelled", "BUDGET_EXCEEDED") for call in answer.calls
        ]
        write_results(work, answer.calls, tuple(results))
        settle(work, "budget_exceeded", message, code="BUDGET_EXCEEDED", cap=name)
        return
    ready, running, seqs = [], [], []
    for call in answer.calls:
        verdict = work.rules.permit(call.name)
        if verdict == "run":
            running.append(call)
            about = {"turn": turn.number, "step": turn.step, "callId": call.log_id}
            seqs.append((call.id, work.mark("tool/call", **about, name=call.name, arguments=call.arguments)))
        elif verdict == "denied":
            deny(work, call)
            text = f"{_NOT_RUN}this run does not permit the tool {call.name}."
            ready.append(ToolResult(call.id, text, "denied", "TOOL_DENIED"))
        else:
            ready.append(ToolResult(call.id, f"{_NOT_RUN}there is no tool {call.name}.", "error", "UNKNOWN_TOOL"))
    work.put_turn(answer=answer, ready=tuple(ready), call_seqs=tuple(seqs))
    if running:
        work.then(Run(tuple(running)))
    else:
        tools_ran(work, ())


def _round_cap(work: Work) -> tuple[str, str] | None:
    """The cap that forbids the round, and why: tools are not run for an answer that may not be asked for."""
    caps, run = work.rules.caps, work.session.run
    if caps.tool_rounds is not None and run.tool_rounds >= caps.tool_rounds:
        return "tool_rounds", f"the tool_rounds cap of this run: {caps.tool_rounds} rounds have been made"
    if caps.answers is not None and run.answers >= caps.answers:
        return "answers", f"the answers cap of this run: {caps.answers} answers have been given"
    return None


def _open(work: Work, text: str) -> None:
    number = work.session.turns + 1
    turn = Turn(number, text)
    work.put(turns=number, turn=turn, status="streaming")
    work.mark("agent/inbox/spliced", target="next-turn", start=0, inserted=[prompt(work, turn)])
    work.mark("turn/start", turn=number)
    work.mark("agent/inbox/spliced", target="next-turn", start=0, removedCount=1, inserted=[])


def _engaged(work: Work) -> None:
    """A provider has seen this turn, so it counts."""
    if not work.turn.engaged:
        work.put_turn(engaged=True)
        work.put(engaged_turns=work.session.engaged_turns + 1)
