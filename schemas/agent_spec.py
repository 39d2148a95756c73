"""What an agent that runs unattended is: one YAML file, read strictly (headless agent runs; Relavium notes, 1.5).

Everything that bounds a run is in it: time, turns, tool rounds, tokens and money. A secret is a reference, never a
value, and the task's text is filled from declared variables only, so that no secret can get into a prompt.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from schemas._agent_schedule import DAY_SECONDS, YEAR_SECONDS, Schedule
from schemas._agent_workspace import Place, Workspace
from schemas._relavium_refusals import first_refusal, shown_path
from schemas._relavium_values import KEBAB
from schemas.errors import AgentSpecRejected, WorkflowRejected
from schemas.relavium_agent import Agent, authored_problems
from schemas.relavium_yaml_reader import read_yaml

__all__ = [
    "AgentSpec",
    "Endpoint",
    "EnvironmentValue",
    "Limits",
    "Permissions",
    "Retries",
    "RunnerName",
    "Schedule",
    "SecretRef",
    "Task",
    "Variable",
    "Workspace",
    "read_agent_spec",
]

RunnerName = Literal["dsh", "claude-code", "codex", "native"]
PermissionMode = Literal["read-only", "workspace-write", "full"]

_VARIABLE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_ENVIRONMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLACEHOLDER = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_UNUSABLE = re.compile("[\0\ud800-\udfff]")
_ADDRESS = re.compile(r"https?://[^@\s]+")

_OURS: Final = ("SESSIONMILL_", "PREFECT_", "AWS_")
"""What holds sessionmill's own settings and credentials: no agent is ever given one of these."""
_SET_BY_US: Final = frozenset({"HOME", "PATH", "TMPDIR", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "DSH_HOME"})
_LOADERS: Final = ("LD_", "DYLD_")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SecretRef(_Strict):
    """Where a secret is kept: a variable of the worker's environment, or a Prefect Secret block. Exactly one."""

    env: str | None = None
    block: str | None = None

    @field_validator("env")
    @classmethod
    def _not_ours(cls, value: str | None) -> str | None:
        if value is not None and _ENVIRONMENT.fullmatch(value) is None:
            raise ValueError("no name of a variable")
        if value is not None and value.upper().startswith(_OURS):
            raise ValueError(f"{value} is sessionmill's own, and not for agents")
        return value

    @field_validator("block")
    @classmethod
    def _block_name(cls, value: str | None) -> str | None:
        if value is not None and KEBAB.fullmatch(value) is None:
            raise ValueError("no name of a Prefect block: lower-case letters and digits with single hyphens")
        return value

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.env is None) == (self.block is None):
            raise ValueError("a secret is named by env or by block, one of them")
        return self

    def __str__(self) -> str:
        return f"the variable {self.env}" if self.env is not None else f"the Prefect block {self.block}"


class EnvironmentValue(_Strict):
    """A variable of the run's environment: a secret's reference, or a ``value`` that may be read by anyone."""

    value: str | None = None
    env: str | None = None
    block: str | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.value is not None and (self.env is not None or self.block is not None):
            raise ValueError("either a value or a secret's reference, not both")
        if self.value is None:
            self.secret()
        return self

    def secret(self) -> SecretRef:
        """The reference; raises ValueError where there is a value or no reference."""
        return SecretRef(env=self.env, block=self.block)


class Endpoint(_Strict):
    """Where a provider's models are asked, if not at its own address, and with whose key."""

    base_url: str | None = None
    key: SecretRef | None = None

    @field_validator("base_url")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        if value is not None and _ADDRESS.fullmatch(value) is None:
            raise ValueError("no http or https address, or one with credentials in it")
        return value.rstrip("/") if value is not None else None


class Variable(_Strict):
    """A variable of the task; without a default it has to be given."""

    description: str = ""
    default: str | None = None


class Task(_Strict):
    """What is asked for: a text in which ``{{name}}`` stands for a declared variable, and for nothing else."""

    prompt: Annotated[str, Field(min_length=1)]
    variables: dict[str, Variable] = {}

    @model_validator(mode="after")
    def _declared(self) -> Self:
        for name in self.variables:
            if _VARIABLE.fullmatch(name) is None:
                raise ValueError(f"{name!r} is no variable's name: a letter, then letters, digits and _")
        for found in _PLACEHOLDER.findall(self.prompt):
            if found.strip() not in self.variables:
                raise ValueError(f"{{{{{found}}}}} names no declared variable; only those are filled in")
        return self

    def fill(self, given: dict[str, str]) -> str:
        """The task's text; raises ValueError for an undeclared or a missing variable, a value that is no text, or an
        empty text."""
        unknown = sorted(set(given) - set(self.variables))
        if unknown:
            raise ValueError(f"no such variable: {', '.join(unknown)}")
        values = {name: given.get(name, declared.default) for name, declared in self.variables.items()}
        missing = sorted(name for name, value in values.items() if value is None)
        if missing:
            raise ValueError(f"no value for {', '.join(missing)}, which has no default")
        for name, value in given.items():
            if _UNUSABLE.search(value):
                raise ValueError(f"the value of {name} holds NUL, or bytes that are not UTF-8; it has to be text")
        # One pass: what a value holds is text, and is not filled in again.
        text = _PLACEHOLDER.sub(lambda found: values[found[1].strip()] or "", self.prompt)
        if not text.strip():
            raise ValueError("the task's text is empty")
        return text


MOST_COUNTED: Final = 10**12
"""A million dollars, in micro-dollars; far below what figures of a run are stored as."""

Positive = Annotated[int, Field(ge=1, le=MOST_COUNTED)]


