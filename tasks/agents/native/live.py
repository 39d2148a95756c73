"""A session that is live: it carries out what the machine asks for, one command after the other.

Every batch of events is durable before what comes after it, so a crash loses nothing that was paid for but the last
answer, and the log says of that that it is unknown. `abort`, `cancel` and the end of the run's time reach whatever is
under way; an answer that came first is taken first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar, cast

from schemas.errors import SessionmillError
from tasks.agents.native.conversation import Answer, Failure, Request, Route, ToolCall, ToolResult
from tasks.agents.native.machine import SessionMisuse, advance
from tasks.agents.native.memory import PolicyRefusal
from tasks.agents.native.protocol import (
    Abort,
    Answered,
    Append,
    Ask,
    Cancel,
    Command,
    Compact,
    CompactionResult,
    Disclose,
    Disclosed,
    Event,
    Expired,
    Failed,
    Input,
    NotStored,
    Pause,
    Paused,
    Report,
    Run,
    Send,
    Start,
    ToolsRan,
    Trim,
    TrimResult,
    TurnResult,
)
from tasks.agents.native.session import Rules, Session

__all__ = ["LiveAgent", "Store"]

Result = TurnResult | CompactionResult | TrimResult | PolicyRefusal
Interrupt = Abort | Cancel | Expired
Value = TypeVar("Value")


class Store(Protocol):
    """Where events are made durable; returns when they are, raises when they are not."""

    def __call__(self, events: Sequence[Event]) -> None: ...


class LiveAgent:
    """One instance of a session. ``ask`` makes a model request, ``call`` runs a tool, ``clock`` is milliseconds since
    1970, ``acknowledge`` shows a sentence before a compaction whose size cannot be known. One operation at a time;
    `abort` and `cancel` come from another task.
    """

    def __init__(
        self,
        rules: Rules,
        session: Session,
        *,
        store: Store,
        ask: Callable[[Route, Request], Awaitable[Answer | Failure]],
        call: Callable[[ToolCall], Awaitable[ToolResult]],
        clock: Callable[[], int],
        acknowledge: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self.rules = rules
        self.session = session
        self._store = store
        self._ask = ask
        self._call = call
        self._clock = clock
        self._acknowledge = acknowledge
        self._interrupt: Interrupt | None = None
        self._interrupted = asyncio.Event()
        self._busy = asyncio.Lock()

    async def start(self) -> None:
        """Open the session, or take it up again; its log exists afterwards."""
        await self._operate(Start())

    async def send(self, text: str) -> TurnResult:
        """One turn; the session may fold older turns afterwards before this returns."""
        return cast(TurnResult, await self._operate(Send(text)))

    async def compact(self) -> CompactionResult | PolicyRefusal:
        """Fold the older turns into a summary."""
        return cast(CompactionResult | PolicyRefusal, await self._operate(Compact()))

    async def trim(self, messages: int) -> TrimResult | PolicyRefusal:
        """Keep the last turns, of at most so many messages."""
        return cast(TrimResult | PolicyRefusal, await self._operate(Trim(messages)))

    def abort(self) -> None:
        """End what is under way and keep the session. Does nothing when nothing is."""
        self._stop(Abort())

    async def cancel(self) -> None:
        """End what is under way, and the session."""
        self._stop(Cancel())
        async with self._busy:
            if self.session.status != "ended":
                await self._drive(Cancel())
            self._clear()

    async def _operate(self, given: Input) -> Result | None:
        if self._busy.locked():
            raise SessionMisuse(f"cannot {type(given).__name__.lower()}: the session is {self.session.status}")
        async with self._busy:
            result = await self._drive(given)
            if isinstance(self._interrupt, Cancel) and self.session.status != "ended":
                await self._drive(Cancel())
            self._clear()
            return result

    async def _drive(self, given: Input) -> Result | None:
        """Put one input to the machine and all that follow from it; the first report is what the caller gets."""
        reported: Result | None = None
        following: Input | None = given
        while following is not None:
            step = advance(self.rules, self.session, following, self._clock())
            self.session, following = step.session, None
            for command in step.commands:
                if isinstance(command, Report):
                    reported = reported or command.result
                    continue
                following = await self._carry_out(command)
                if isinstance(following, NotStored):
                    break
        return reported

    async def _carry_out(self, command: Command) -> Input | None:
        match command:
            case Append(events):
                try:
                    self._store(events)
                except (SessionmillError, OSError) as error:
                    return NotStored(str(error))
                return None
            case Ask(route, request):
                asked = await self._unless_stopped(self._ask(route, request))
                if isinstance(asked, (Abort, Cancel, Expired)):
                    return asked
                return Failed(asked) if isinstance(asked, Failure) else Answered(asked)
            case Run(calls):
                ran = await self._unless_stopped(self._run(calls))
                return ran if isinstance(ran, (Abort, Cancel, Expired)) else ToolsRan(ran)
            case Pause(milliseconds):
                paused = await self._unless_stopped(asyncio.sleep(milliseconds / 1000))
                return Paused() if paused is None else paused
            case Disclose(message):
                shown = await self._unless_stopped(self._disclose(message))
                return shown if isinstance(shown, (Abort, Cancel, Expired)) else Disclosed(shown)
        raise AssertionError(f"no such command: {command}")

    async def _run(self, calls: tuple[ToolCall, ...]) -> tuple[ToolResult, ...]:
        return tuple([await self._call(call) for call in calls])

    async def _disclose(self, message: str) -> str | None:
        if self._acknowledge is None:
            return "nobody is there to acknowledge it"
        try:
            await self._acknowledge(message)
        except Exception as error:  # whatever the surface raises is its refusal
            return str(error) or type(error).__name__
        return None

    async def _unless_stopped(self, work: Awaitable[Value]) -> Value | Interrupt:
        """What the work comes to; or the interrupt, the work being cancelled and over then."""
        if self._interrupt is not None:
            if isinstance(work, Coroutine):
                work.close()
            return self._interrupt
        task = asyncio.ensure_future(work)
        stop = asyncio.ensure_future(self._interrupted.wait())
        try:
            await asyncio.wait((task, stop), timeout=self._seconds_left(), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            return self._cause()
        finally:
            for each in (task, stop):
                each.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await each

    def _cause(self) -> Interrupt:
        return self._interrupt if self._interrupt is not None else Expired()

    def _seconds_left(self) -> float | None:
        limit = self.rules.caps.wall_ms
        if limit is None:
            return None
        return max(0.0, (self.session.started_ms + limit - self._clock()) / 1000)

    def _stop(self, interrupt: Abort | Cancel) -> None:
        if self._busy.locked() and not isinstance(self._interrupt, Cancel):
            self._interrupt = interrupt
            self._interrupted.set()

    def _clear(self) -> None:
        """An abort that came too late is forgotten."""
        self._interrupt = None
        self._interrupted.clear()
