"""Native sessions that are live: real requests to the stub model server, real files, real logs."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.dsh import Event
from schemas.relavium_agent import Agent
from storage.session_logs import JsonlSessions
from tasks.agents.native.live import LiveAgent
from tasks.agents.native.prices import list_price
from tasks.agents.native.provider import Models, ProviderAccess
from tasks.agents.native.session import Rules
from tasks.agents.native.sessions import begin_session, opening_events, take_up_session
from tasks.agents.native.windows import known_window
from tasks.agents.native.workspace_tools import WorkspaceTools
from tests.stub_llm import StubLlm

__all__ = ["KEY", "MODELS", "Place", "live_agent"]

KEY = "sk-native-4f9a1c77e2"
MODELS = {"anthropic": "claude-haiku-5-5", "openai": "gpt-5-mini", "deepseek": "deepseek-v4-flash"}
"""A model of each provider that the price list knows."""


@dataclass(frozen=True)
class Place:
    """Where a session works and is kept."""

    stub: StubLlm
    root: Path

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    @property
    def sessions(self) -> Path:
        return self.root / "sessions"

    def access(self, key: str = KEY) -> dict[str, ProviderAccess]:
        return {
            name: ProviderAccess(key, self.stub.url if name == "anthropic" else f"{self.stub.url}/v1")
            for name in MODELS
        }

    def events(self, session: str = "session-1") -> list[Event]:
        """What is stored, a turn that was cut being closed."""
        with JsonlSessions(self.sessions) as kept:
            return list(kept.inspect(session).events)

    def kinds(self) -> list[str]:
        return [event["type"] for event in self.events()]


def an_agent(provider: str = "openai", **fields: Any) -> Agent:
    """An agent of one of the `MODELS`."""
    given = {"id": "helper", "provider": provider, "model": MODELS[provider], "system_prompt": "Help."}
    return Agent.model_validate(given | fields)


@asynccontextmanager
async def live_agent(
    place: Place,
    agent: Agent | None = None,
    *,
    resume: bool = False,
    mode: Any = "workspace-write",
    silence: float = 20.0,
    before_store: Callable[[Sequence[Event]], None] = lambda events: None,
    after_store: Callable[[Sequence[Event]], None] = lambda events: None,
    acknowledge: Any = None,
    **rules: Any,
) -> AsyncIterator[LiveAgent]:
    """A started session ``session-1``; its clock stands at a fixed time and moves a millisecond each time it is read
    unless the run's time is limited."""
    bound = agent or an_agent()
    place.workspace.mkdir(parents=True, exist_ok=True)
    tools = WorkspaceTools(place.workspace, mode, environment={"PATH": "/usr/bin:/bin"})
    fixed: dict[str, Any] = {
        "price": list_price,
        "windows": known_window,
        "permit": tools.permit,
        "tools": tools.offered,
    }
    given = Rules(bound, **{**fixed, "opening": opening_events(bound, mode), **rules})
    ticks = itertools.count(1_796_000_000_000)
    loop = asyncio.get_running_loop()
    started = loop.time()

    def clock() -> int:
        passed = (loop.time() - started) * 1000 if given.caps.wall_ms is not None else 0
        return next(ticks) + int(passed)

    with JsonlSessions(place.sessions) as kept:
        if resume:
            session, store = take_up_session(kept, "session-1", given, now_ms=clock())
        else:
            session, store = begin_session(kept, "session-1", workspace=place.workspace, now_ms=clock())

        def stored(events: Sequence[Event]) -> None:
            before_store(events)
            store(events)
            after_store(events)

        async with Models(place.access(), silence_seconds=silence, reasoning_effort=bound.reasoning_effort) as models:
            live = LiveAgent(
                given, session, store=stored, ask=models.ask, call=tools.call, clock=clock, acknowledge=acknowledge
            )
            await live.start()
            yield live
