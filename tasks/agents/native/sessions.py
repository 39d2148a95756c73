"""Where a native session is kept: begun in, and taken up from, a session log (agent-session specification, "start",
"resume" and "export").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from schemas.dsh import NATIVE_PRESET, LogHeader
from schemas.errors import WrongUse
from schemas.relavium_agent import Agent
from storage.session_logs import SessionPersistence, SessionReader
from tasks.agents.native.budget import Price
from tasks.agents.native.live import Store
from tasks.agents.native.protocol import Event
from tasks.agents.native.restore import bound_agent, restored
from tasks.agents.native.session import Rules, Session
from tasks.agents.native.transcript import exported
from tasks.agents.native.workspace_tools import Mode
from tasks.export.scaffold import Scaffold

__all__ = ["begin_session", "export_session", "native_header", "opening_events", "take_up_session"]

_SANDBOXES: Final[dict[Mode, str]] = {
    "read-only": "read-only",
    "workspace-write": "workspace-write",
    "full": "danger-full-access",
}


def opening_events(agent: Agent, mode: Mode) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """What a new session's log begins with: the agent it is bound to, and what that may do."""
    return (
        ("agent-preset/selected", {"agentPreset": agent.id}),
        ("permission/preset", {"preset": mode}),
        ("sandbox/mode", {"mode": _SANDBOXES[mode]}),
        ("approval/policy", {"policy": "never"}),
    )


def native_header(session: str, *, cwd: str, now_ms: int) -> LogHeader:
    """The header of a native session's log, by which its calls are told from those of DeepSeek Harness."""
    return LogHeader(version=0, id=session, created_at=now_ms, cwd=cwd, delegation_depth=0, agent_preset=NATIVE_PRESET)


def begin_session(
    persistence: SessionPersistence, session: str, *, workspace: Path, now_ms: int
) -> tuple[Session, Store]:
    """A new session, and where its events go; nothing of it is stored before it is started."""
    persistence.create(native_header(session, cwd=str(workspace.absolute()), now_ms=now_ms))
    return Session(id=session, started_ms=now_ms), partial(persistence.append, session)


def take_up_session(
    persistence: SessionPersistence, session: str, rules: Rules, *, now_ms: int
) -> tuple[Session, Store]:
    """A stored session, a turn that was cut being closed first, and where its events go. Raises WrongUse for a session
    of another agent, and LogRejected for a log that cannot be read or is not of a native session.
    """
    events = persistence.load(session).events
    _check_bound(session, events, rules.agent)
    return restored(session, events, price=rules.price, now_ms=now_ms), partial(persistence.append, session)


def export_session(sessions: SessionReader, session: str, agent: Agent, *, price: Price) -> Scaffold:
    """A stored session's `.relavium.yaml`: all its completed turns, those too that requests no longer carry. Raises as
    `take_up_session` does; nothing is written.
    """
    found = sessions.inspect(session)
    _check_bound(session, found.events, agent)
    return exported(found.meta, found.events, agent, price=price)


def _check_bound(session: str, events: Sequence[Event], agent: Agent) -> None:
    bound = bound_agent(events)
    if bound is None:
        raise WrongUse(f"session {session} was begun by no native agent, so none can take it up")
    if bound != agent.id:
        raise WrongUse(f"session {session} belongs to agent {bound}, not to {agent.id}; a session never changes it")
