"""Relavium's agent: the inline snapshot of a session, and what an author may write today (notes, section 1.5).

`Agent` is what the schema accepts. It keeps a fallback chain as it is, repeats and all: history is not rewritten.
`authored_problems` says what of it the engine would refuse before a run.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, Self

from pydantic import PlainValidator, Tag, model_validator

from schemas._relavium_model import Strict, by_type, repeated, tag
from schemas._relavium_values import (
    AnyText,
    Count,
    Flag,
    JsonMap,
    Kebab,
    Maybe,
    Temperature,
    Text,
    TextMap,
    Url,
    integer,
    one_of,
    refuse,
)

__all__ = ["Agent", "FallbackEntry", "McpServer", "Memory", "Retry", "authored_problems"]

MAX_RETRY_ATTEMPTS: Final = 10
MAX_FALLBACK_ENTRIES: Final = 5
MAX_FALLBACK_ATTEMPTS: Final = 10
"""Admission ceilings of the engine (not of the schema)."""

_DENIED_ENV = frozenset(
    {"NODE_OPTIONS", "NODE_PATH", "NODE_V8_COVERAGE", "PERL5LIB", "PERL5OPT", "RUBYLIB", "RUBYOPT"}
    | {"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH", "BASH_ENV", "ENV", "IFS", "HOME"}
    | {"XDG_CONFIG_HOME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "PATH", "ZDOTDIR"}
)
_DENIED_ENV_PREFIXES = ("DYLD_", "LD_", "GIT_", "PYTHON", "NPM_CONFIG_", "BASH_FUNC_")
_BESIDE_REF = (
    "id",
    "transport",
    "command",
    "args",
    "env",
    "url",
    "allow_local_endpoint",
    "connect_timeout_ms",
)
_CREDENTIALS = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#]*@", re.IGNORECASE)
_SCHEMES = {
    "websocket": re.compile(r"wss?://", re.IGNORECASE),
    "http": re.compile(r"https?://", re.IGNORECASE),
    "sse": re.compile(r"https?://", re.IGNORECASE),
}

Provider = Annotated[str, PlainValidator(one_of("anthropic", "openai", "gemini", "deepseek"))]


def _tools(value: Any) -> list[str]:
    names = _texts(value)
    if not names:
        refuse("too_small", "expected at least one tool; leave it out to admit all")
    return names


def _texts(value: Any) -> list[str]:
    return _list_of(value, shortest=1)


def _any_texts(value: Any) -> list[str]:
    return _list_of(value, shortest=0)


def _list_of(value: Any, *, shortest: int) -> list[str]:
    if not isinstance(value, list):
        refuse("invalid_type", "expected an array of strings")
    for place, item in enumerate(value):
        if not isinstance(item, str):
            refuse("invalid_type", "expected a string", at=str(place))
        if len(item) < shortest:
            refuse("too_small", "an empty string", at=str(place))
    return value


TextList = Annotated[list[str], PlainValidator(_texts)]
"""An array of strings that are not empty; the array may be."""


class Retry(Strict):
    """How often a node is tried; ``max`` counts the first attempt."""

    max: Count
    backoff: Annotated[str, PlainValidator(one_of("linear", "exponential"))]
    backoff_ms: Maybe[Count] = None
    retry_on: Maybe[
        list[
            Annotated[
                str,
                PlainValidator(one_of("provider_rate_limit", "provider_unavailable", "tool_failed", "sandbox_error")),
            ]
        ]
    ] = None

    @model_validator(mode="after")
    def _some_reason(self) -> Self:
        if self.retry_on == []:
            refuse("too_small", "expected at least one", at="retry_on")
        return self


class FallbackEntry(Strict):
    """One alternative to the agent's own model."""

    model: Text
    provider: Provider
    max_attempts: Count


class NoMemory(Strict):
    type: Literal["none"]


class SummaryMemory(Strict):
    type: Literal["summary"]


class WindowMemory(Strict):
    type: Literal["window"]
    window_size: Count


Memory = Annotated[
    Annotated[NoMemory, Tag(tag("none"))]
    | Annotated[SummaryMemory, Tag(tag("summary"))]
    | Annotated[WindowMemory, Tag(tag("window"))],
    by_type(),
]


