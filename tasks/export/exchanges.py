"""Exchanges: what a person said, what the assistant called for it, and the answer.

An exchange begins with a person's words and ends before the next ones. Which words those are, the chain says for
runtimes that write prompt cycles and origins (message.external); for the others the records do: a text from outside
that is no tool result, not injected, no echo of a command and no summary. Words that arrive while the agent is at work,
queued or in the same prompt cycle, belong to the exchange that is open.

The answer is the text of the last provider call with text. A text with tool uses in the same call or after it is on the
way to an answer, not one; only when the person went on without an interruption, and every tool had answered, does it
stand as the answer, because nothing else came.

What a command sets to work belongs to no person's prompt: its text is an echo. It is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from schemas.session_data import Part, Record
from tasks.export.conversation import Conversation, Placed, Tool
from tasks.export.turn_notes import NOTHING, TurnNote, note_of
from tasks.export.words import answer_texts, beside_a_result, command_echo, is_explicit_end, is_interrupt, person_texts

__all__ = ["Answer", "Call", "Exchange", "Said", "exchanges_of"]

SIDE_TOOLS = frozenset(("Task", "Agent"))


@dataclass(frozen=True, slots=True)
class Said:
    """What a person said at once."""

    texts: tuple[str, ...]
    time: str


@dataclass(frozen=True, slots=True)
class Call:
    """One tool use with its result, if one landed; `group` is the provider call it came in."""

    group: str
    tool: Tool
    use: Part
    time: str
    model: str
    result: Part | None
    result_time: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The texts of one provider call."""

    group: str
    texts: tuple[str, ...]
    time: str
    model: str


@dataclass(slots=True)
class Exchange:
    """One person's turn to speak and what came of it, in the order it landed."""

    said: list[Said]
    run: str
    began: str = ""
    """The id of the record that began it."""
    items: list[Call | Answer] = field(default_factory=list)
    interrupted: bool = False
    ended: bool = False
    """Whether a headless run said that it was over, and nothing came after."""

    @property
    def calls(self) -> list[Call]:
        return [item for item in self.items if isinstance(item, Call)]

    @property
    def unanswered(self) -> list[Call]:
        """Tool uses without a result."""
        return [call for call in self.calls if not call.tool.answered]

    @property
    def finished(self) -> bool:
        """Whether the agent is done with it: interrupted, or with an answer that nothing follows yet."""
        return self.interrupted or self.answer(last=True) is not None

    def answer(self, *, last: bool) -> Answer | None:
        """The answer, or None; of the `last` exchange only a text that nothing follows is one."""
        texts = [(at, item) for at, item in enumerate(self.items) if isinstance(item, Answer)]
        if self.interrupted or not texts:
            return None
        place, newest = texts[-1]
        group = newest.group
        fragments = [item for _, item in texts if item.group == group]
        is_final = not any(
            isinstance(item, Call) and (item.group == group or at > place) for at, item in enumerate(self.items)
        )
        if not is_final and (last or self.unanswered):
            return None
        said = tuple(text for fragment in fragments for text in fragment.texts)
        return Answer(group, said, newest.time, newest.model)


def exchanges_of(conversation: Conversation) -> list[Exchange]:
    """The conversation's exchanges, the unanswered ones too; what comes before a person's first words is in none, and
    neither is a command's own work."""
    source = conversation.source
    spoken = _Spoken(conversation)
    results = _first_results(conversation)
    exchanges: list[Exchange] = []
    aside = _Aside()
    for placed in _without_sidechains(conversation):
        record = placed.record
        if (note := note_of(record, source)) is not NOTHING:
            _heed(note, exchanges)
        current = exchanges[-1] if exchanges else None
        if current is not None and aside.takes(record, current, source):
            _note_the_end(current, record, source)
        if current is not None and not aside.on and is_interrupt(record, source):
            current.interrupted = True
        texts = person_texts(record, source)
        if texts is not None and not spoken.by_a_person(placed, current):
            texts = None
        if texts is not None:
            aside = _Aside()
            said = Said(tuple(texts), record.time)
            if current is not None and _joins(record, current):
                current.said.append(said)
            else:
                exchanges.append(Exchange([said], record.run, record.id))
        elif current is not None and not aside.on:
            _add(current, placed, conversation, results)
    return exchanges


def _heed(note: TurnNote, exchanges: list[Exchange]) -> None:
    """Take back what was taken back, and what is no answer."""
    runs = list(dict.fromkeys(exchange.run for exchange in exchanges))
    back = set(runs[len(runs) - note.turns :]) if note.turns else set()
    exchanges[:] = [each for each in exchanges if each.run not in back and not note.takes_back(each.began)]
    if not exchanges:
        return
    last = exchanges[-1]
    if note.stopped and note.stopped == last.run:
        last.interrupted = True
    said = last.items[-1] if note.summary and last.items else None
    if isinstance(said, Answer) and any(text in summary for summary in note.summary for text in said.texts):
        last.items.pop()


