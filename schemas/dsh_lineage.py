"""Which session came from which: forks, and sub-agents with the call that started them (DSH version 4, section 9).

A child's header names its parent, and nothing in it names the call. The call is found by what both logs say, and how
firmly that is known is part of the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from schemas import _dsh_messages as messages
from schemas._dsh_json import UndecodableJSON, read_value
from schemas.dsh import Event, LogHeader, StoredLog
from schemas.dsh_facts import inherited_count

__all__ = [
    "ChildsWord",
    "Delegation",
    "Evidence",
    "Fork",
    "ParentsWord",
    "childs_word",
    "delegates",
    "delegation",
    "delegations",
    "forks",
    "named_child",
    "parents_word",
]

Evidence = Literal["result", "workflow", "words", "header"]
"""How a child's call is known. ``result``: the call's result names the child. ``workflow``: the child is named within a
workflow, and one call was under way. ``words``: one call asked in the child's very words. ``header``: not at all.
"""

_STARTED = re.compile(r"started subagent (\S+)")
_DELEGATING = ("subagent", "subagent_fork")


@dataclass(frozen=True, slots=True)
class Fork:
    """A session that goes on from a copy of another's events."""

    parent: str
    child: str
    inherited_events: int


@dataclass(frozen=True, slots=True)
class Delegation:
    """A sub-agent's session, and what its parent's log says of it; ``result_seq`` is that of the call's result."""

    parent: str
    child: str
    label: str | None
    seeded: bool
    evidence: Evidence
    call_id: str | None
    result_seq: int | None
    catalog_seq: int | None
    notice_seqs: tuple[int, ...]


@dataclass
class _Call:
    """A call for which execution began, and its result once there is one."""

    call_id: str
    name: Any
    arguments: Any
    time: int
    result_seq: int | None = None
    result_time: int = 0


@dataclass(frozen=True, slots=True)
class ChildsWord:
    """What a child's own log says of how it began: its label, and the first text block of its first prompt."""

    header: LogHeader
    label: Any
    prompt: str | None


@dataclass
class ParentsWord:
    """What a parent's own events say of its children, by child."""

    calls: list[_Call] = field(default_factory=list)
    started: dict[str, _Call] = field(default_factory=dict)
    under_way: dict[str, list[_Call]] = field(default_factory=dict)
    catalogs: dict[str, Event] = field(default_factory=dict)
    notices: dict[str, list[int]] = field(default_factory=dict)


def forks(logs: Iterable[StoredLog]) -> list[Fork]:
    """The forks among ``logs``, in their order."""
    return [
        Fork(log.header.parent_session, log.header.id, inherited_count(log.header, log.events))
        for log in logs
        if log.header.parent_session is not None and log.header.origin is None
    ]


def delegations(parent: StoredLog, logs: Iterable[StoredLog]) -> list[Delegation]:
    """The children of ``parent`` among ``logs``, the first made first."""
    children = [
        log for log in logs if log.header.origin == "subagent" and log.header.parent_session == parent.header.id
    ]
    children.sort(key=lambda log: (log.header.created_at, log.header.id))
    word = parents_word(parent)
    return [delegation(parent.header.id, childs_word(child), word) for child in children]


def parents_word(parent: StoredLog) -> ParentsWord:
    """What the log of ``parent`` says of its children; what it inherited is about another's."""
    return _read_parent(parent.events[inherited_count(parent.header, parent.events) :])


def childs_word(child: StoredLog) -> ChildsWord:
    """What the log of ``child`` says of how it began."""
    own = child.events[inherited_count(child.header, child.events) :]
    return ChildsWord(child.header, _label(own), _first_prompt(own))


