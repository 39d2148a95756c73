"""One native agent run as a process of its own: a task on standard input, JSON lines on standard output.

The task holds the keys, so that neither a command line nor an environment does. Lines are ``{"session": id}``, then
``{"event": …}`` for each event once it is stored, and at last ``{"result": …}`` or ``{"error": sentence}``. SIGTERM and
SIGINT end the turn and store that; killed, the process leaves a log that the next reader closes.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal
from uuid import uuid4

import msgspec

from schemas.errors import SessionmillError
from schemas.relavium_agent import Agent
from storage.session_logs import JsonlSessions
from tasks.agents.masking import Mask
from tasks.agents.native.budget import Caps, Price
from tasks.agents.native.live import LiveAgent
from tasks.agents.native.protocol import Event, TurnResult
from tasks.agents.native.provider import Models, ProviderAccess
from tasks.agents.native.session import Rules
from tasks.agents.native.sessions import begin_session, opening_events, take_up_session
from tasks.agents.native.windows import known_window
from tasks.agents.native.workspace_tools import WorkspaceTools

__all__ = ["Access", "Task", "main"]

_STOPPING: Final = (signal.SIGTERM, signal.SIGINT)
_NOT_FOR_COMMANDS: Final = frozenset({"PYTHONPATH"})


class Access(msgspec.Struct, frozen=True):
    """A provider's key and address."""

    key: str
    base_url: str | None = None


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What to do. ``agent`` are a Relavium agent's fields, ``resume`` the session that goes on, ``secrets`` what tools
    may show whole, so that it can be masked, or not at all."""

    agent: dict[str, Any]
    prompt: str
    workspace: str
    sessions: str
    temporary: str | None = None
    resume: str | None = None
    access: dict[str, Access] = {}
    secrets: list[str] = []
    mode: Literal["read-only", "workspace-write", "full"] = "workspace-write"
    tools: list[str] | None = None
    tokens: int | None = None
    cost_microusd: int | None = None
    wall_ms: int | None = None
    answers: int | None = None
    tool_rounds: int | None = None
    max_turns: int = 0
    silence_seconds: float = 300.0


def main() -> int:
    """Run the task on standard input: 0 when its turn was completed, 1 when not, 3 when it could not be tried."""
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    try:
        result = asyncio.run(_run(task))
    except (SessionmillError, OSError) as error:
        _say({"error": str(error)})
        return 3
    _say({"result": msgspec.to_builtins(result)})
    return 0 if result.stop == "completed" else 1


async def _run(task: Task) -> TurnResult:
    agent = Agent.model_validate(task.agent)
    commands = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_COMMANDS}
    tools = WorkspaceTools(
        Path(task.workspace),
        task.mode,
        only=None if task.tools is None else frozenset(task.tools),
        environment=commands,
        temporary=Path(task.temporary) if task.temporary else None,
        begun=Mask(task.secrets).begun,
    )
    rules = Rules(
        agent,
        price=_price(task),
        windows=known_window,
        permit=tools.permit,
        tools=tools.offered,
        caps=Caps(task.tokens, task.cost_microusd, task.wall_ms, task.answers, task.tool_rounds),
        max_turns=task.max_turns,
        after_turn_compaction=False,
        opening=opening_events(agent, task.mode),
    )
    access = {name: ProviderAccess(each.key, each.base_url) for name, each in task.access.items()}
    now = _now()
    with JsonlSessions(Path(task.sessions)) as kept:
        if task.resume is not None:
            session, store = take_up_session(kept, task.resume, rules, now_ms=now)
        else:
            session, store = begin_session(kept, f"session-{uuid4()}", workspace=Path(task.workspace), now_ms=now)
        _say({"session": session.id})

        def stored(events: Sequence[Event]) -> None:
            store(events)
            for event in events:
                _say({"event": event})

        async with Models(
            access,
            temperature=agent.temperature,
            reasoning_effort=agent.reasoning_effort,
            silence_seconds=task.silence_seconds,
            secrets=task.secrets,
        ) as models:
            live = LiveAgent(rules, session, store=stored, ask=models.ask, call=tools.call, clock=_now)
            return await _one_turn(live, task.prompt)


def _price(task: Task) -> Price:
    """Prices, where a cap needs them: whoever reads the log prices each call by itself."""
    if task.cost_microusd is None:
        return lambda route, usage, at_ms: None
    from tasks.agents.native.prices import list_price

    return list_price


async def _one_turn(live: LiveAgent, prompt: str) -> TurnResult:
    loop = asyncio.get_running_loop()
    stopping: set[asyncio.Task[None]] = set()
    for number in _STOPPING:
        loop.add_signal_handler(number, lambda: stopping.add(loop.create_task(live.cancel())))
    try:
        await live.start()
        return await live.send(prompt)
    finally:
        for number in _STOPPING:
            loop.remove_signal_handler(number)
        await asyncio.gather(*stopping)


def _now() -> int:
    return time.time_ns() // 1_000_000


def _say(value: dict[str, Any]) -> None:
    # Whoever listened may be gone; what was done is stored all the same.
    try:
        sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
