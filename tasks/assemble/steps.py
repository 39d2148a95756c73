"""Emission 3 to 6: the steps that single records are: boundaries and summaries, delegation, inputs, control
(session-flow specification, section 6).

A record can be several steps. What a step is, and where it stands, is settled once its record is placed.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import UNSET, UnsetType

from schemas.session_flow import Attrs, ErrorAttrs, Ref, TurnAttrs

from .canonical import Delivered
from .entries import Entry, Kind, Trigger, flag
from .graph import node
from .ids import at_position
from .row import Row

__all__ = ["NO_STEPS", "Notice", "Placed", "Steps", "Summary", "take_steps"]

_RESET, _SUMMARY, _SYNTHETIC = flag("context_reset"), flag("reset_summary"), flag("synthetic")
_ACK, _CHILD_RESULT = flag("launch_ack"), flag("child_result")
_EXTERNAL, _INJECTED = flag("external_input"), flag("injected")
_CONTROL: tuple[tuple[int, str, str, Attrs | UnsetType], ...] = (
    (flag("error"), "error", "error.api", ErrorAttrs(retry_state="unavailable")),
    (flag("turn_duration"), "turn", "turn.duration", TurnAttrs(measured_by="observed_replayable")),
    (flag("command"), "command", "control.command", UNSET),
    (flag("notice"), "notice", "control.notice", UNSET),
)
_ANY_STEP = _RESET | _SUMMARY | _ACK | _EXTERNAL | _INJECTED | sum(bit for bit, *_ in _CONTROL)


class Notice(Row, frozen=True):
    """A completion notification: the child or the tool that it names."""

    seq: int
    row: int
    child: str
    tool: str


class Summary(Row, frozen=True):
    """A reset's summary and the record that it stands under."""

    seq: int
    row: int
    parent: str


class Placed(Row, frozen=True):
    seq: int
    row: int
    container: str


class Steps(NamedTuple):
    """nodes: those of this step of assembly, by id. notices, summaries: all so far.

    responses: stream to its last assistant record that is not synthetic. returns: child stream to the first journal
    entry with its result.
    """

    nodes: dict[str, bytes]
    notices: tuple[Notice, ...]
    summaries: tuple[Summary, ...]
    responses: dict[str, Placed]
    returns: dict[str, Placed]


NO_STEPS = Steps({}, (), (), {}, {})


def take_steps(before: Steps, delivered: Delivered, containers: list[str], homes: list[str]) -> Steps:
    nodes: dict[str, bytes] = {}
    notices, summaries = list(before.notices), list(before.summaries)
    responses, returns = dict(before.responses), dict(before.returns)
    for place, entry in enumerate(delivered.entries):
        flags = entry.flags
        if entry.kind == Kind.ASSISTANT:
            if entry.stream and not flags & _SYNTHETIC:
                responses[entry.stream] = Placed(entry.seq, entry.row, containers[place])
        elif entry.kind == Kind.JOURNAL and flags & _CHILD_RESULT and entry.child:
            returns.setdefault(entry.child, Placed(entry.seq, entry.row, containers[place]))
        if not flags & _ANY_STEP and entry.trigger != Trigger.NOTIFICATION:
            continue
        container = containers[place]
        if flags & _RESET:
            _put(nodes, "boundary", "epoch.boundary", entry, homes[place])
        elif flags & _SUMMARY:
            _put(nodes, "summary", "epoch.summary", entry, homes[place])
            summaries.append(Summary(entry.seq, entry.row, entry.parent))
        if flags & _ACK:
            _put(nodes, "ack", "agent.launch_ack", entry, container)
        elif entry.trigger == Trigger.NOTIFICATION:
            _put(nodes, "notify", "runtime.notification", entry, container)
            notices.append(Notice(entry.seq, entry.row, entry.child, entry.tool))
        if flags & _EXTERNAL:
            _put(nodes, "input", "message.external", entry, container)
        elif flags & _INJECTED:
            _put(nodes, "inject", "context.injection", entry, container)
        for bit, prefix, kind, attrs in _CONTROL:
            if flags & bit:
                _put(nodes, prefix, kind, entry, container, attrs)
                break
    return Steps(nodes, tuple(notices), tuple(summaries), responses, returns)


def _put(
    nodes: dict[str, bytes],
    prefix: str,
    kind: str,
    entry: Entry,
    parent: str,
    attrs: Attrs | UnsetType = UNSET,
) -> None:
    ref = Ref(entry.seq, entry.row)
    nodes[at_position(prefix, entry.seq, entry.row)] = node(
        kind, parent=parent, stream=entry.stream, ref=ref, attrs=attrs
    )
