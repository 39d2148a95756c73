"""The nodes and edges of a Relavium workflow, strict at every level.

The exporter writes input, agent and output nodes; the others are what an author adds to a scaffold.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PlainValidator, Tag, model_validator

from schemas._relavium_model import Strict, by_type, tag
from schemas._relavium_values import (
    KEBAB,
    AnyText,
    Count,
    JsonMap,
    Kebab,
    Maybe,
    Temperature,
    Text,
    kind_of,
    matching,
    one_of,
    refuse,
    text,
)
from schemas.relavium_agent import Retry, TextList

__all__ = ["AgentNode", "Edge", "HumanGateNode", "MergeNode", "Node", "ParallelNode"]

_EDGE_SOURCE = re.compile(rf"{KEBAB.pattern}(?::[^\n\r\u2028\u2029]+)?")
_ABSOLUTE = re.compile(r"[/\\]|[A-Za-z]:[/\\]")
_SEPARATOR = re.compile(r"[/\\]")

_path_text = text(shortest=1)


def _save_to(value: Any) -> str:
    if _ABSOLUTE.match(_path_text(value)):
        refuse("absolute_path", "expected a relative path")
    if ".." in _SEPARATOR.split(value):
        refuse("path_traversal", 'a ".." segment')
    return str(value)


def _when(value: Any) -> Any:
    if isinstance(value, bool | str | int | float):
        return value
    refuse("invalid_type", f"expected a boolean, a string or a number, received {kind_of(value)}")


Script = Annotated[str, PlainValidator(one_of("js"))]


class InputNode(Strict):
    id: Kebab
    type: Literal["input"]
    label: Maybe[AnyText] = None


class AgentNode(Strict):
    """One agent turn. ``tools`` narrows what the agent may use."""

    id: Kebab
    type: Literal["agent"]
    agent_ref: Kebab
    prompt_template: Maybe[AnyText] = None
    system_prompt_append: Maybe[AnyText] = None
    tools: Maybe[TextList] = None
    model: Maybe[Text] = None
    temperature: Maybe[Temperature] = None
    max_tokens: Maybe[Count] = None
    output_schema: Maybe[JsonMap] = None
    output_modalities: Maybe[list[Annotated[str, PlainValidator(one_of("text", "image", "audio", "video"))]]] = None
    timeout_ms: Maybe[Count] = None
    retry: Maybe[Retry] = None

    @model_validator(mode="after")
    def _some_modality(self) -> Self:
        if self.output_modalities == []:
            refuse("too_small", "expected at least one", at="output_modalities")
        return self


class HumanGateNode(Strict):
    id: Kebab
    type: Literal["human_gate"]
    gate_type: Annotated[str, PlainValidator(one_of("approval", "input", "review"))]
    assignee: Maybe[AnyText] = None
    message_template: Maybe[AnyText] = None
    timeout_ms: Maybe[Count] = None
    timeout_action: Maybe[Annotated[str, PlainValidator(one_of("reject", "approve"))]] = None


class ConditionBranch(Strict):
    when: Annotated[bool | str | float, PlainValidator(_when)]
    target_node: Kebab


class ConditionNode(Strict):
    id: Kebab
    type: Literal["condition"]
    expression: Text
    expression_type: Maybe[Script] = None
    branches: Annotated[list[ConditionBranch], Field(min_length=1)]
    default: Maybe[Kebab] = None
    retry: Maybe[Retry] = None


class TransformNode(Strict):
    id: Kebab
    type: Literal["transform"]
    transform: Text
    expression_type: Maybe[Script] = None
    output_schema: Maybe[JsonMap] = None
    retry: Maybe[Retry] = None


class ParallelNode(Strict):
    """``parallel_of`` lists the nodes it starts; edges that leave it may name no others."""

    id: Kebab
    type: Literal["parallel"]
    parallel_of: Annotated[list[Kebab], Field(min_length=1)]


class MergeNode(Strict):
    id: Kebab
    type: Literal["merge"]
    merge_strategy: Annotated[str, PlainValidator(one_of("concat", "object_merge", "first", "custom"))]
    merge_fn: Maybe[AnyText] = None
    retry: Maybe[Retry] = None

    @model_validator(mode="after")
    def _custom_has_function(self) -> Self:
        if self.merge_strategy == "custom" and not self.merge_fn:
            refuse("required", "required for the custom strategy", at="merge_fn")
        return self


class OutputNode(Strict):
    id: Kebab
    type: Literal["output"]
    output_format: Maybe[AnyText] = None
    save_to: Maybe[Annotated[str, PlainValidator(_save_to)]] = None


Node = Annotated[
    Annotated[InputNode, Tag(tag("input"))]
    | Annotated[AgentNode, Tag(tag("agent"))]
    | Annotated[HumanGateNode, Tag(tag("human_gate"))]
    | Annotated[ConditionNode, Tag(tag("condition"))]
    | Annotated[TransformNode, Tag(tag("transform"))]
    | Annotated[ParallelNode, Tag(tag("parallel"))]
    | Annotated[MergeNode, Tag(tag("merge"))]
    | Annotated[OutputNode, Tag(tag("output"))],
    by_type(),
]


class Edge(Strict):
    """From a node, or one of its handles (``node:handle``), to a node. Whether they exist is the engine's to say."""

    source: Annotated[str, PlainValidator(matching(_EDGE_SOURCE, "a node id, or node:handle")), Field(alias="from")]
    to: Kebab
    label: Maybe[AnyText] = None
    condition: Maybe[AnyText] = None
