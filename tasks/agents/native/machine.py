"""The session machine: what each operation and each answer does (agent-session specification, "Lifecycle").

`advance` is pure: the same session, input and time give the same session and commands. What may not be done now
raises `SessionMisuse` and changes nothing; an input that comes too late (the abort of a turn that is over) does
nothing.
"""

from __future__ import annotations

from dataclasses import replace

from schemas.errors import WrongUse
from tasks.agents.native import compacting, turn
from tasks.agents.native.memory import refusal_of
from tasks.agents.native.protocol import (
    Abort,
    Answered,
    Cancel,
    Compact,
    CompactionResult,
    Disclosed,
    Expired,
    Failed,
    Input,
    NotStored,
    Paused,
    Report,
    Send,
    Start,
    ToolsRan,
    Trim,
    TrimResult,
    TurnResult,
)
from tasks.agents.native.session import DEFAULT_MAX_TURNS, Rules, Session, Step
from tasks.agents.native.work import Work

__all__ = ["SessionMisuse", "advance", "turn_limit"]


class SessionMisuse(WrongUse):
    """An operation that the session's state does not admit."""


def turn_limit(rules: Rules) -> int:
    """How many turns the session may have: 0 stands for the default."""
    return rules.max_turns or DEFAULT_MAX_TURNS


def advance(rules: Rules, session: Session, given: Input, now_ms: int) -> Step:
    """The session after ``given``, and what is to be done. Raises SessionMisuse."""
    work = Work(rules, session, now_ms)
    match given:
        case NotStored(reason):
            work.put(latched=reason, turn=None, compaction=None, status="ended")
            work.then(Report(TurnResult("not_stored", reason, turn=session.turns)))
        case Abort() | Cancel() | Expired():
            _interrupt(work, given)
        case Start():
            _require(session, "new", "start")
            if session.next_seq:
                work.mark("session/end-seed")
            else:
                for kind, data in rules.opening:
                    work.mark(kind, **data)
            work.put(status="idle")
        case Send(text):
            _require(session, "idle", "send")
            limit = turn_limit(rules)
            if session.engaged_turns >= limit:
                turn.refuse_over_limit(work, text, limit)
            else:
                turn.begin(work, text)
        case Compact():
            _require(session, "idle", "compact")
            _compact(work)
        case Trim(messages):
            _require(session, "idle", "trim")
            _trim(work, messages)
        case _:
            _continue(work, given)
    return work.step()


def _continue(work: Work, given: Input) -> None:
    """Take what a command came to."""
    if work.session.compaction is not None:
        _continue_compaction(work, given)
        return
    match given:
        case Answered(answer):
            if turn.answered(work, answer):
                _after_turn(work)
        case Failed(failure):
            turn.failed(work, failure)
        case ToolsRan(results):
            turn.tools_ran(work, results)
        case Paused():
            turn.ask(work)
        case _:
            raise SessionMisuse(f"nothing waits for {type(given).__name__}")


def _continue_compaction(work: Work, given: Input) -> None:
    run = work.session.compaction
    assert run is not None
    match given:
        case Answered(answer):
            ending = compacting.answered(work, answer)
        case Failed(failure):
            ending = compacting.failed(work, failure)
        case Paused():
            ending = compacting.paused(work)
        case Disclosed(refused):
            ending = compacting.disclosed(work, refused)
        case _:
            raise SessionMisuse(f"nothing waits for {type(given).__name__}")
    if ending is not None:
        _compaction_ended(work, run.origin, ending)


def _compaction_ended(work: Work, origin: compacting.Origin, ending: compacting.Ending) -> None:
    if origin in ("pre_send", "recovery"):
        turn.compaction_ended(work, origin, ending)
        return
    kept = ending.kept_turns
    if origin == "after_turn" and ending.kind == "failed" and work.rules.max_messages is not None:
        kept -= compacting.drop(work, work.rules.max_messages)
    work.put(status="idle")
    work.then(Report(CompactionResult(ending.kind, ending.message, kept, ending.passes, ending.opened)))


def _compact(work: Work) -> None:
    refusal = refusal_of(work.rules.agent)
    if refusal is not None:
        work.then(Report(refusal))
        return
    work.put(status="compacting")
    ending = compacting.start(work, "manual")
    if ending is not None:
        _compaction_ended(work, "manual", ending)


def _after_turn(work: Work) -> None:
    """Fold older turns now if the next request would be too large anyhow."""
    if not work.rules.after_turn_compaction or compacting.due(work, None) != "yes":
        return
    work.put(status="compacting")
    ending = compacting.start(work, "after_turn")
    if ending is not None:
        _compaction_ended(work, "after_turn", ending)


def _trim(work: Work, messages: int) -> None:
    refusal = refusal_of(work.rules.agent)
    if refusal is not None:
        work.then(Report(refusal))
        return
    if messages < 1:
        raise SessionMisuse(f"{messages} messages cannot be kept; give 1 or more")
    dropped = compacting.drop(work, messages)
    kept = len(work.session.exchanges)
    work.then(Report(TrimResult("trimmed" if dropped else "nothing_to_trim", kept, dropped)))


def _interrupt(work: Work, given: Abort | Cancel | Expired) -> None:
    """Abort ends what is under way, cancel the session too; the end of the run's time is a budget that is used up."""
    session = work.session
    cancelled = isinstance(given, Cancel)
    message = {Abort: "stopped by its user", Cancel: "the session was cancelled"}.get(
        type(given), f"the wall_time cap of this run: its {work.rules.caps.wall_ms} ms are over"
    )
    compaction = session.compaction
    if compaction is not None:
        compacting.stopped(work, message)
    if session.turn is not None:
        if isinstance(given, Expired):
            turn.stop_work(work, "budget_exceeded", message, why="budget")
        else:
            why = "disposed" if cancelled else "user"
            turn.stop_work(work, "cancelled" if cancelled else "aborted", message, why=why)
    elif compaction is not None:
        work.put(status="idle")
        work.then(Report(CompactionResult("cancelled", message, len(session.exchanges), compaction.passes)))
    if cancelled:
        work.session = replace(work.session, status="ended")


def _require(session: Session, status: str, operation: str) -> None:
    if session.latched is not None:
        raise SessionMisuse(
            f"cannot {operation}: events of this session were not stored ({session.latched}); resume it"
        )
    if session.status != status:
        raise SessionMisuse(f"cannot {operation} a session that is {session.status}")