class McpServer(Strict):
    """A tool server, either named (``ref``) or described inline (``id`` and ``transport``)."""

    ref: Maybe[Text] = None
    id: Maybe[Kebab] = None
    transport: Maybe[Annotated[str, PlainValidator(one_of("stdio", "http", "websocket", "sse"))]] = None
    command: Maybe[AnyText] = None
    args: Maybe[Annotated[list[str], PlainValidator(_any_texts)]] = None
    env: Maybe[TextMap] = None
    url: Maybe[Url] = None
    allow_local_endpoint: Maybe[Flag] = None
    connect_timeout_ms: Maybe[Annotated[int, PlainValidator(integer(1, 600_000))]] = None
    tools_allowlist: Maybe[Annotated[list[str], PlainValidator(_tools)]] = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if self.ref is not None:
            for field in _BESIDE_REF:
                self._unused(field, "beside 'ref', whose registration has it")
            return self
        if self.id is None:
            refuse("required", "required without 'ref'", at="id")
        if self.transport is None:
            refuse("required", "required without 'ref'", at="transport")
        if self.transport == "stdio":
            self._check_process()
        else:
            self._check_network(self.transport)
        return self

    def _check_process(self) -> None:
        if not self.command:
            refuse("required", "required for the stdio transport", at="command")
        self._unused("url", "for the stdio transport")
        self._unused("allow_local_endpoint", "for the stdio transport")
        for name in self.env or {}:
            upper = name.upper()
            if upper in _DENIED_ENV or upper.startswith(_DENIED_ENV_PREFIXES):
                refuse("denied_env", "a variable that changes how programs are loaded", at=f"env.{name}")

    def _check_network(self, transport: str) -> None:
        if self.url is None:
            refuse("required", f"required for the {transport} transport", at="url")
        for field in ("command", "args", "env"):
            self._unused(field, f"for the {transport} transport")
        if _SCHEMES[transport].match(self.url) is None:
            refuse("url_scheme", f"not an address of the {transport} transport", at="url")
        if _CREDENTIALS.match(self.url):
            refuse("url_credentials", "holds credentials", at="url")

    def _unused(self, field: str, why: str) -> None:
        if field in self.model_fields_set:
            refuse("not_allowed", f"not allowed {why}", at=field)


class Agent(Strict):
    """An agent as sessions store it and workflows inline it."""

    id: Kebab
    model: Text
    provider: Provider
    system_prompt: Text
    name: Maybe[AnyText] = None
    description: Maybe[AnyText] = None
    temperature: Maybe[Temperature] = None
    max_tokens: Maybe[Count] = None
    reasoning_effort: Maybe[Annotated[str, PlainValidator(one_of("off", "low", "medium", "high", "max"))]] = None
    input_schema: Maybe[JsonMap] = None
    output_schema: Maybe[JsonMap] = None
    tools: Maybe[TextList] = None
    mcp_servers: Maybe[list[McpServer]] = None
    memory: Maybe[Memory] = None
    retry: Maybe[Retry] = None
    fallback_chain: Maybe[list[FallbackEntry]] = None

    @model_validator(mode="after")
    def _servers_once(self) -> Self:
        twice = repeated([server.ref or server.id or "" for server in self.mcp_servers or []])
        if twice:
            refuse("duplicate", f"{', '.join(twice)} more than once", at="mcp_servers")
        return self


def authored_problems(agent: Agent) -> list[str]:
    """What the engine will not admit of an agent that the schema accepts, one sentence each: an author has to repair
    it before the workflow runs.
    """
    problems = []
    if agent.retry is not None and agent.retry.max > MAX_RETRY_ATTEMPTS:
        problems.append(f"retry.max is {agent.retry.max}, above the engine's {MAX_RETRY_ATTEMPTS}")
    chain = agent.fallback_chain or []
    if len(chain) > MAX_FALLBACK_ENTRIES:
        problems.append(f"fallback_chain has {len(chain)} entries, above the engine's {MAX_FALLBACK_ENTRIES}")
    for place, entry in enumerate(chain):
        if entry.max_attempts > MAX_FALLBACK_ATTEMPTS:
            problems.append(
                f"fallback_chain.{place}.max_attempts is {entry.max_attempts}, above the engine's "
                f"{MAX_FALLBACK_ATTEMPTS}"
            )
    named = [f"{provider}/{model}" for provider, model in _models(agent)]
    problems += [f"fallback_chain names {model} more than once" for model in repeated(named)]
    return problems


def _models(agent: Agent) -> list[tuple[str, str]]:
    return [(agent.provider, agent.model)] + [(entry.provider, entry.model) for entry in agent.fallback_chain or []]