class _Aside:
    """Whether what comes is a command's work, and so nobody's: from the echo of a command that was given when no
    exchange was running, to a person's next words. A command that needed no agent has none."""

    def __init__(self) -> None:
        self.on = False
        self._worked = False

    def takes(self, record: Record, current: Exchange, source: str) -> bool:
        """Look at the next record; whether it is aside."""
        echo = command_echo(record, source)
        if self.on:
            self._worked |= record.from_ == "agent"
            self.on = self._worked or echo != "output"
        elif echo == "command" and not _is_running(current):
            self.on, self._worked = True, False
        return self.on


def _is_running(exchange: Exchange) -> bool:
    """Whether the agent is at work for the exchange. While it is, the echo of a command is one that needed no agent, or
    that the agent gave itself (a skill)."""
    return bool(exchange.items) and not exchange.unanswered and not exchange.finished


class _Spoken:
    """Whom the chain heard. It hears everybody in the prompt cycles of a runtime that says where words came from, so
    other words in those cycles are the runtime's, and so are words in no cycle that lie inside a running exchange of
    one. Elsewhere words in no cycle are a person's: an older client wrote them."""

    def __init__(self, conversation: Conversation) -> None:
        self._heard = conversation.heard
        self._runs: set[str] = set()
        self._ends: dict[str, tuple[int, int]] = {}
        for placed in conversation.records:
            position, run = (placed.seq, placed.row), placed.record.run
            if run:
                self._ends[run] = position
                if position in self._heard:
                    self._runs.add(run)

    def by_a_person(self, placed: Placed, current: Exchange | None) -> bool:
        position, run = (placed.seq, placed.row), placed.record.run
        if position in self._heard or not self._runs:
            return True
        if run:
            return run not in self._runs
        return current is None or current.finished or self._ends.get(current.run, position) <= position


def _joins(record: Record, current: Exchange) -> bool:
    """Whether a person's words belong to the exchange that is open: it has no answer yet, and they were queued while
    the agent worked, or are of the same prompt cycle."""
    queued = record.from_ != "external" or beside_a_result(record)
    if not (queued or (record.run and record.run == current.run)):
        return False
    return not current.finished


def _add(current: Exchange, placed: Placed, conversation: Conversation, results: dict[str, tuple[Part, str]]) -> None:
    record, source = placed.record, conversation.source
    _note_the_end(current, record, source)
    if record.from_ != "agent":
        return
    group = record.call or f"{placed.seq}/{placed.row}"
    if texts := answer_texts(record, source):
        current.items.append(Answer(group, tuple(texts), record.time, record.model))
    for block, part in enumerate(record.parts):
        tool = conversation.tools.get((placed.seq, placed.row, block))
        if tool is not None:
            result, time = results.get(tool.id, (None, ""))
            current.items.append(Call(group, tool, part, record.time, record.model, result, time))


def _note_the_end(current: Exchange, record: Record, source: str) -> None:
    if is_explicit_end(record, source):
        current.ended = True
    elif record.from_ == "agent":
        current.ended = False


def _first_results(conversation: Conversation) -> dict[str, tuple[Part, str]]:
    """The first result of each tool use, and its time."""
    results: dict[str, tuple[Part, str]] = {}
    for placed in conversation.records:
        for part in placed.record.parts:
            if part.k == "result" and part.of:
                results.setdefault(part.of, (part, placed.record.time))
    return results


def _without_sidechains(conversation: Conversation) -> Iterator[Placed]:
    """The records without a child agent's that old clients wrote between those of the main stream: from a prompt that
    is an open agent call's own, along `parent`."""
    side: set[str] = set()
    prompts: dict[str, str] = {}
    for placed in conversation.records:
        record = placed.record
        if record.parent and record.parent in side:
            if record.id:
                side.add(record.id)
            continue
        if prompts and record.from_ == "external" and not record.parent:
            texts = person_texts(record, conversation.source)
            if texts and len(texts) == 1 and texts[0] in prompts.values():
                side.add(record.id)
                continue
        for block, part in enumerate(record.parts):
            if part.k == "result":
                prompts.pop(part.of, None)
            elif (placed.seq, placed.row, block) in conversation.tools and (prompt := _side_prompt(part)):
                prompts[part.id] = prompt
        yield placed


class _Prompt(msgspec.Struct):
    prompt: str = ""


def _side_prompt(part: Part) -> str:
    """The prompt that an agent call gives its child; empty for any other tool."""
    if part.name not in SIDE_TOOLS or not isinstance(part.data, msgspec.Raw):
        return ""
    try:
        return msgspec.json.decode(part.data, type=_Prompt).prompt
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
