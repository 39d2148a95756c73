"""Whether a conversation is over, so that its session may be exported.

It is when its last exchange has its answer, nothing open belongs to that exchange (a tool use without a result, a child
stream that a tool launched, that has not landed and whose return nothing reports), and it has been quiet for long
enough. Quiet is measured from the newest record of all its streams to a moment the caller gives. A headless run that
says it is over is over at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from schemas.times import NO_TIME, parse_time
from tasks.export.conversation import Conversation
from tasks.export.exchanges import Exchange

__all__ = ["why_not_quiet", "why_unfinished"]

_SECOND = 1_000_000_000


def why_unfinished(
    conversation: Conversation, exchanges: Sequence[Exchange], *, as_of: int, completed_after: int
) -> str | None:
    """Why the conversation is not over, for people; None when it is. Times in nanoseconds."""
    if not exchanges:
        return "nobody said anything in its main stream"
    last = exchanges[-1]
    if last.interrupted:
        return "its last turn was interrupted"
    if last.unanswered:
        return f"its last turn has {_counted(len(last.unanswered), 'tool use')} without a result"
    if last.answer(last=True) is None:
        return "its last turn has no final answer"
    used = {call.tool.id for call in last.calls}
    for child, tools in conversation.missing_children.items():
        if used & tools:
            return f"its last turn started child stream {child}, which has not landed"
    if last.ended:
        return None
    return why_not_quiet(conversation, as_of=as_of, completed_after=completed_after)


def why_not_quiet(conversation: Conversation, *, as_of: int, completed_after: int) -> str | None:
    """Why the conversation may still go on, for people; None when nothing has come for long enough."""
    newest = parse_time(conversation.last_time)
    if newest == NO_TIME:
        return "no record of it has a time, so it cannot be told how long it has been quiet"
    if as_of - newest < completed_after:
        quiet = max(0, as_of - newest) // _SECOND
        return f"it has been quiet for {_counted(quiet, 'second')} of {completed_after // _SECOND}"
    return None


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
