"""Folding older turns into a summary (agent-session specification, "Measured compaction and one-shot recovery").

What is measured is the next request, whole, against the model's window. At most four passes fold the oldest turns;
the latest completed turn and the pending message stay as they are. All passes succeed, or nothing changes: one
summary, one boundary. What the passes cost is booked in any case.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from tasks.agents.native.asking import chain_of_session, measured, next_request, output_reserve
from tasks.agents.native.budget import Refusal, admit, engage, release, resolve
from tasks.agents.native.conversation import Answer, Exchange, Failure, Usage
from tasks.agents.native.estimate import request_tokens, text_tokens
from tasks.agents.native.fallback import next_attempt
from tasks.agents.native.memory import projected, refusal_of, suffix_of
from tasks.agents.native.protocol import Ask, Disclose, Pause
from tasks.agents.native.session import CompactionRun, Node
from tasks.agents.native.summaries import MAX_PASSES, SOFT_INPUT, SUMMARY_TOKENS, pass_request, take_pass
from tasks.agents.native.work import Work

__all__ = ["Ending", "Origin", "answered", "drop", "due", "failed", "paused", "start", "stopped"]

Origin = Literal["manual", "pre_send", "after_turn", "recovery"]

UNKNOWN_WINDOW: Final = (
    "The context window of a model in this agent's chain is not known, so nothing says that a summary request fits "
    f"it; each is kept under {SOFT_INPUT} tokens."
)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a compaction ended; ``opened`` says whether anything of it was sent."""

    kind: Literal["compacted", "nothing_to_compact", "failed", "budget_refused"]
    message: str = ""
    cap: str | None = None
    kept_turns: int = 0
    passes: int = 0
    opened: bool = False


def due(work: Work, pending: str | None) -> Literal["no", "skip", "yes"]:
    """Whether the next request is so large that older turns should be folded first; ``skip`` when it is, but what has
    to stay does not fit the window either.
    """
    rules, session = work.rules, work.session
    window = rules.windows(chain_of_session(work)[0].route)
    if window is None or refusal_of(rules.agent) is not None or len(session.exchanges) < 2:
        return "no"
    request = next_request(work, pending)
    if request.estimate < rules.compact_threshold * window and request.estimate + output_reserve(rules) <= window:
        return "no"
    messages = projected(rules.agent, None, session.exchanges[-1:], pending)
    smallest = request_tokens(replace(request, messages=messages)) + SUMMARY_TOKENS
    return "yes" if smallest <= window else "skip"


def start(work: Work, origin: Origin) -> Ending | None:
    """Begin to fold all turns but the latest; None when a request is under way then."""
    exchanges = work.session.exchanges
    if len(exchanges) < 2:
        return Ending("nothing_to_compact", "there are no older turns to fold", kept_turns=len(exchanges))
    identity = f"{work.session.id}:compaction:{work.session.compactions + 1}"
    run = CompactionRun(identity, origin, exchanges[-1:], exchanges[:-1], summary=work.session.summary)
    work.put(compaction=run, compactions=work.session.compactions + 1)
    if origin == "manual" and None in _windows(work):
        work.then(Disclose(UNKNOWN_WINDOW))
        return None
    return _next_pass(work)


def disclosed(work: Work, refused: str | None) -> Ending | None:
    """Go on after the surface has taken note of an unknown window, or end if it has not."""
    return _end(work, "failed", f"not acknowledged: {refused}") if refused is not None else _next_pass(work)


def answered(work: Work, answer: Answer) -> Ending | None:
    """Take the summary of one pass."""
    work.put(run=resolve(work.session.run, answer.usage, price=work.rules.price, now_ms=work.now))
    run = _run(work)
    summary = answer.text.strip()
    if answer.finish != "stop" or answer.calls or not summary:
        _write_summary(work, answer, [])
        return _end(work, "failed", "the model gave no whole summary")
    left = run.left[len(run.now) :]
    run = replace(run, summary=summary, left=left, folded=(*run.folded, *run.now), now=())
    work.put(compaction=run)
    if left and run.passes < MAX_PASSES:
        _write_summary(work, answer, [])
        return _next_pass(work)
    return _install(work, answer, run)


def failed(work: Work, failure: Failure) -> Ending | None:
    """Take the failure of a pass: try it again, or end with nothing changed."""
    ledger = work.session.run
    if failure.usage is not None or failure.maybe_billed:
        work.put(run=resolve(ledger, failure.usage, price=work.rules.price, now_ms=work.now))
    else:
        work.put(run=release(ledger))
    run = _run(work)
    following = next_attempt(work.rules.agent, chain_of_session(work), run.attempt, failure)
    if following is None:
        return _end(work, "failed", failure.message, failure=failure)
    work.put(compaction=replace(run, attempt=following))
    if following.wait_ms:
        work.then(Pause(following.wait_ms))
        return None
    return _send(work)


def paused(work: Work) -> Ending | None:
    """The pause before another attempt is over."""
    return _send(work)


def stopped(work: Work, message: str) -> None:
    """End a compaction whose session, turn or time is over; a request under way may have been charged."""
    if work.session.run.pending is not None:
        work.put(run=resolve(work.session.run, None, price=work.rules.price, now_ms=work.now))
    _end(work, "failed", message, failure=Failure("ABORTED", message))