def delegation(parent: str, child: ChildsWord, word: ParentsWord) -> Delegation:
    """How the session ``parent``, whose log says ``word``, came to have ``child``."""
    session = child.header.id
    catalog = word.catalogs.get(session)
    label = child.label or (catalog and messages.field(catalog["data"], "label"))
    evidence: Evidence = "header"
    call = word.started.get(session)
    if call is not None:
        evidence = "result"
    elif session in word.under_way:
        if len(word.under_way[session]) == 1:
            evidence, call = "workflow", word.under_way[session][0]
    else:
        asked = [each for each in word.calls if _asked_in_these_words(each, child, label)]
        if len(asked) == 1 and asked[0] not in word.started.values():
            evidence, call = "words", asked[0]
    return Delegation(
        parent=parent,
        child=session,
        label=label if isinstance(label, str) else None,
        seeded=child.header.is_seeded is True or bool(child.header.seed_length),
        evidence=evidence,
        call_id=call.call_id if call else None,
        result_seq=call.result_seq if call else None,
        catalog_seq=catalog["seq"] if catalog else None,
        notice_seqs=tuple(word.notices.get(session, ())),
    )


def delegates(name: Any) -> bool:
    """Whether a tool of this name starts a sub-agent."""
    return name in _DELEGATING


def named_child(name: Any, message: Event) -> str | None:
    """The session that a result of the tool ``name`` says it has started; None when it says no such thing."""
    if not delegates(name):
        return None
    named = _STARTED.fullmatch(_result_text(message).strip())
    return named[1] if named else None


def _read_parent(events: Sequence[Event]) -> ParentsWord:
    word = ParentsWord()
    unanswered: dict[str, _Call] = {}
    for event in events:
        kind, data = event["type"], event["data"]
        child = messages.field(data, "childId")
        if kind == "tool/call":
            call_id = messages.field(data, "callId")
            if isinstance(call_id, str):
                call = _Call(call_id, messages.field(data, "name"), _arguments(data), event["time"])
                unanswered[call_id] = call
                word.calls.append(call)
        elif kind == "tool/result":
            message = messages.message_of(event)
            answered = unanswered.pop(message["source"]["callId"], None)
            if answered is not None:
                answered.result_seq, answered.result_time = event["seq"], event["time"]
                if (started := named_child(answered.name, message)) is not None:
                    word.started[started] = answered
        elif kind == "tool-workflow/agent-start" and isinstance(child, str):
            word.under_way[child] = list(unanswered.values())
        elif kind == "subagent/catalog" and isinstance(child, str):
            word.catalogs[child] = event
        elif kind == "user/message" and data["source"]["kind"] == "subagent-settled":
            word.notices.setdefault(str(data["source"].get("senderSessionId")), []).append(event["seq"])
    return word


def _asked_in_these_words(call: _Call, child: ChildsWord, label: Any) -> bool:
    """Whether ``call`` delegated under the child's label and in the words of its prompt, while the child was made."""
    if call.name not in _DELEGATING or child.prompt is None:
        return False
    if messages.field(call.arguments, "description") != label:
        return False
    if messages.field(call.arguments, "prompt") != child.prompt:
        return False
    made = child.header.created_at
    return call.time <= made and (call.result_seq is None or made <= call.result_time)


def _label(own: Sequence[Event]) -> Any:
    return next(
        (messages.field(event["data"], "label") for event in own if event["type"] == "subagent/descriptor"), None
    )


def _first_prompt(own: Sequence[Event]) -> str | None:
    """The first text block of a child's first prompt: a second one is the program's, and names the parent."""
    for event in own:
        if event["type"] == "user/message" and event["data"]["source"]["kind"] == "user":
            blocks = messages.blocks_of(event["data"])
            return messages.text_of(blocks[:1])
    return None


def _arguments(data: Any) -> Any:
    text = messages.field(data, "arguments")
    try:
        return read_value(text.encode("utf-8", "surrogatepass"))[0] if isinstance(text, str) else None
    except UndecodableJSON:
        return None


def _result_text(message: Event) -> str:
    content = message["content"] if message["role"] == "tool" else message["content"][0]["content"]
    return messages.text_of(content)
