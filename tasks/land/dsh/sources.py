"""Who speaks in a message that has a user's role (DSH version 4, section 5; version 0: section 3)."""

from __future__ import annotations

from typing import Any

from schemas._dsh_messages import field

__all__ = ["is_checkpoint", "is_context", "is_settled", "producer", "trigger_of"]

_NOTIFICATIONS = frozenset(("subagent-settled", "agent-message", "tool-jobs", "goal"))
_NOTIFYING_FORMS = frozenset(("notice", "relay"))


def producer(source: Any) -> str:
    """The kind of a message's source; older generations call every program's `plugin` and name it beside."""
    kind, plugin = field(source, "kind"), field(source, "plugin")
    if kind == "plugin":
        return f"plugin:{plugin}" if isinstance(plugin, str) else "plugin"
    return kind if isinstance(kind, str) else ""


def is_checkpoint(source: Any, operation: Any) -> bool:
    """Whether a message is the summary that takes the place of a compacted span."""
    return producer(source) in ("compact-checkpoint", "plugin:compact") and isinstance(operation, dict)


def is_settled(source: Any) -> bool:
    """Whether a message tells that a sub-agent has stopped; in older generations it is a program's notice that names
    one."""
    kind = producer(source)
    if kind.startswith("plugin"):
        return field(source, "form") == "notice" and isinstance(field(source, "senderSessionId"), str)
    return kind == "subagent-settled"


def is_context(source: Any) -> bool:
    """Whether a message only tells the model how things stand, and sets nothing going."""
    kind = producer(source)
    if kind in ("runtime-context", "compact-checkpoint", "plugin:compact"):
        return True
    return kind.startswith("plugin") and field(source, "form") == "snapshot"


def trigger_of(source: Any) -> str:
    """What a turn is triggered by that begins with a message of this source."""
    kind = producer(source)
    if kind == "user":
        return "external"
    if kind in _NOTIFICATIONS or (kind.startswith("plugin") and str(field(source, "form")) in _NOTIFYING_FORMS):
        return "notification"
    return "unknown"
