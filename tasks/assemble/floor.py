"""The least that evidence adds to a round, told from the index alone.

A round over the budget is dropped and half of its evidence tried (session-flow specification, section 8). On a long
session, assembling rounds only to learn that they are too large would be most of the work, so the sizes of lines that
are certain to be written are added up first: new calls, their messages and thoughts, new tools. What they exceed, the
whole round exceeds.
"""

from __future__ import annotations

from collections.abc import Container

from .entries import Entry, Kind
from .ids import node_id
from .index import Index

__all__ = ["first_beyond"]

_LINE = len('{"t":"node","id":"","revision":1,"kind":"","parent":"","stream":"?","ref":{"seq":,"row":}}\n')
_MESSAGE = _LINE + len('message.assistant,"block":0msg//:0')
_THOUGHT = _LINE + len('thinking,"block":0think//:0')
_CALL = _LINE + len(
    'llm.call,"refs":[],"attrs":'
    '{"fragments":1,"stop_reason":"unavailable","usage":"unavailable","usage_from":"last_fragment_in_line_order"}'
)
_FRAGMENT = len('{"seq":,"row":},') - 1
_TOOL = _LINE + len(
    'tool,"block":0,"refs":[{"seq":,"row":,"block":0}],"attrs":'
    '{"name":"","result":"available","result_join":"exact_unique","timing":"unavailable"}'
)
_RESULT = len(',{"seq":,"row":,"block":0}')


def first_beyond(
    index: Index, after: int, present: Container[str], calls: Container[str], tools: Container[str], budget: int
) -> int | None:
    """The lowest landed sequence such that a round from `after` + 1 up to it is certainly larger than `budget` bytes.

    `present` holds the node ids that were published before, `calls` and `tools` the ids that files before those of the
    index named.
    None when no such sequence is certain.
    """
    if index.shared:
        return None  # records at one place meet in one node
    total = 0
    new_calls: set[str] = set()
    new_tools: set[str] = set()
    for seq in sorted(index.canonical):
        if seq <= after:
            continue
        for entry in index.canonical[seq]:
            if "/" in entry.call or any("/" in tool for _, tool, _ in entry.uses):
                return None  # ids can meet after escaping, and the later one decides what is written
            if entry.stream:
                total += _least(entry, index.repeated, present, calls, tools, new_calls, new_tools)
        if total > budget:
            return seq
    return None


def _least(
    entry: Entry,
    repeated: Container[str],
    present: Container[str],
    calls: Container[str],
    tools: Container[str],
    new_calls: set[str],
    new_tools: set[str],
) -> int:
    """Bytes of the lines that the entry is certain to add; an escape makes a line longer, never shorter."""
    total = 0
    place = len(f"{entry.seq}{entry.row}")
    call = ""
    if entry.call and entry.kind == Kind.ASSISTANT:
        # A message's own place is in its id and in its ref; its parent is the call.
        call = node_id("call", entry.call)
        own = 2 * place + len(call)
        total += len(entry.texts) * (_MESSAGE + own) + len(entry.thoughts) * (_THOUGHT + own)
        if call in new_calls:
            total += _FRAGMENT + place
        elif entry.call not in calls and call not in present:
            new_calls.add(call)
            total += _CALL + _FRAGMENT + own
            total += len(entry.stream) + (len("run/talk_/") + len(entry.run) if entry.run else len("talk/"))
    for _, tool, name in entry.uses:
        key = node_id("tool", tool)
        if tool and tool not in repeated and tool not in tools and key not in present:
            new_tools.add(tool)
            total += _TOOL + 2 * place + len(key) + len(call) + len(name)
    for _, tool in entry.results:
        if tool in new_tools:
            total += _RESULT + place
    return total