def drop(work: Work, messages: int) -> int:
    """Trim: keep only the last turns of at most so many messages, and give how many turns are gone. The boundary
    stands in the log like a summary's, but says only that something is gone.
    """
    exchanges = work.session.exchanges
    kept = suffix_of(exchanges, messages)
    gone = exchanges[: len(exchanges) - len(kept)]
    if not gone:
        return 0
    number = work.session.compactions + 1
    text = f"{len(gone)} older turns were left out of the conversation here."
    _write_boundary(work, f"{work.session.id}:trim:{number}", text, _nodes(work, gone[-1].turn), summary=False)
    work.put(compactions=number, exchanges=kept, summary=None)
    return len(gone)


def _next_pass(work: Work) -> Ending | None:
    run = _run(work)
    bound = _bound(work, run.origin)
    now = take_pass(run.summary, run.left, bound)
    if not now:
        return _end(work, "failed", f"no older turn fits a summary request of {bound} tokens")
    run = replace(run, now=now, passes=run.passes + 1, request=measured(pass_request(run.summary, now)))
    work.put(compaction=replace(run, attempt=replace(run.attempt, number=1, total=1)))
    return _send(work)


def _send(work: Work) -> Ending | None:
    run, session = _run(work), work.session
    assert run.request is not None
    route = chain_of_session(work)[run.attempt.entry].route
    admitted = admit(
        work.rules.caps,
        session.run,
        route,
        Usage(run.request.estimate, SUMMARY_TOKENS),
        price=work.rules.price,
        started_ms=session.started_ms,
        now_ms=work.now,
    )
    if isinstance(admitted, Refusal):
        return _end(work, "budget_refused", admitted.message, cap=admitted.cap)
    if not run.opened:
        work.mark("compaction/start", **_about(work), turn=session.turn.number if session.turn else None)
        work.put(compaction=replace(run, opened=True))
    work.put(run=engage(session.run, admitted))
    work.then(Ask(route, run.request))
    return None


def _install(work: Work, answer: Answer, run: CompactionRun) -> Ending:
    """One summary, one boundary, in one batch."""
    assert run.summary is not None
    nodes = _nodes(work, run.folded[-1].turn)
    _write_summary(work, answer, nodes)
    _write_boundary(work, run.id, run.summary, nodes, summary=True)
    kept = (*run.left, *run.keep)
    work.mark("compaction/end", **_about(work))
    work.put(exchanges=kept, summary=run.summary, compaction=None)
    return Ending("compacted", kept_turns=len(kept), passes=run.passes, opened=True)


def _end(
    work: Work,
    kind: Literal["failed", "budget_refused"],
    message: str,
    *,
    cap: str | None = None,
    failure: Failure | None = None,
) -> Ending:
    run = _run(work)
    if run.opened:
        code = failure.code if failure else "BUDGET_EXCEEDED" if kind == "budget_refused" else "NO_SUMMARY"
        turn = work.session.turn.number if work.session.turn else None
        work.mark("compaction/end", **_about(work), turn=turn, error={"message": message, "code": code})
    work.put(compaction=None)
    return Ending(kind, message, cap, len(work.session.exchanges), run.passes, run.opened)


def _write_summary(work: Work, answer: Answer, nodes: list[Node]) -> None:
    """What a pass gave and used. Without nodes it replaces nothing: a pass that is not the last, or failed. Each has an
    id of its own, for each is a call of its own.
    """
    run = _run(work)
    route = chain_of_session(work)[run.attempt.entry].route
    seqs = [node.seq for node in nodes]
    data: dict[str, Any] = {**_about(work), "summary": [{"type": "text", "text": answer.text}], "llmStreamCall": True}
    data["shadowedRange"] = {"start": seqs[0], "end": seqs[-1]} if seqs else {"start": 0, "end": 0}
    data |= {"shadowedSeqs": seqs, "shadowedTokenCount": _tokens(run.folded)}
    if not nodes:
        data["compactionId"] = f"{run.id}.{run.passes}"
    data |= {"provider": route.provider, "model": route.model, "maxTokens": SUMMARY_TOKENS}
    if answer.usage is not None:
        data["usage"] = answer.usage.as_event()
    work.mark("compaction/summary", **data)


def _write_boundary(work: Work, identity: str, text: str, nodes: list[Node], *, summary: bool) -> None:
    source: dict[str, Any] = {"kind": "plugin", "plugin": "compact", "compactionId": identity}
    if not summary:
        source |= {"form": "notice", "summary": text}
    content = [{"type": "text", "text": text}]
    message = {"content": content, "source": source, "role": "user", "id": work.message_id()}
    work.place("user/message", message, turn=0, replaces=nodes)


def _nodes(work: Work, turn: int) -> list[Node]:
    """What stands on the surface up to the end of a turn."""
    return [node for node in work.session.surface if node.turn <= turn]


def _about(work: Work) -> dict[str, Any]:
    run = _run(work)
    return {"compactionId": run.id, **({"sourceCommandId": run.id} if run.origin == "manual" else {})}


def _bound(work: Work, origin: Origin) -> int:
    """Tokens of input that every model of the chain can take beside a summary's output."""
    windows = _windows(work)
    bounds = [window - SUMMARY_TOKENS for window in windows if window is not None]
    if origin == "manual" and None in windows:
        bounds.append(SOFT_INPUT)
    return min(bounds)


def _windows(work: Work) -> list[int | None]:
    return [work.rules.windows(entry.route) for entry in chain_of_session(work)]


def _tokens(turns: tuple[Exchange, ...]) -> int:
    return sum(text_tokens(turn.user) + text_tokens(turn.answer) for turn in turns)


def _run(work: Work) -> CompactionRun:
    assert work.session.compaction is not None
    return work.session.compaction