class Limits(_Strict):
    """What one run may use. ``turns`` and ``tool_rounds`` count answers of the model, all and those that call tools;
    tokens count input, with the cache's, and output; cost is in micro-dollars. None is no limit of ours.
    """

    wall_seconds: Annotated[int, Field(ge=1, le=YEAR_SECONDS)] = 3600
    grace_seconds: Annotated[int, Field(ge=0, le=600)] = 10
    turns: Positive = 50
    tool_rounds: Positive | None = None
    tokens: Positive | None = None
    cost_microusd: Positive | None = None
    output_bytes: Positive = 8 * 1024 * 1024


class Permissions(_Strict):
    """What the agent may do. ``tools`` narrows what it is offered to these; None leaves what the runner offers."""

    mode: PermissionMode = "workspace-write"
    tools: list[Annotated[str, Field(min_length=1)]] | None = None


class Retries(_Strict):
    """How often a run that failed for a passing reason is tried again; ``max`` counts the first attempt."""

    max: Annotated[int, Field(ge=1, le=10)] = 1
    backoff_seconds: Annotated[int, Field(ge=0, le=DAY_SECONDS)] = 30
    on: list[Literal["provider_unavailable", "rate_limited", "timeout", "interrupted"]] = [
        "provider_unavailable",
        "rate_limited",
    ]


class AgentSpec(_Strict):
    """One agent: what it is, what it is asked, where it works, when it runs, and what bounds it."""

    name: str
    runner: RunnerName
    agent: Agent
    task: Task
    description: str = ""
    workspace: Workspace = Workspace()
    endpoints: dict[Literal["anthropic", "openai", "gemini", "deepseek"], Endpoint] = {}
    environment: dict[str, EnvironmentValue] = {}
    schedule: Schedule | None = None
    limits: Limits = Limits()
    permissions: Permissions = Permissions()
    retries: Retries = Retries()
    concurrency: Annotated[int, Field(ge=1, le=10_000)] = 1
    archive: Place | None = None
    """Where transcripts and run records go: a folder or s3://bucket/prefix; None: what is configured."""

    @field_validator("name")
    @classmethod
    def _kebab(cls, value: str) -> str:
        if KEBAB.fullmatch(value) is None or len(value) > 64:
            raise ValueError("lower-case letters and digits with single hyphens, at most 64, as in nightly-review")
        return value

    @field_validator("environment")
    @classmethod
    def _names(cls, value: dict[str, EnvironmentValue]) -> dict[str, EnvironmentValue]:
        for name in value:
            if _ENVIRONMENT.fullmatch(name) is None:
                raise ValueError(f"{name!r} is no name of a variable")
            if name.upper() in _SET_BY_US or name.upper().startswith((*_OURS, *_LOADERS)):
                raise ValueError(f"{name} is not for a specification to set")
        return value

    @model_validator(mode="after")
    def _fits(self) -> Self:
        problems = authored_problems(self.agent) + _too_many(self.agent)
        if problems:
            raise ValueError(problems[0])
        if self.permissions.tools is not None and self.agent.tools is not None:
            wider = sorted(set(self.permissions.tools) - set(self.agent.tools))
            if wider:
                raise ValueError(
                    f"permissions.tools has {', '.join(wider)}, which agent.tools has not: it only narrows"
                )
        return self

    @property
    def tools(self) -> list[str] | None:
        """The only tools the agent may use; None: those its runner offers in this mode."""
        return self.permissions.tools if self.permissions.tools is not None else self.agent.tools

    @property
    def endpoint(self) -> Endpoint:
        """Where the agent's own provider is asked."""
        return self.endpoints.get(self.agent.provider) or Endpoint()  # type: ignore[call-overload]

    def secrets(self) -> dict[str, SecretRef]:
        """Every secret the run needs, by where it goes: ``endpoints.<provider>`` or ``environment.<name>``."""
        keys = {f"endpoints.{name}": each.key for name, each in self.endpoints.items() if each.key is not None}
        named = {f"environment.{name}": each.secret() for name, each in self.environment.items() if each.value is None}
        return keys | named


def _too_many(agent: Agent) -> list[str]:
    """The agent's numbers that its own format leaves without an upper bound, and that no run could use."""
    window = getattr(agent.memory, "window_size", None)
    pause = agent.retry.backoff_ms if agent.retry is not None else None
    numbers = {"max_tokens": agent.max_tokens, "retry.backoff_ms": pause, "memory.window_size": window}
    return [
        f"agent.{field} is above {MOST_COUNTED}"
        for field, number in numbers.items()
        if number is not None and number > MOST_COUNTED
    ]


def _unusable_text(value: Any, path: tuple[str, ...] = ()) -> tuple[str, ...] | None:
    """Where a text, or a key, can be no argument, variable or file name; None: nowhere."""
    if isinstance(value, str):
        return path if _UNUSABLE.search(value) else None
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        below = (*path, str(key))
        found = _unusable_text(str(key), below) or _unusable_text(item, below)
        if found is not None:
            return found
    return None


def read_agent_spec(data: bytes, *, name: str) -> AgentSpec:
    """The specification in ``data``; ``name`` is its file's. Raises AgentSpecRejected, naming field and rule."""
    try:
        document: Any = read_yaml(data, name=name)
    except WorkflowRejected as error:
        where = "" if error.row is None else f"line {error.row}"
        raise AgentSpecRejected(name, error.rule, where, error.detail) from None
    if not isinstance(document, dict):
        raise AgentSpecRejected(name, "invalid_type", "", "not a mapping of fields")
    if (odd := _unusable_text(document)) is not None:
        raise AgentSpecRejected(name, "text", shown_path(odd), "holds NUL or half a character, which no program takes")
    try:
        return AgentSpec.model_validate(document)
    except ValidationError as error:
        rule, field, detail = first_refusal(error)
        raise AgentSpecRejected(name, rule, field, detail.removeprefix("Value error, ")) from None
