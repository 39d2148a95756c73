"""Where a log stands: its turn, step and model calls, and who set the turn going (DSH version 4, sections 7 and 12)."""

from __future__ import annotations

from typing import Any

from schemas._dsh_json import is_safe
from schemas._dsh_messages import field

__all__ = ["Inbox", "Turns", "numbered"]

Event = dict[str, Any]


def numbered(value: Any) -> str:
    """A turn's or step's number as part of a name; it can be anything."""
    return str(int(value)) if is_safe(value) else "@"


class Turns:
    """`run` names the turn that is open, `step_record` is the id of the step's first record; both are empty outside
    one, and `run` is so in a turn that began in what was inherited. `entered` are the triggers that the turn has so
    far, `attempts` the failed calls of the step."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._runs: set[str] = set()
        self._calls: set[str] = set()
        self.run = ""
        self.step_record = ""
        self.is_open = False
        self.has_step = False
        self.has_answer = False
        self.entered: set[str] = set()
        self.attempts = 0

    def begin(self, event: Event, *, own: bool) -> None:
        number = field(event["data"], "turn")
        run = f"{self._session}:t{int(number)}" if is_safe(number) else f"{self._session}:t@{event['seq']}"
        if run in self._runs:  # a turn's number is not always its own
            run = f"{run}@{event['seq']}"
        self._runs.add(run)
        self.run = run if own else ""
        self.is_open, self.has_step, self.has_answer = True, False, False
        self.step_record, self.attempts = "", 0
        self.entered = set()

    def end(self) -> None:
        self.run = self.step_record = ""
        self.is_open = self.has_step = False

    def begin_step(self, record: str) -> None:
        self.step_record, self.has_step, self.attempts = record, True, 0

    def end_step(self) -> None:
        self.step_record = ""

    def answer(self, event: Event) -> str:
        """The name of the call that gave an answer."""
        self.has_answer = True
        return self._call(self._step(event), event["seq"])

    def attempt(self, event: Event) -> str:
        """The name of a call that failed."""
        self.attempts += 1
        return self._call(f"{self._step(event)}.a{self.attempts}", event["seq"])

    def _step(self, event: Event) -> str:
        step = field(event["data"], "step")
        return f"{self.run or self._session}.s{numbered(step)}"

    def _call(self, name: str, seq: int) -> str:
        if name in self._calls:
            name = f"{name}@{seq}"
        self._calls.add(name)
        return name


class Inbox:
    """The two queues of messages, and the kinds of those that the turn has taken from them before its first step."""

    def __init__(self) -> None:
        self._queues: dict[str, list[Any]] = {}
        self.claimed: list[str] = []

    def take(self, data: Any, *, entering: bool) -> None:
        """Take in a change of a queue; `entering` says whether a turn has begun and has no step yet."""
        queue = self._queues.setdefault(str(field(data, "target")), [])
        start, removed, inserted = field(data, "start"), field(data, "removedCount"), field(data, "inserted")
        removed = 0 if removed is None else removed
        if not (is_safe(start) and is_safe(removed)):
            return
        start, removed = int(start), int(removed)
        taken = queue[start : start + removed]
        messages = inserted if isinstance(inserted, list) else []
        queue[start : start + removed] = [field(field(each, "source"), "kind") for each in messages]
        if entering and field(data, "outcome") is None:
            self.claimed += [kind for kind in taken if isinstance(kind, str)]
