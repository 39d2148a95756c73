"""Emission 1 and 2: the nodes of provider calls and of tools (session-flow specification, section 6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from schemas.session_flow import CallAttrs, ProviderBody, Ref, ToolAttrs, UsageAt

from .calls import Call
from .canonical import Delivered
from .entries import Kind
from .graph import node
from .ids import block_id, node_id
from .tools import Tool, Use
from .unresolved import Open, open_reference

__all__ = ["NO_MANIFESTS", "JoinedBody", "Manifests", "call_nodes", "collect_manifests", "open_tool", "tool_node"]


class JoinedBody(NamedTuple):
    """A provider body that belongs to a call. role: request or response."""

    role: str
    seq: int
    row: int


class Manifests(NamedTuple):
    """labels: batch to (seq, row, label) of its first workflow manifest. touched: batches whose manifest came in this
    step.
    """

    labels: dict[str, tuple[int, int, str]]
    touched: tuple[str, ...]


NO_MANIFESTS = Manifests({}, ())


def collect_manifests(before: Manifests, delivered: Delivered) -> Manifests:
    labels = dict(before.labels)
    touched = []
    for entry in delivered.entries:
        if entry.kind == Kind.MANIFEST and entry.batch and entry.batch not in labels:
            labels[entry.batch] = (entry.seq, entry.row, entry.label)
            touched.append(entry.batch)
    return Manifests(labels, tuple(touched))


def call_nodes(call_id: str, call: Call, bodies: tuple[JoinedBody, ...] = ()) -> Iterator[tuple[str, bytes]]:
    """The call's node, then its messages and thoughts, fragment by fragment."""
    fragments = call.fragments
    this = node_id("call", call_id)
    stream = call.stream
    last = fragments[-1]
    finished = call.finished
    attrs = CallAttrs(
        fragments=len(fragments),
        provider_bodies=tuple(ProviderBody(role=body.role, ref=Ref(body.seq, body.row)) for body in bodies),
        stop_reason="" if finished else "unavailable",
        usage="observed_replayable" if finished else "unavailable",
        usage_at=UsageAt(row=last.row, seq=last.seq) if finished else None,
        usage_from="last_fragment_in_line_order",
    )
    refs = tuple(Ref(fragment.seq, fragment.row) for fragment in fragments)
    yield this, node("llm.call", parent=fragments[0].container, stream=stream, refs=refs, attrs=attrs)
    message = "message.synthetic" if call.synthetic else "message.assistant"
    for fragment in fragments:
        seq, row = fragment.seq, fragment.row
        for block in fragment.texts:
            yield block_id("msg", seq, row, block), node(message, parent=this, stream=stream, ref=Ref(seq, row, block))
        for block in fragment.thoughts:
            yield (
                block_id("think", seq, row, block),
                node("thinking", parent=this, stream=stream, ref=Ref(seq, row, block)),
            )


def tool_node(tool: Tool, use: Use, *, agent: bool, under_call: bool, manifests: Manifests) -> bytes:
    """The node of a tool that has a use. `under_call`: whether the call that the use's record names has a node."""
    result = tool.result
    refs = [Ref(use.seq, use.row, use.block)]
    outcome, join = "unavailable", "unresolved"
    if result is not None:
        if tool.answered:
            outcome, join = "available", "exact_unique"
            refs.append(Ref(result.seq, result.row, result.block))
        else:
            join = "exact_ambiguous"
    launched = ""
    manifest = manifests.labels.get(result.batch) if result is not None and result.batch else None
    if manifest is not None:
        seq, row, launched = manifest
        refs.append(Ref(seq, row))
    attrs = ToolAttrs(launched=launched, name=use.name, result=outcome, result_join=join, timing="unavailable")
    parent = node_id("call", use.call) if under_call else use.container
    return node("agent.call" if agent else "tool", parent=parent, stream=tool.stream, refs=tuple(refs), attrs=attrs)


def open_tool(unresolved: dict[str, Open], tool_id: str, tool: Tool) -> None:
    if tool.use is None:
        open_reference(unresolved, "tool_use", tool_id, "a result arrived for a request that was never landed")
    elif tool.results > 1:
        open_reference(unresolved, "tool_result", tool_id, "several results carry this tool-use id")
    elif tool.result is None:
        open_reference(unresolved, "tool_result", tool_id, "no result landed for this tool use")
