"""What a session's events come to: prompts, turns, calls, steps, usage, titles (DSH version 4, sections 5 to 10).

Traps that are avoided here: a prompt stands in the queue and again as a message; an answer's usage stands in its
stream and again beside it; a fork's inherited turns are its parent's; a child's first prompt is no person's; a pruned
result is no second result; a summary's usage is in no answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from schemas._dsh_facts import Gathering
from schemas._dsh_facts_model import (
    Compaction,
    Injected,
    Outcome,
    Prompt,
    SessionFacts,
    Step,
    ToolCall,
    Turn,
    Usage,
)
from schemas._dsh_header import LogHeader
from schemas._dsh_messages import field, text_of
from schemas.dsh import Event

__all__ = [
    "Compaction",
    "Injected",
    "Outcome",
    "Prompt",
    "SessionFacts",
    "Step",
    "ToolCall",
    "Turn",
    "Usage",
    "facts_of",
    "inherited_count",
    "text_of",
]


def facts_of(header: LogHeader, events: Sequence[Event]) -> SessionFacts:
    """What ``events``, which keep the rules of the header's generation, come to."""
    gathering = Gathering(header, inherited_count(header, events))
    for event in events:
        gathering.take(event)
    return gathering.facts(len(events))


def inherited_count(header: LogHeader, events: Sequence[Event]) -> int:
    """How many of the first events were copied from another session.

    A seeded log whose mark of the end is missing was cut short within the copy: all of it is inherited.
    """
    if header.version < 2:
        return min(header.seed_length or 0, len(events))
    for event in reversed(events):
        if event["type"] == "session/end-seed" and field(event["data"], "inherited") is True:
            return int(event["seq"])
    return len(events) if header.is_seeded else 0
