"""What a turn's next request is, and how the log says which model was asked with what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tasks.agents.native.conversation import Request, Route
from tasks.agents.native.estimate import DEFAULT_OUTPUT, request_tokens
from tasks.agents.native.fallback import Entry, chain_of
from tasks.agents.native.memory import projected
from tasks.agents.native.session import Rules
from tasks.agents.native.work import Work

__all__ = ["chain_of_session", "measured", "next_request", "output_reserve", "register", "turn_request"]


def chain_of_session(work: Work) -> tuple[Entry, ...]:
    """The models that this session may ask, in their order."""
    return chain_of(work.rules.agent)


def output_reserve(rules: Rules) -> int:
    """Tokens of output that one request may take."""
    return int(rules.agent.max_tokens or rules.max_tokens_estimate or DEFAULT_OUTPUT)


def turn_request(work: Work) -> Request:
    """The next request of the turn under way, its tool rounds included."""
    return measured(replace(next_request(work, work.turn.text), rounds=work.turn.rounds))


def next_request(work: Work, pending: str | None) -> Request:
    """The request that would carry the history and ``pending``; measured."""
    agent, session = work.rules.agent, work.session
    messages = projected(agent, session.summary, session.exchanges, pending)
    limit = int(agent.max_tokens) if agent.max_tokens is not None else None
    return measured(Request(agent.system_prompt, messages, work.rules.tools, max_tokens=limit))


def measured(request: Request) -> Request:
    """The request with its own estimate."""
    return replace(request, estimate=request_tokens(request))


def register(work: Work, route: Route, request: Request) -> None:
    """Note the model, its settings and tools, where they are not those of the request before."""
    agent, session = work.rules.agent, work.session
    config: dict[str, Any] = {"provider": route.provider, "model": route.model}
    if agent.reasoning_effort is not None:
        config["reasoningEffort"] = agent.reasoning_effort
    if agent.temperature is not None:
        config["temperature"] = agent.temperature
    if request.max_tokens is not None:
        config["maxTokens"] = request.max_tokens
    tools = [
        {"name": each.name, "description": each.description, "parameters": each.parameters} for each in request.tools
    ]
    header = {"config": config, "system": request.system, "tools": tools}
    if header != session.header:
        reason = "change" if session.header is not None else "initial" if session.turns == 1 else "resume"
        work.mark("request/header", header=header, reason=reason)
    context: dict[str, Any] = {"provider": route.provider, "model": route.model}
    window = work.rules.windows(route)
    if window is not None:
        context["contextWindow"] = window
    if context != session.context:
        work.mark("request/context", **context)
    work.put(header=header, context=context)
