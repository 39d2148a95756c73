"""Three invented sessions, as some collector would have landed them; always the same bytes.

`bakery-orders` sends a sub-agent off; `bicycle-repair` runs out of context, starts over from a summary, and stops
while a tool is at work; in `kite-festival` the result of a tool lands in a later file than its call, which is why the
archive comes in two parts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from schemas.session_data import SCHEMA, Part, Record, SessionDataHeader, Usage, write_session_data
from schemas.times import file_stamp, format_time, parse_time

__all__ = ["first_files", "later_files"]

PREFIX = {"transcript": "transcript", "agent_meta": "meta"}
MODEL = "demo-model-1"

File = tuple[str, bytes]


def first_files() -> list[File]:
    """What has landed when the demo begins, as (key, bytes)."""
    return [*_bakery_orders(), *_bicycle_repair(), *_kite_festival()[:1]]


def later_files() -> list[File]:
    """What lands between the demo's two runs."""
    return _kite_festival()[1:]


class _Session:
    """Writes one session's landed files. Each line of a source follows the one before it, and so does the clock."""

    def __init__(self, name: str, begins: str) -> None:
        self._name = name
        self._clock = parse_time(begins)
        self._landed = 0
        self._records: list[Record] = []
        self._ends: dict[tuple[str, str], tuple[int, int]] = {}
        self._stream, self._kind = "main", "transcript"

    def source(self, stream: str, kind: str = "transcript") -> None:
        """What follows comes from this stream's file of this kind."""
        self._stream, self._kind = stream, kind

    def add(self, *parts: Part, after: int = 5, timed: bool = True, **fields: Any) -> None:
        """One record, `after` seconds later than the one before."""
        self._clock += after * 1_000_000_000
        ord, off = self._ends.get((self._stream, self._kind), (0, 0))
        line = msgspec.json.encode([fields, parts])
        if timed:
            fields["time"] = format_time(self._clock)
        self._records.append(
            Record(
                ord=ord + 1, off=off, sha=hashlib.sha256(line).hexdigest()[:12], bytes=len(line), parts=parts, **fields
            )
        )
        self._ends[self._stream, self._kind] = ord + 1, off + len(line) + 1

    def land(self) -> File:
        """The records since the last landing, as one landed file."""
        self._landed += 1
        header = SessionDataHeader(
            h=1,
            schema=SCHEMA,
            seq=self._landed,
            at=format_time(self._clock),
            kind=self._kind,
            adapter="sessionmill-demo/1",
            dialect="demo/1",
            src=f"{self._name}/{self._stream}.jsonl",
            session=self._name,
            stream=self._stream,
        )
        name = f"{PREFIX[self._kind]}-{file_stamp(self._clock)}-{self._landed:06d}.sd"
        records, self._records = self._records, []
        return f"{self._name}/streams/{self._stream}/{name}", write_session_data(header, records)

    def asks(self, id: str, run: str, text: str, **fields: Any) -> None:
        """A person asks for something."""
        self.add(_text(text), id=id, run=run, from_="external", trigger="external", flags=("external_input",), **fields)

    def answers(self, id: str, run: str, parent: str, *parts: Part, **fields: Any) -> None:
        """The agent answers, in one call to its model."""
        usage = Usage(in_=12, out=20 * len(parts), cache_read=800)
        self.add(
            *parts,
            id=id,
            parent=parent,
            run=run,
            call=f"call-{id}",
            from_="agent",
            flags=("finished",),
            usage=usage,
            model=MODEL,
            **fields,
        )

    def returns(self, id: str, run: str, parent: str, tool: str, text: str, **fields: Any) -> None:
        """A tool's result comes back."""
        self.add(_result(tool, text), id=id, parent=parent, run=run, from_="external", **fields)


def _bakery_orders() -> Iterator[File]:
    session = _Session("bakery-orders", "2026-08-03T06:00:00Z")
    session.add(label="Plan the week's bread", from_="runtime", timed=False)
    session.asks("b1", "monday", "How much flour do we need on Monday?")
    session.answers("b2", "monday", "b1", _text("I look at the orders."), _call("t1", "Read", {"file": "orders.csv"}))
    session.returns("b3", "monday", "b2", "t1", "rye 40, wheat 120")
    session.answers("b4", "monday", "b3", _text("Forty loaves of rye and 120 of wheat: 96 kg of flour."))
    session.asks("b5", "oven", "Have someone plan the oven.", after=1800)
    session.answers("b6", "oven", "b5", _call("t2", "Agent", {"task": "Plan the oven for 160 loaves"}))
    yield session.land()

    session.source("oven-planner", "agent_meta")
    session.add(tool="t2", child="oven-planner", label="Plan the oven", from_="runtime", timed=False)
    yield session.land()

    session.source("oven-planner")
    session.add(_text("Plan the oven for 160 loaves"), id="o1", run="oven", from_="external", flags=("external_input",))
    session.answers("o2", "oven", "o1", _call("t3", "Bash", {"command": "python3 oven.py 160"}))
    session.returns("o3", "oven", "o2", "t3", "5 batches of 32")
    session.answers("o4", "oven", "o3", _text("Five batches of 32, the first at four."))
    yield session.land()

    session.source("main")
    session.returns("b7", "oven", "b6", "t2", "Five batches of 32, the first at four.", child="oven-planner")
    session.answers("b8", "oven", "b7", _text("The oven is planned: five batches, the first at four."))
    yield session.land()


def _bicycle_repair() -> Iterator[File]:
    session = _Session("bicycle-repair", "2026-08-03T15:00:00Z")
    session.add(label="A rattling rear wheel", from_="runtime", timed=False)
    session.asks("w1", "rattle", "The rear wheel rattles. Why?")
    session.answers("w2", "rattle", "w1", _call("t1", "Grep", {"pattern": "spoke", "file": "manual.txt"}))
    session.returns("w3", "rattle", "w2", "t1", "page 12: a loose spoke rattles")
    session.answers("w4", "rattle", "w3", _text("A spoke is loose; page 12 says how to true the wheel."))
    yield session.land()

    session.add(id="w5", parent="w4", continues="w4", from_="runtime", flags=("context_reset",))
    summary = "So far: a loose spoke rattles; the manual's page 12 helps."
    session.add(_text(summary), id="w6", parent="w5", from_="external", flags=("reset_summary",))
    session.asks("w7", "truing", "Write down the steps.", after=900)
    session.answers("w8", "truing", "w7", _call("t2", "Bash", {"command": "cat page-12.txt > steps.txt"}))
    yield session.land()


def _kite_festival() -> list[File]:
    session = _Session("kite-festival", "2026-08-03T09:00:00Z")
    session.asks("k1", "wind", "Is there wind enough on Saturday?")
    session.answers("k2", "wind", "k1", _call("t1", "Bash", {"command": "forecast saturday"}))
    landed = [session.land()]
    session.returns("k3", "wind", "k2", "t1", "18 km/h from the west", after=40)
    session.answers("k4", "wind", "k3", _text("Yes: 18 km/h from the west, all afternoon."))
    return [*landed, session.land()]


def _text(text: str) -> Part:
    return Part(k="text", text=_raw(text), state="available", bytes=len(text.encode()))


def _call(id: str, name: str, arguments: dict[str, object]) -> Part:
    data = _raw(arguments)
    return Part(k="call", id=id, name=name, data=data, state="available", bytes=len(bytes(data)))


def _result(tool: str, text: str) -> Part:
    return Part(k="result", of=tool, text=_raw(text), state="available", bytes=len(text.encode()))


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
