"""Native sessions driven by hand: the machine alone, with answers put in place of a provider and tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from schemas.dsh import Event, EventJudge, LogHeader, closing_events
from schemas.relavium_agent import Agent
from tasks.agents.native.conversation import Answer, Failure, Route, ToolCall, ToolResult, ToolSpec, Usage
from tasks.agents.native.machine import advance
from tasks.agents.native.protocol import (
    Abort,
    Answered,
    Append,
    Ask,
    Compact,
    Disclose,
    Disclosed,
    Failed,
    Input,
    Pause,
    Paused,
    Report,
    Run,
    Send,
    Start,
    ToolsRan,
)
from tasks.agents.native.session import Rules, Session
from tasks.agents.native.sessions import native_header

__all__ = ["NOW", "Driven", "agent", "answer", "calls", "closed", "played", "rules", "stored_header"]

NOW = 1_796_000_000_000
READ = ToolSpec("read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
_SECOND = {"model": "claude-haiku-5-5", "provider": "anthropic", "max_attempts": 1}
_LONG = "word " * 1200
USED = Usage(input_uncached=100, output=10, cache_read=20)


def agent(**fields: Any) -> Agent:
    """An agent of one model, unless said otherwise."""
    given = {"id": "helper", "model": "gpt-5-mini", "provider": "openai", "system_prompt": "Help."}
    return Agent.model_validate(given | fields)


def answer(text: str = "Done.", usage: Usage | None = USED, **more: Any) -> Answer:
    return Answer(text, usage=usage, **more)


def calls(*names: str, usage: Usage | None = USED, **arguments: str) -> Answer:
    """An answer that calls these tools."""
    given = "{" + ",".join(f'"{key}":"{value}"' for key, value in arguments.items()) + "}"
    asked = tuple(ToolCall(f"call_{place}", name, given) for place, name in enumerate(names))
    return Answer("", asked, usage, "tool_use")


def dollar_a_million(route: Route, usage: Usage, at: int) -> int | None:
    """One micro-dollar a token; models called ``unlisted`` have no price."""
    return None if "unlisted" in route.model else usage.total


def rules(of: Agent | None = None, *, window: int | None = 400_000, **fields: Any) -> Rules:
    """Rules with one tool that runs, ``read_file``, and one that is denied, ``write_file``."""

    def permit(name: str) -> Any:
        return {"read_file": "run", "write_file": "denied"}.get(name, "unknown")

    given: dict[str, Any] = {"price": dollar_a_million, "windows": lambda route: window, "permit": permit}
    given |= {"tools": (READ,), "opening": (("agent-preset/selected", {"agentPreset": "helper"}),)}
    return Rules(of or agent(), **{**given, **fields})


def stored_header(session: str = "session-1") -> LogHeader:
    return native_header(session, cwd="/srv/proj", now_ms=NOW)


class Driven:
    """A session that was started, what it stored batch by batch, and what it asked for. ``stored`` is what its log held
    before. Each event is judged as it is stored.
    """

    def __init__(
        self, given: Rules | None = None, session: Session | None = None, stored: Sequence[Event] = ()
    ) -> None:
        self.rules = given or rules()
        self.session = session or Session(id="session-1", started_ms=NOW)
        self.batches: list[tuple[Event, ...]] = []
        self.asked: list[Ask] = []
        self.ran: list[Run] = []
        self.reports: list[Any] = []
        self.now = NOW
        self.waiting: Any = None
        self._judge = EventJudge(stored_header(self.session.id), stored, "log")
        self.put(Start())

    @property
    def events(self) -> list[Event]:
        return [event for batch in self.batches for event in batch]

    def kinds(self) -> list[str]:
        return [event["type"] for event in self.events]

    def of(self, kind: str) -> list[Any]:
        return [event["data"] for event in self.events if event["type"] == kind]

    def end_reasons(self) -> list[str]:
        """How the turns ended; an error's code where one is the reason."""
        reasons = [data["reason"] for data in self.of("turn/end")]
        return [reason["error"]["code"] if "error" in reason else reason["kind"] for reason in reasons]

    def put(self, given: Input) -> Any:
        """One input; what the machine waits for then, or None."""
        self.now += 1
        step = advance(self.rules, self.session, given, self.now)
        self.session = step.session
        self.waiting = None
        for command in step.commands:
            assert self.waiting is None, "nothing may follow a command that waits for an answer"
            if isinstance(command, Append):
                for event in command.events:
                    self._judge.admit(event)
                self.batches.append(command.events)
            elif isinstance(command, Report):
                self.reports.append(command.result)
            else:
                self.waiting = command
                if isinstance(command, Ask):
                    self.asked.append(command)
                elif isinstance(command, Run):
                    self.ran.append(command)
        return self.waiting

    def go(self, given: Input, *replies: Answer | Failure, tool: Callable[[ToolCall], ToolResult] | None = None) -> Any:
        """One input and all that follows, requests being answered in this order; the last report, or None where the
        replies ran out before it."""
        waiting = self.put(given)
        left = list(replies)
        while waiting is not None:
            if isinstance(waiting, Ask):
                if not left:
                    return None
                reply = left.pop(0)
                waiting = self.put(Failed(reply) if isinstance(reply, Failure) else Answered(reply))
            elif isinstance(waiting, Run):
                waiting = self.put(ToolsRan(tuple(map(tool or _read, waiting.calls))))
            elif isinstance(waiting, Pause):
                self.now += waiting.milliseconds
                waiting = self.put(Paused())
            else:
                assert isinstance(waiting, Disclose)
                waiting = self.put(Disclosed())
        assert not left, f"{len(left)} replies were not asked for"
        return self.reports[-1] if self.reports else None


def closed(events: Sequence[Event]) -> list[Event]:
    """The events as a reader has them after a crash."""
    return [*events, *closing_events(list(events), 0)]


def _read(call: ToolCall) -> ToolResult:
    return ToolResult(call.id, f"content of {call.arguments}")


def played() -> Driven:
    """Tools, a fallback after a stream that broke off, a compaction in two passes, an abort, and an answer."""
    driven = Driven(rules(agent(max_tokens=100, fallback_chain=[_SECOND])))
    asked = calls(
        "read_file", "write_file", "unheard_of", path="a.txt", usage=Usage(210, 21, cache_read=40, reasoning=3)
    )
    driven.go(Send("Read {{a}} please"), asked, answer("It says b.", usage=Usage(300, 30, cache_write=7)))
    driven.go(Send(f"One {_LONG}"), Failure("STREAM_CLOSED", "cut"), answer("Second model.", usage=Usage(500, 50)))
    driven.go(Send(f"Two {_LONG}"), answer("Two.", usage=Usage(600, 60)))
    driven.go(Send("Three"), answer("Three.", usage=Usage(700, 70)))
    driven.rules = rules(agent(max_tokens=100, fallback_chain=[_SECOND]), window=4200)
    driven.go(Compact(), answer("Half.", usage=Usage(11, 1)), answer("All of it.", usage=Usage(12, 2)))
    assert driven.reports[-1].kind == "compacted"
    driven.put(Send("Never mind"))
    driven.put(Abort())
    driven.go(Send("Four"), answer("Four.", usage=Usage(800, 80)))
    return driven
