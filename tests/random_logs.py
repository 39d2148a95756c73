"""Invented session logs of generation 0, as odd as the format allows: whole and open turns, streams, replacements."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from schemas.dsh import Event, LogHeader

__all__ = ["RandomLog", "random_log"]

_TEXTS = (
    "",
    "Some words, and why.",
    "zwei\nZeilen\t\u2028\u2029",
    "\U0001f9ea emoji \ud83e and half of one",
    "nul \0 and \x7f",
    'quotes " and \\ and </script>',
    "x" * 5000,
)
_NUMBERS = (0, 1, -1, 2**53 - 1, 123456789012345683968, 1e21, 1e-7, 0.1, -1.5, 1.7976931348623157e308, 5e-324)
_KEYS = ("b", "a", "10", "9", "01", "-1", "\u00e9", "constructor", "")
_IDS = ("plain", "with space/../x", "..", "\u00e9\U0001f9ea~", "a" * 60, "\ud800")
_FOLDERS = (None, "/", "/srv/proj", "/w\u00f6rk/my proj:1/~tmp//x", "/" + "deep/" * 70)


@dataclass(frozen=True)
class RandomLog:
    """A session and the batches in which its events are stored."""

    meta: LogHeader
    batches: list[list[Event]]

    @property
    def events(self) -> list[Event]:
        return [event for batch in self.batches for event in batch]


class _Writer:
    """Writes one log's events, remembering what a rule may ask for later."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.events: list[Event] = []
        self.surface: list[tuple[int, Event]] = []
        self.time = 1_796_000_000_000
        self.calls = 0

    def add(self, kind: str, data: Any, **placed: Any) -> Event:
        self.time += self.chance.choice((0, 1, 7, 1000, -3, 86_400_000))
        event = {"type": kind, "seq": len(self.events), "time": self.time, "data": data, **placed}
        self.events.append(event)
        return event

    def message(self, kind: str, data: Any, **cited: Any) -> Event:
        event = self.add(kind, data, surfaceOp="append", **cited)
        self.surface.append((event["seq"], event))
        return event

    def text(self) -> str:
        return self.chance.choice(_TEXTS)

    def value(self, depth: int = 0) -> Any:
        kind = self.chance.randrange(7 if depth < 4 else 4)
        if kind == 0:
            return self.text()
        if kind == 1:
            return self.chance.choice(_NUMBERS)
        if kind in (2, 3):
            return self.chance.choice((None, True, False))
        if kind == 4:
            return [self.value(depth + 1) for _ in range(self.chance.randrange(4))]
        keys = self.chance.sample(_KEYS, self.chance.randrange(5))
        return {key: self.value(depth + 1) for key in keys}


def random_log(number: int) -> RandomLog:
    """The log of this number: the same each time."""
    chance = random.Random(number)
    writer = _Writer(chance)
    for turn in range(1, chance.randrange(1, 5)):
        _turn(writer, turn, unfinished=False)
    if chance.random() < 0.4:
        _turn(writer, 9, unfinished=True)
    if not writer.events:
        writer.add("plan/mode", {"active": True})
    events = writer.events
    meta = LogHeader(
        version=0,
        id=f"{chance.choice(_IDS)}-{number}",
        created_at=chance.choice((0, 1_796_000_000_000, 2**53 - 1)),
        cwd=chance.choice(_FOLDERS),
        parent_session=chance.choice((None, "p", "\ud800")),
        seed_length=chance.choice((None, 0, len(events))),
        origin=chance.choice((None, "subagent")),
        delegation_depth=chance.choice((0, 1, 2**53 - 1)),
        agent_preset=chance.choice((None, "code")),
    )
    batches = []
    position = 0
    while position < len(events):
        size = chance.choice((1, 2, 3, 5, 40, 400))
        batches.append(events[position : position + size])
        position += size
    return RandomLog(meta, batches)


