"""Relavium's workflow document (Relavium notes, section 3): `WorkflowDefinition`, strict at every level.

The exporter writes a part of it; the rest is what an author adds, so that a reviewed file is judged by the same rules.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Discriminator, Field, PlainValidator, Tag, model_validator

from schemas._relavium_model import Strict, by_type, repeated, tag
from schemas._relavium_values import (
    AnyText,
    Count,
    Flag,
    JsonMap,
    Kebab,
    Maybe,
    Natural,
    Text,
    kind_of,
    matching,
    one_of,
    refuse,
    text,
)
from schemas.relavium_agent import Agent, TextList
from schemas.relavium_nodes import Edge, Node, ParallelNode

__all__ = ["MAX_SOURCE_UNITS", "SCHEMA_VERSION", "WorkflowDefinition", "WorkflowInput", "WorkflowSpec"]

SCHEMA_VERSION: Final = "1.0"
MAX_SOURCE_UNITS: Final = 2 * 1024 * 1024
"""The longest source, in UTF-16 units, that Relavium parses."""

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_TEXT_CHECKS = {"format", "pattern", "enum", "min_length", "max_length"}
_CHECKS = {"number": {"min", "max", "enum"}, "boolean": set[str]()}
_TEXT_TYPES = ("string", "file_path", "code_diff", "secret")

Name = Annotated[str, PlainValidator(matching(_NAME, "letters, digits, _ and -"))]
"""A name that {{inputs.name}} or {{ctx.name}} can reach."""


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse("invalid_type", f"expected a number, received {kind_of(value)}")
    return value


Number = Annotated[float, PlainValidator(_number)]


class _Plain(Strict):
    type: Literal["manual", "mcp_call"]


class _WebhookTarget(Strict):
    path: Text
    secret_env: Text


class _Webhook(Strict):
    type: Literal["webhook"]
    webhook: _WebhookTarget


class _Schedule(Strict):
    type: Literal["schedule"]
    schedule: Text


class _WatchedFiles(Strict):
    glob: Text
    debounce_ms: Natural


class _FileChange(Strict):
    type: Literal["file_change"]
    file_change: _WatchedFiles


Trigger = Annotated[
    Annotated[_Plain, Tag(tag("manual"))]
    | Annotated[_Plain, Tag(tag("mcp_call"))]
    | Annotated[_Webhook, Tag(tag("webhook"))]
    | Annotated[_Schedule, Tag(tag("schedule"))]
    | Annotated[_FileChange, Tag(tag("file_change"))],
    by_type(),
]


class InputChecks(Strict):
    """What a run checks an input's value for."""

    format: Maybe[Annotated[str, PlainValidator(one_of("email", "uri", "uuid", "date-time"))]] = None
    pattern: Maybe[Annotated[str, PlainValidator(text(shortest=1, longest=512))]] = None
    enum: Maybe[list[Any]] = None
    min: Maybe[Number] = None
    max: Maybe[Number] = None
    min_length: Maybe[Natural] = None
    max_length: Maybe[Natural] = None

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
        if self.min is not None and self.max is not None and self.min > self.max:
            refuse("bounds", "above max", at="min")
        if self.min_length is not None and self.max_length is not None and self.min_length > self.max_length:
            refuse("bounds", "above max_length", at="min_length")
        return self


class WorkflowInput(Strict):
    """A value the workflow is given. Its default is resolved before any run exists, so it holds no references."""

    name: Name
    type: Annotated[str, PlainValidator(one_of("number", "boolean", *_TEXT_TYPES))]
    required: Maybe[Flag] = None
    default: Any = None
    description: Maybe[AnyText] = None
    validation: Maybe[InputChecks] = None

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        if isinstance(self.default, str) and "{{" in self.default:
            refuse("reference", "a default holds no {{ }}", at="default")
        if self.type == "secret" and "default" in self.model_fields_set:
            refuse("secret", "a secret has no default", at="default")
        if self.validation is not None:
            allowed = _CHECKS.get(self.type, _TEXT_CHECKS)
            for check in sorted(self.validation.model_fields_set - allowed):
                refuse("not_allowed", f"not for the type {self.type}", at=f"validation.{check}")
            for place, member in enumerate(self.validation.enum or []):
                if not self._admits(member):
                    refuse("invalid_type", f"not of the type {self.type}", at=f"validation.enum.{place}")
        return self

    def _admits(self, value: Any) -> bool:
        if self.type == "boolean":
            return isinstance(value, bool)
        if self.type == "number":
            return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        return isinstance(value, str)


class ContextEntry(Strict):
    """A shared value, {{ctx.key}}."""

    key: Name
    value: AnyText


class ToolPolicy(Strict):
    allowedCommands: Maybe[TextList] = None
    allowedCommandGlobs: Maybe[TextList] = None
    allowedDomains: Maybe[TextList] = None


class Budget(Strict):
    max_cost_microcents: Count
    on_exceed: Annotated[str, PlainValidator(one_of("fail", "pause_for_approval", "warn"))]
    strict_cost_cap: Maybe[Flag] = None


class AgentFile(Strict):
    """An agent in a file of its own."""

    ref: Annotated[Text, Field(alias="$ref")]


def _which_agent(value: Any) -> str:
    is_file = "$ref" in value if isinstance(value, dict) else isinstance(value, AgentFile)
    return tag("file") if is_file else tag("inline")


AnyAgent = Annotated[
    Annotated[Agent, Tag(tag("inline"))] | Annotated[AgentFile, Tag(tag("file"))], Discriminator(_which_agent)
]


class WorkflowSpec(Strict):
    """What stands under ``workflow``. ``metadata`` is free, and keeps an exported session's transcript."""

    id: Kebab
    version: Maybe[AnyText] = None
    name: Maybe[AnyText] = None
    description: Maybe[AnyText] = None
    tags: Maybe[list[AnyText]] = None
    metadata: Maybe[JsonMap] = None
    trigger: Maybe[Trigger] = None
    inputs: Maybe[list[WorkflowInput]] = None
    context: Maybe[list[ContextEntry]] = None
    agents: Maybe[list[AnyAgent]] = None
    tools: Maybe[ToolPolicy] = None
    budget: Maybe[Budget] = None
    timeout_ms: Maybe[Count] = None
    max_parallel: Maybe[Count] = None
    nodes: Annotated[list[Node], Field(min_length=1)]
    edges: list[Edge]

    @model_validator(mode="after")
    def _names_once(self) -> Self:
        named = {
            "nodes": [node.id for node in self.nodes],
            "inputs": [item.name for item in self.inputs or []],
            "context": [entry.key for entry in self.context or []],
            "agents": [agent.id for agent in self.agents or [] if isinstance(agent, Agent)],
        }
        for field, names in named.items():
            if twice := repeated(names):
                refuse("duplicate", f"{', '.join(twice)} more than once", at=field)
        return self

    @model_validator(mode="after")
    def _branches_listed(self) -> Self:
        branches = {node.id: node.parallel_of for node in self.nodes if isinstance(node, ParallelNode)}
        for place, edge in enumerate(self.edges):
            listed = branches.get(edge.source.partition(":")[0])
            if listed is not None and edge.to not in listed:
                refuse("not_listed", "not in the parallel node's parallel_of", at=f"edges.{place}.to")
        return self


class WorkflowDefinition(Strict):
    """A whole `.relavium.yaml`."""

    schema_version: Literal["1.0"]
    workflow: WorkflowSpec