def _turn(writer: _Writer, turn: int, *, unfinished: bool) -> None:
    chance = writer.chance
    writer.add("turn/start", {"turn": turn})
    end = chance.randrange(6) if unfinished else 99
    for step in range(1, chance.randrange(2, 4)):
        writer.add("step/start", {"turn": turn, "step": step})
        if end == 0:
            return
        source = chance.choice(({"kind": "user"}, {"kind": "plugin", "plugin": "p", "form": "notice", "summary": "s"}))
        data = {"content": [{"type": "text", "text": writer.text()}], "source": source, "role": "user"}
        writer.message("user/message", {**data, "id": f"u{len(writer.events)}"})
        if chance.random() < 0.3:
            writer.add("request/header", _request(writer))
        if end == 1:
            return
        calls = [_call(writer) for _ in range(chance.choice((0, 0, 1, 3)))]
        chunks = _stream(writer, turn, step, calls)
        if end == 2:
            return
        _answer(writer, turn, step, calls, chunks)
        if end == 3:
            return
        begun = {}
        for call in chance.sample(calls, len(calls)):
            told = {"callId": call["id"], "name": call["name"], "arguments": call["arguments"]}
            begun[call["id"]] = writer.add("tool/call", {"turn": turn, "step": step, **told})["seq"]
        if end == 4:
            return
        for call in chance.sample(calls, len(calls) if end == 99 else len(calls) // 2):
            _result(writer, turn, step, call["id"], begun[call["id"]])
        if end == 5:
            return
        if chance.random() < 0.3:
            _replace(writer)
        if chance.random() < 0.3:
            writer.add("somebody/else", writer.value(), ignorable=True)
        writer.add("todo/write", {"todos": writer.value()})
        writer.add("step/end", {"turn": turn, "step": step})
    reasons = ({"kind": "completed"}, {"kind": "aborted", "reason": {"kind": "user"}}, {"kind": "new", "x": 1})
    writer.add("turn/end", {"turn": turn, "reason": chance.choice(reasons)})


def _request(writer: _Writer) -> Any:
    config = {"provider": "p", "model": "m", "reasoningEffort": "high", "maxTokens": 256_000}
    return {
        "header": {"config": config, "adapterDefaults": {"maxTokens": True}, "system": writer.text()},
        "reason": "x",
    }


def _call(writer: _Writer) -> dict[str, Any]:
    writer.calls += 1
    return {"type": "tool-call", "id": f"c{writer.calls}", "name": "bash", "arguments": '{"x": 1e400}'}


def _stream(writer: _Writer, turn: int, step: int, calls: list[dict[str, Any]]) -> list[int]:
    """What the model streamed; the numbers of those events."""
    first = len(writer.events)

    def piece(**chunk: Any) -> None:
        writer.add("assistant/chunk", {"turn": turn, "step": step, "chunk": chunk})

    for index, kind in enumerate(("reasoning-delta", "text-delta")):
        for _ in range(writer.chance.choice((0, 1, 2, 3, 9, 60))):
            piece(type=kind, index=index, text=writer.chance.choice(_TEXTS[:-1]))
            if writer.chance.random() < 0.05:
                writer.add("session/title", {"title": writer.text(), "messageSeqs": [], "source": {"kind": "user"}})
    for index, call in enumerate(calls, 2):
        named = {"name": call["name"]} if writer.chance.random() < 0.5 else {}
        for letter in call["arguments"]:
            piece(type="tool-call-delta", index=index, id=call["id"], **named, argumentsDelta=letter)
            named = named if writer.chance.random() < 0.9 else {}
    piece(type="usage", usage={"inputTokens": 3, "outputTokens": 4})
    piece(type="finish", reason={"kind": "stop"})
    return [event["seq"] for event in writer.events[first:] if event["type"] == "assistant/chunk"]


def _answer(writer: _Writer, turn: int, step: int, calls: list[dict[str, Any]], chunks: list[int]) -> None:
    source = {"kind": "model", "provider": "p", "model": "m", "replayState": writer.value()}
    content = [{"type": "text", "text": writer.text()}, *calls]
    message = {"role": "assistant", "content": content, "source": source, "id": f"a{len(writer.events)}"}
    cited = chunks if writer.chance.random() < 0.7 else []
    writer.message("assistant/message", {"turn": turn, "step": step, "message": message}, sourceEventSeqs=cited)


def _result(writer: _Writer, turn: int, step: int, call: str, begun: int) -> None:
    content = [{"type": "text", "text": writer.text()}]
    block = {"type": "tool-result", "toolCallId": call, "content": content, "isError": writer.chance.random() < 0.3}
    message = {"role": "user", "content": [block], "source": {"kind": "tool", "callId": call}, "id": f"r{call}"}
    data = {"turn": turn, "step": step, "message": message, "meta": writer.value()}
    writer.message("tool/result", data, sourceEventSeqs=[begun])


def _replace(writer: _Writer) -> None:
    """Put one message in the place of several, or a shorter result in the place of a result."""
    place = writer.chance.randrange(len(writer.surface))
    seq, event = writer.surface[place]
    if event["type"] == "tool/result":
        message = event["data"]["message"]
        block = {**message["content"][0], "content": [{"type": "text", "text": "[cut]"}]}
        data = {**event["data"], "message": {**message, "content": [block]}}
        gone = [(seq, event)]
        kind = "tool/result"
    else:
        gone = writer.surface[place : place + writer.chance.randrange(1, 4)]
        source = {"kind": "plugin", "plugin": "compact"}
        data = {"content": [], "source": source, "role": "user", "id": f"k{len(writer.events)}"}
        kind = "user/message"
    cited = [each for each, _ in gone]
    writer.chance.shuffle(cited)
    operation = {"op": "replace", "start": gone[0][0], "end": gone[-1][0]}
    replacing = writer.add(kind, data, surfaceOp=operation, sourceEventSeqs=cited)
    writer.surface[place : place + len(gone)] = [(replacing["seq"], replacing)]
